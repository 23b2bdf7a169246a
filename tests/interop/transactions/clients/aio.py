"""aiokafka: asyncio, in the loop of its own thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from tests.interop.clients.aio import run
from tests.interop.transactions.clients.base import SESSION_MS, TIMEOUT_MS, Fenced, MustAbort

T = TypeVar("T")


def translated(work: Coroutine[Any, Any, T]) -> T:
    try:
        return run(work)
    except (ProducerFenced, InvalidProducerEpoch) as error:
        raise Fenced(error) from error
    except KafkaError as error:
        raise MustAbort(error) from error


class AioProducer:
    """See ``Producer``."""

    def __init__(self, bootstrap: str, transactional_id: str, timeout_ms: int) -> None:
        self._sent: list[asyncio.Future[Any]] = []

        async def start() -> AIOKafkaProducer:
            made = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                retry_backoff_ms=50,
                linger_ms=2,
            )
            await made.start()
            return made

        self._producer = run(start())

    def begin(self) -> None:
        self._sent.clear()
        translated(self._producer.begin_transaction())

    def send(self, topic: str, value: bytes, partition: int) -> None:
        self._sent.append(translated(self._producer.send(topic, value, partition=partition)))

    def flush(self) -> None:
        async def wait() -> None:
            await asyncio.gather(*self._sent)

        translated(wait())

    def send_offsets(self, consumer: AioConsumer) -> None:
        offsets = {TopicPartition(consumer.topic, p): offset for p, offset in consumer.positions.items()}
        translated(self._producer.send_offsets_to_transaction(offsets, consumer.group))

    def commit(self) -> None:
        translated(self._producer.commit_transaction())

    def abort(self) -> None:
        translated(self._producer.abort_transaction())

    def close(self) -> None:
        with suppress(Exception):
            run(asyncio.wait_for(self._producer.stop(), 1))


class AioConsumer:
    """See ``Consumer``."""

    def __init__(self, bootstrap: str, group: str, topic: str) -> None:
        self.topic = topic
        self.group = group
        self.positions: dict[int, int] = {}

        async def start() -> AIOKafkaConsumer:
            made = AIOKafkaConsumer(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                isolation_level="read_committed",
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=200,
                retry_backoff_ms=50,
            )
            await made.start()
            return made

        self._consumer = run(start())

    def poll(self) -> list[tuple[int, int, bytes]]:
        polled = []
        for partition, records in run(self._consumer.getmany(timeout_ms=200, max_records=20)).items():
            for record in records:
                self.positions[partition.partition] = record.offset + 1
                polled.append((partition.partition, record.offset, record.value))
        return polled

    def committed(self, partitions: int) -> dict[int, int]:
        offsets = {}
        for number in range(partitions):
            offset = run(self._consumer.committed(TopicPartition(self.topic, number)))
            if offset is not None:
                offsets[number] = offset
        return offsets

    def rewind(self) -> None:
        self.positions.clear()
        assigned = self._consumer.assignment()
        if assigned:
            run(self._consumer.seek_to_beginning(*assigned))
            run(self._consumer.seek_to_committed(*assigned))

    def close(self) -> None:
        run(self._consumer.stop())


def producer(bootstrap: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS) -> AioProducer:
    return AioProducer(bootstrap, transactional_id, timeout_ms)


consumer = AioConsumer


def read(bootstrap: str, topic: str, partitions: int, *, committed: bool) -> list[bytes]:
    async def work() -> list[bytes]:
        assigned = [TopicPartition(topic, number) for number in range(partitions)]
        async with AIOKafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed" if committed else "read_uncommitted",
            enable_auto_commit=False,
            fetch_max_wait_ms=50,
        ) as reader:
            reader.assign(assigned)
            await reader.seek_to_beginning(*assigned)
            values: list[bytes] = []
            end_of = reader.last_stable_offset if committed else reader.highwater
            while True:
                records = await reader.getmany(*assigned, timeout_ms=100)
                values += [record.value for some in records.values() for record in some]
                ends = [(end_of(where), await reader.position(where)) for where in assigned]
                if not records and all(end is not None and position >= end for end, position in ends):
                    return sorted(values)

    return run(work())
