"""Tests that Apache Kafka's own tools read our files. KAFKA_LIBS names the folder of Kafka's jars."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

from kafka_client.records import Codec
from logd.dump_log.dump import dump
from logd.dump_log.options import Options
from tests.support.java import dump_log_segments, needs_kafka

pytestmark = needs_kafka


def kafka_dump(*options: str, files: list[Path]) -> str:
    done = dump_log_segments(*options, "--files", ",".join(map(str, files)))
    assert done.returncode == 0, done.stderr
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
        store.log.writer.append(records, number // 100, store.now + number)
    store.close()


def test_kafka_reads_what_we_write(store: Any, batch: Any) -> None:
    fill(store, batch)
    logs = sorted(store.log_path.glob("*.log"))
    assert len(logs) > 1
    text = kafka_dump("--deep-iteration", "--print-data-log", files=logs)
    assert len(re.findall(r"^\| offset: \d+", text, re.MULTILINE)) == 600
    assert "isvalid: false" not in text

    indexes = sorted(store.log_path.glob("*index"))
    text = kafka_dump("--verify-index-only", files=indexes)
    assert not re.search("mismatch|out of order|not found", text, re.IGNORECASE), text

    newest = sorted(store.log_path.glob("*.snapshot"))[-1]
    assert re.search(r"producerId: 42 producerEpoch: 1 .* lastSequence: 599 ", kafka_dump(files=[newest]))


def test_kafka_reads_our_transactions(store: Any, batch: Any) -> None:
    store.configure(segment_bytes=500)
    facts = {"producer_epoch": 3, "coordinator_epoch": 7, "leader_epoch": 0, "now_ms": store.now}
    for number in range(4):
        for pid in (1, 2):
            producer = {"producer_id": pid, "producer_epoch": 3, "base_sequence": 2 * number}
            store.log.writer.append(batch("a", "b", transactional=True, **producer), 0, store.now)
        store.log.writer.append_marker(producer_id=1, commit=False, **facts)
        store.log.writer.append_marker(producer_id=2, commit=number % 2 == 0, **facts)
    store.log.writer.append(
        batch("open", producer_id=2, producer_epoch=3, base_sequence=8, transactional=True), 0, store.now
    )
    aborted = store.log.reader.aborted(0, store.log.log_end_offset)
    store.close()

    text = kafka_dump(files=sorted(store.log_path.glob("*.txnindex")))
    assert re.findall(
        r"producerId: (\d+) firstOffset: (\d+) lastOffset: (\d+) lastStableOffset: (\d+)", text
    ) == [tuple(map(str, entry)) for entry in aborted]
    newest = sorted(store.log_path.glob("*.snapshot"))[-1]
    text = kafka_dump(files=[newest])
    for pid, first in ((1, ".empty"), (2, "[24]")):
        state = f"producerEpoch: 3 coordinatorEpoch: 7 currentTxnFirstOffset: OptionalLong{first} "
        assert f"producerId: {pid} {state}" in text, text
    text = kafka_dump("--print-data-log", files=sorted(store.log_path.glob("*.log")))
    assert text.count("endTxnMarker: ABORT coordinatorEpoch: 7") == 6
    assert text.count("endTxnMarker: COMMIT coordinatorEpoch: 7") == 2


def fill_with_transactions(store: Any, batch: Any) -> None:
    """Three producers, every fourth transaction aborted, the last ones open, over several segments."""
    store.configure(segment_bytes=3000, index_interval_bytes=300)
    sequences = [0, 0, 0]
    for number in range(60):
        which = number % 3
        for values in (["some", "thing"], ["more"]):
            facts = {"producer_id": 100 + which, "producer_epoch": 7, "base_sequence": sequences[which]}
            records = batch(*values, now=store.now + number, transactional=True, codec=Codec.LZ4, **facts)
            store.log.writer.append(records, 3, store.now + number)
            sequences[which] += len(values)
        if number < 58:
            store.log.writer.append_marker(
                producer_id=100 + which,
                producer_epoch=7,
                commit=number % 4 != 3,
                coordinator_epoch=2,
                leader_epoch=3,
                now_ms=store.now + number,
            )
    store.close()


def test_both_tools_say_the_same_of_our_transactions(store: Any, batch: Any) -> None:
    """Kafka's tool and ours print the same for every file, and neither reports an error."""
    fill_with_transactions(store, batch)
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    files = sorted(path for path in store.log_path.iterdir() if path.suffix in suffixes)
    assert {path.suffix for path in files} == set(suffixes)
    text = kafka_dump("--print-data-log", files=files)
    assert len(re.findall(r"endTxnMarker: (?:COMMIT|ABORT) coordinatorEpoch: 2$", text, re.MULTILINE)) == 58
    assert len(re.findall(r"^version: 0 producerId: 10\d firstOffset: ", text, re.MULTILINE)) == 14
    newest = kafka_dump(files=[path for path in files if path.suffix == ".snapshot"][-1:])
    assert len(re.findall(r"currentTxnFirstOffset: OptionalLong\[\d+\]", newest)) == 2

    out, err = io.StringIO(), io.StringIO()
    assert dump(files, Options(print_data_log=True), out, err)
    assert out.getvalue().splitlines() == text.splitlines()
    assert err.getvalue() == ""
