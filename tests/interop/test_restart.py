"""Clients keep their group's offsets over a restart of the broker, and every record comes exactly once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kafka_client.records import Record
from tests.interop.clients.base import LIBRARIES, SECONDS, load, wait_until
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

RESTARTS = pytest.mark.parametrize(
    "end", depth.first(1, [LogdProcess.kill, LogdProcess.stop]), ids=["SIGKILL", "SIGTERM"]
)


def read_all(logd: LogdProcess, topic: str) -> list[Record]:
    with RawClient(logd.port) as raw:
        end = raw.fetch(topic).high_watermark
    return load("confluent").consume(logd.bootstrap, topic, end)


@depth.deep
@RESTARTS
def test_committed_offsets(tmp_path: Path, end: Callable[[LogdProcess], object]) -> None:
    """Members that were there all the time, and members that come after it, go on behind the last commit."""
    with LogdProcess(tmp_path) as logd:
        topic = create_topic(logd, "t")
        with RawClient(logd.port) as raw:
            raw.produce(topic, [(1, None, b"%d" % number, ()) for number in range(10)])
        stays = load("confluent").member(logd.bootstrap, "stays", topic)
        received = wait_until(lambda: bool(stays.assigned), stays)
        while len(received) < 10:
            received += stays.poll()
        stays.commit()
        for name in LIBRARIES:
            member = load(name).member(logd.bootstrap, name, topic)
            received = wait_until(lambda member=member: bool(member.assigned), member)
            while len(received) < 10:
                received += member.poll()
            member.commit()
            member.close()
        end(logd)
        logd.start()
        with RawClient(logd.port) as raw:
            assert raw.produce(topic, [(1, None, b"10", ())]).base_offset == 10
        for name in LIBRARIES:
            member = load(name).member(logd.bootstrap, name, topic)
            received = []
            while not received:
                received += member.poll()
            assert [record[3] for _, record in received] == [b"10"], name
            member.close()
        received = []
        while not received:
            received += stays.poll()
        assert [record[3] for _, record in received] == [b"10"]
        stays.commit()
        stays.close()
        assert "Traceback" not in logd.log


@RESTARTS
def test_an_idempotent_librdkafka_producer(tmp_path: Path, end: Callable[[LogdProcess], object]) -> None:
    """Unacknowledged batches are sent again after the broker ended while they were in flight."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    total = 30_000
    with LogdProcess(tmp_path) as logd:
        topic = create_topic(logd, "t")
        producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": logd.bootstrap,
                "enable.idempotence": True,
                "batch.num.messages": 50,
                "linger.ms": 1,
                "queue.buffering.max.messages": 1000,
                "reconnect.backoff.max.ms": 200,
                "metadata.recovery.strategy": "none",
                "log_level": 0,
            }
        )
        delivered: list[tuple[int, int]] = []
        failed: list[object] = []

        def on_delivery(error: object, message: object) -> None:
            if error is None:
                delivered.append((message.offset(), int(message.value())))  # type: ignore[attr-defined]
            else:
                failed.append(error)

        restart = threading.Thread(target=lambda: (end(logd), logd.start()))
        for number in range(total):
            if number == total // 2:
                restart.start()
            while True:
                try:
                    producer.produce(topic, b"%d" % number, on_delivery=on_delivery)
                    break
                except BufferError:
                    producer.poll(0.05)
            producer.poll(0)
        assert producer.flush(SECONDS) == 0
        restart.join(SECONDS)
        assert not failed
        assert sorted(delivered) == [(number, number) for number in range(total)]
        records = read_all(logd, topic)
        assert [(record[0], record[3]) for record in records] == [(n, b"%d" % n) for n in range(total)]


@RESTARTS
def test_an_idempotent_aiokafka_producer(tmp_path: Path, end: Callable[[LogdProcess], object]) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    total = 3000

    async def write(logd: LogdProcess, topic: str) -> list[tuple[int, int]]:
        loop = asyncio.get_running_loop()
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=logd.bootstrap,
            enable_idempotence=True,
            max_batch_size=2000,
            retry_backoff_ms=50,
            request_timeout_ms=int(SECONDS * 1000),
        ) as producer:
            sent = []
            restarted = None
            for number in range(total):
                if number == total // 2:
                    restarted = loop.run_in_executor(None, lambda: (end(logd), logd.start()))
                sent.append(await producer.send(topic, b"%d" % number, partition=0))
            offsets = [(await future).offset for future in sent]
            assert restarted is not None
            await restarted
            return list(zip(offsets, range(total), strict=True))

    with LogdProcess(tmp_path) as logd:
        topic = create_topic(logd, "t")
        acknowledged = asyncio.run(asyncio.wait_for(write(logd, topic), 2 * SECONDS))
        assert acknowledged == [(number, number) for number in range(total)]
        assert [record[3] for record in read_all(logd, topic)] == [b"%d" % n for n in range(total)]


@RESTARTS
def test_an_idempotent_kafka_python_producer(tmp_path: Path, end: Callable[[LogdProcess], object]) -> None:
    kafka = pytest.importorskip("kafka")
    total = 3000
    with LogdProcess(tmp_path) as logd:
        topic = create_topic(logd, "t")
        producer = kafka.KafkaProducer(
            bootstrap_servers=logd.bootstrap, batch_size=2000, linger_ms=1, reconnect_backoff_max_ms=200
        )
        restart = threading.Thread(target=lambda: (end(logd), logd.start()))
        sent = []
        for number in range(total):
            if number == total // 2:
                restart.start()
            sent.append(producer.send(topic, b"%d" % number, partition=0))
        acknowledged = [future.get(SECONDS).offset for future in sent]
        producer.close()
        restart.join(SECONDS)
        assert acknowledged == list(range(total))
        assert [record[3] for record in read_all(logd, topic)] == [b"%d" % n for n in range(total)]
