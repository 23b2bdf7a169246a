"""kcat, from Debian's packages: a command, so it writes and reads through pipes."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence

from kafka_client.records import Record
from tests.interop.clients.base import SECONDS

COMMAND = shutil.which("kcat") or shutil.which("kafkacat")


def kcat(bootstrap: str, *arguments: str, stdin: str = "") -> str:
    """Run kcat and return its output."""
    assert COMMAND is not None
    done = subprocess.run(
        [COMMAND, "-b", bootstrap, "-m", str(int(SECONDS)), *arguments],
        input=stdin.encode(),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def produce(
    bootstrap: str,
    topic: str,
    pairs: Sequence[tuple[str, str]],
    codec: str = "none",
    headers: Sequence[tuple[str, str]] = (),
) -> None:
    """Write (key, value) to partition 0; empty ones become null."""
    named = [part for key, value in headers for part in ("-H", f"{key}={value}")]
    lines = "".join(f"{key}|{value}\n" for key, value in pairs)
    kcat(bootstrap, "-P", "-t", topic, "-p", "0", "-K", "|", "-Z", "-z", codec, *named, stdin=lines)


def consume(bootstrap: str, topic: str, count: int) -> list[Record]:
    """Return the first ``count`` records of partition 0; keys, values and headers must be text."""
    printed = kcat(
        bootstrap, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-c", str(count), "-J", "-q", "-u"
    )
    return [_record(json.loads(line)) for line in printed.splitlines()]


def _record(message: dict[str, object]) -> Record:
    flat = message.get("headers", [])
    assert isinstance(flat, list)
    headers = tuple(zip(flat[::2], map(_encoded, flat[1::2]), strict=True))
    offset, timestamp = message["offset"], message["ts"]
    assert isinstance(offset, int) and isinstance(timestamp, int)
    return offset, timestamp, _encoded(message["key"]), _encoded(message["payload"]), headers


def _encoded(text: object) -> bytes | None:
    return None if text is None else str(text).encode()
