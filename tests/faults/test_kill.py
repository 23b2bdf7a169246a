"""The broker is killed under a running producer: what it acknowledged is there once, in order."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from kafka_client.records import decode_records, iter_batches
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

PARTITIONS = 4
KILLS = 4
RECORDS_BETWEEN = 8_000


def read_all(logd: LogdProcess, topic: str, partition: int) -> list[int]:
    numbers: list[int] = []
    with RawClient(logd.port) as client:
        while True:
            answer = client.fetch(topic, len(numbers), partition=partition, max_wait_ms=1)
            for pos, _ in iter_batches(answer.records):
                for offset, _, _, value, _ in decode_records(answer.records, pos):
                    assert offset == len(numbers) and value is not None
                    numbers.append(int(value))
            if len(numbers) == answer.high_watermark:
                return numbers


class Writer:
    """An idempotent librdkafka producer that numbers its records; ``acknowledged`` is what it was told."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        confluent_kafka = pytest.importorskip("confluent_kafka")
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "batch.num.messages": 40,
                "queue.buffering.max.messages": 2_000,
                "compression.type": "lz4",
                "reconnect.backoff.max.ms": 100,
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
        )
        self._topic = topic
        self.sent = 0
        self.acknowledged: dict[int, tuple[int, int]] = {}
        self.failed: list[object] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="writer")
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._producer.produce(
                    self._topic,
                    b"%d" % self.sent,
                    partition=self.sent % PARTITIONS,
                    on_delivery=self._delivered,
                )
                self.sent += 1
            except BufferError:
                self._producer.poll(0.01)
            self._producer.poll(0)
        assert self._producer.flush(100) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is not None:
            self.failed.append(error)
        else:
            number, where = int(message.value()), (message.partition(), message.offset())  # type: ignore[attr-defined]
            assert number not in self.acknowledged
            self.acknowledged[number] = where

    def finish(self) -> None:
        self._stop.set()
        self._thread.join()


@pytest.mark.parametrize(
    "settings", depth.first(1, [{"log.segment.bytes": 100_000}, {}]), ids=["many segments", "one segment"]
)
def test_acknowledged_once_and_in_order(tmp_path: Path, settings: dict[str, int]) -> None:
    with LogdProcess(tmp_path, settings) as logd:
        topic = create_topic(logd, "t", partitions=PARTITIONS)
        writer = Writer(logd.bootstrap, topic)
        try:
            for _ in range(KILLS):
                target = len(writer.acknowledged) + RECORDS_BETWEEN
                wait_for(lambda target=target: len(writer.acknowledged) >= target)  # type: ignore[misc]
                logd.kill()
                logd.start()
        finally:
            writer.finish()
        assert not writer.failed
        assert writer.acknowledged.keys() == set(range(writer.sent))
        for partition in range(PARTITIONS):
            numbers = read_all(logd, topic, partition)
            assert numbers == list(range(partition, writer.sent, PARTITIONS))
            assert all(writer.acknowledged[number] == (partition, at) for at, number in enumerate(numbers))
        assert "Traceback" not in logd.log


@depth.deep
def test_killed_before_it_is_ready(tmp_path: Path) -> None:
    """Recovery that a kill cuts short begins again and loses nothing."""
    with LogdProcess(tmp_path, {"log.segment.bytes": 50_000}) as logd:
        topic = create_topic(logd, "t")
        with RawClient(logd.port) as client:
            for number in range(200):
                assert client.produce(topic, [(1, bytes(900), b"%d" % number, ())]).base_offset == number
        for cpu_seconds in (0.1, 0.2, 0.25, 0.3, 0.35, 0.4):
            logd.kill()
            starts = logd.log.count("logd ready")
            logd.spawn()
            wait_for(lambda: logd.cpu_seconds >= cpu_seconds or logd.log.count("logd ready") > starts)  # noqa: B023
        logd.kill()
        logd.start()
        assert read_all(logd, topic, 0) == list(range(200))
        assert "Traceback" not in logd.log
