"""What Apache Kafka's own tools say of our files. KAFKA_LIBS names the folder of Kafka's jars."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from logd.records import Codec

LIBS = os.environ.get("KAFKA_LIBS", "")

pytestmark = pytest.mark.skipif(
    not (LIBS and shutil.which("java")),
    reason="KAFKA_LIBS does not name a folder of Kafka's jars, or no java",
)


def dump(*options: str, files: list[Path]) -> str:
    command = [
        "java",
        "-cp",
        f"{LIBS}/*",
        "kafka.tools.DumpLogSegments",
        *options,
        "--files",
        ",".join(map(str, files)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    return done.stdout + done.stderr


def fill(store: Any, batch: Any) -> None:
    """Several segments, every codec, two epochs, both kinds of timestamp, an idempotent producer."""
    store.configure(segment_bytes=20_000, index_interval_bytes=500)
    sequence = 0
    for number in range(200):
        if number == 150:
            store.configure(message_timestamp_type="LogAppendTime")
        values = [f"{number}-{index}".ljust(200, "x") for index in range(1 + number % 5)]
        records = batch(
            *values,
            timestamps=[store.now + number * 10 - index for index in range(len(values))],
            codec=Codec(number % 5),
            producer_id=42,
            producer_epoch=1,
            base_sequence=sequence,
        )
        sequence += len(values)
        store.log.append(records, number // 100, store.now + number)
    store.close()


def test_kafka_reads_what_we_write(store: Any, batch: Any) -> None:
    fill(store, batch)
    logs = sorted(store.log_path.glob("*.log"))
    assert len(logs) > 1
    text = dump("--deep-iteration", "--print-data-log", files=logs)
    assert len(re.findall(r"^\| offset: \d+", text, re.MULTILINE)) == 600
    assert "isvalid: false" not in text

    indexes = sorted(store.log_path.glob("*index"))
    text = dump("--verify-index-only", files=indexes)
    assert not re.search("mismatch|out of order|not found", text, re.IGNORECASE), text

    newest = sorted(store.log_path.glob("*.snapshot"))[-1]
    assert re.search(r"producerId: 42 producerEpoch: 1 .* lastSequence: 599 ", dump(files=[newest]))
