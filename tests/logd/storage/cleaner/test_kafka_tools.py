"""Tests that Apache Kafka's own tool reads cleaned segments. KAFKA_LIBS names the folder of Kafka's jars."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from kafka_client.records import Codec
from tests.support.java import dump_log_segments, needs_kafka

pytestmark = needs_kafka


def dump(*options: str, files: list[Path]) -> str:
    done = dump_log_segments(*options, "--files", ",".join(map(str, files)))
    done.check_returncode()
    return done.stdout + done.stderr


def test_kafka_reads_what_was_cleaned(keyed: Any) -> None:
    keyed.configure(index_interval_bytes=300, segment_bytes=20_000, delete_retention_ms=10**9)
    marker = {"producer_epoch": 0, "coordinator_epoch": 0, "leader_epoch": 0}
    sequence = 0
    for number in range(120):
        keyed.now += 10
        keyed.append(
            (f"k{number % 7}", f"{number}".ljust(200, "x")),
            (f"gone{number % 11}", None if number % 3 else "x" * 100),
            (f"same{number % 2}", "y" * 50),
            codec=Codec(number % 5),
        )
        if number % 10 == 5:
            facts = {"producer_id": 42, "producer_epoch": 0, "transactional": True}
            keyed.append(("k0", "maybe"), ("k1", "maybe"), base_sequence=sequence, **facts)
            sequence += 2
            keyed.log.writer.append_marker(
                commit=number % 20 == 5, producer_id=42, now_ms=keyed.now, **marker
            )
        if number % 30 == 29:
            keyed.roll()
    keyed.compact()
    keyed.append(("k1", "again"))
    keyed.roll()
    keyed.compact()
    expected = keyed.records()
    keyed.reopen(clean=True)
    logs = sorted(keyed.log_path.glob("*.log"))
    text = dump("--deep-iteration", "--print-data-log", files=logs)
    rows = re.findall(r"^\| offset: (\d+) .*? key: (\S*)", text, re.MULTILINE)
    keys = [(int(offset), key) for offset, key in rows if key not in ("filler", "") and "endTxn" not in key]
    assert [(offset, key) for offset, key in keys if "," not in key] == [row[:2] for row in expected]
    assert "isvalid: false" not in text
    assert re.search(r"deleteHorizonMs: (OptionalLong\[)?\d+", text)
    assert re.search(r"baseOffset: \d+ lastOffset: \d+ count: 0 .*producerId: 42", text)
    indexes = sorted(keyed.log_path.glob("*index"))
    assert any(path.suffix == ".txnindex" for path in indexes)
    text = dump("--verify-index-only", files=[path for path in indexes if path.suffix != ".txnindex"])
    assert not re.search("mismatch|out of order|not found", text, re.IGNORECASE), text
    assert "producerId: 42" in dump(files=[path for path in indexes if path.suffix == ".txnindex"])
