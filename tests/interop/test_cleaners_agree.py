"""Apache Kafka's cleaner and ours, each over the same log: the same batches are left.

KAFKA_LIBS names the folder of Kafka's jars.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer

from kafka_client.records import build_batch, decode_records
from kafka_client.records.header import iter_batches
from tests.interop.clients.base import SECONDS
from tests.support.apache_kafka import ApacheKafka
from tests.support.java import needs_kafka
from tests.support.kafka_metadata import hand_over
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

SETTINGS = {"log.cleaner.backoff.ms": 20, "transaction.state.log.num.partitions": 5}
COMPACTED = {
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "100000000",
    "segment.bytes": "1048576",
}
ROUNDS = 8
"""Each a segment, by its large values."""


class Left(NamedTuple):
    """A batch, as far as the cleaners have to agree on it."""

    base_offset: int
    last_offset: int
    producer: tuple[int, int, int]
    is_control: bool
    records: list[tuple[int, bytes | None, bytes | None]]


@needs_kafka
def test_the_same_batches_are_left(tmp_path: Path) -> None:
    folders = {name: tmp_path / name / "data" for name in ("logd", "kafka")}
    with LogdProcess(tmp_path / "logd", {**SETTINGS, "log.cleaner.enable": "false"}) as logd:
        end = _write(logd)
        assert logd.stop() == 0
        shutil.copytree(folders["logd"], folders["kafka"])
        del logd.overrides["log.cleaner.enable"]
        logd.start()
        _wait_until_cleaned(folders["logd"], end)
        ours = _left(folders["logd"], end)
    hand_over([folders["kafka"]])
    with ApacheKafka(tmp_path / "kafka", SETTINGS) as kafka:
        _wait_until_cleaned(folders["kafka"], end)
        theirs = _left(folders["kafka"], end)
        kafka.stop()
    assert sum(not batch.records for batch in ours) > 5
    assert ours == theirs


def _write(logd: LogdProcess) -> int:
    """By plain, idempotent and transactional producers, some deleted; where the active segment begins."""
    create_topic(logd, "t", COMPACTED)
    sender = Producer({"bootstrap.servers": logd.bootstrap, "transactional.id": "t", "log_level": 2})
    sender.init_transactions(SECONDS)
    now = int(time.time() * 1000)
    with RawClient(logd.port) as client:
        for turn in range(ROUNDS):
            for number in range(5):
                facts = {"producer_id": 1000 + turn * 5 + number, "producer_epoch": 0, "base_sequence": 0}
                batch = build_batch([(now, b"own", b"%d" % turn, ()), (now, b"too", b"", ())], **facts)
                assert client.produce("t", batch).error_code == 0
            sender.begin_transaction()
            for number in range(turn, 10):
                sender.produce("t", None if number == turn else b"%d" % turn, b"key %d" % number)
            end = sender.commit_transaction if turn % 2 else sender.abort_transaction
            sender.flush(SECONDS)
            end(SECONDS)
            for number in range(7):
                records = [(now, b"large %d" % number, b"%d" % turn + bytes(150_000), ())]
                assert client.produce("t", records).error_code == 0
        assert client.produce("t", [(now, b"end", bytes(900_000), ())]).error_code == 0
        # A commit is answered before its marker is written, and the cleaners go no further than that.
        wait_for(lambda: (end := client.fetch("t")).last_stable_offset == end.high_watermark)
    bases = sorted(int(path.stem) for path in (logd.folder / "data" / "t-0").glob("*.log"))
    assert len(bases) >= ROUNDS
    return bases[-1]


def _wait_until_cleaned(folder: Path, end: int) -> None:
    checkpoint = folder / "cleaner-offset-checkpoint"
    wait_for(lambda: checkpoint.exists() and f"t 0 {end}" in checkpoint.read_text().splitlines())


def _left(folder: Path, end: int) -> list[Left]:
    remaining: list[Left] = []
    for path in sorted((folder / "t-0").glob("*.log")):
        data = path.read_bytes()
        for at, header in iter_batches(data) if int(path.stem) < end else ():
            remaining.append(
                Left(
                    header.base_offset,
                    header.last_offset,
                    (header.producer_id, header.producer_epoch, header.base_sequence),
                    header.is_control,
                    [(offset, key, value) for offset, _, key, value, _ in decode_records(data, at)],
                )
            )
    return remaining
