"""The `millstream` command as a process of its own, with a pipe on either side."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

SECONDS = 100.0


def command(*arguments: object) -> list[str]:
    """Return the command line of `millstream` with these arguments."""
    return [sys.executable, "-m", "millstream", *map(str, arguments)]


def run(
    *arguments: object, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end, whatever its status."""
    return subprocess.run(
        command(*arguments),
        input=stdin,
        capture_output=True,
        timeout=SECONDS,
        env={**os.environ, **(environment or {})},
    )


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[bytes]]:
    """Start `millstream` with pipes on all sides. Kill the process at the end if it still runs."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command(*arguments), stdin=pipe, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()
