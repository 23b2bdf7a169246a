"""aiokafka: asyncio, here in a loop of its own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable
from functools import cache
from typing import Any, TypeVar

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from kafka_client.records import NewRecord, Record
from tests.interop.clients.base import SECONDS, SESSION_MS, Refused

T = TypeVar("T")

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}

name = "aiokafka"
strategies = tuple(ASSIGNORS)


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="aiokafka", daemon=True).start()
    return loop


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run ``work`` in the event loop and return its result."""
    return asyncio.run_coroutine_threadsafe(asyncio.wait_for(work, SECONDS), _loop()).result()


def stop() -> None:
    """End the loop, at the end of all tests."""
    if _loop.cache_info().currsize:
        loop = _loop()
        (thread,) = (thread for thread in threading.enumerate() if thread.name == "aiokafka")
        loop.call_soon_threadsafe(loop.stop)
        thread.join(SECONDS)
        loop.close()


def produce(
    bootstrap: str, topic: str, records: Iterable[NewRecord], codec: str = "none", partition: int = 0
) -> None:
    run(_produce(bootstrap, topic, records, codec, partition))


async def _produce(
    bootstrap: str, topic: str, records: Iterable[NewRecord], codec: str, partition: int
) -> None:
    producer = AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        compression_type=None if codec == "none" else codec,
        linger_ms=5,
        max_request_size=10_000_000,
        enable_idempotence=True,
    )
    await producer.start()
    try:
        sent = [
            await producer.send(
                topic,
                value,
                key,
                partition=partition,
                timestamp_ms=timestamp if timestamp >= 0 else None,
                headers=list(headers),
            )
            for timestamp, key, value, headers in records
        ]
        await asyncio.gather(*sent)
    except KafkaError as error:
        raise Refused(error.errno) from error
    finally:
        await producer.stop()


def consume(bootstrap: str, topic: str, count: int, partition: int = 0) -> list[Record]:
    return run(_consume(bootstrap, TopicPartition(topic, partition), count))


async def _consume(bootstrap: str, partition: TopicPartition, count: int) -> list[Record]:
    async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([partition])
        records: list[Record] = []
        while len(records) < count:
            batches = await consumer.getmany(timeout_ms=200, max_records=count - len(records))
            records += map(to_record, batches.get(partition, ()))
        return records


def to_record(message: Any) -> Record:
    """Return a message in the form that the tests compare."""
    return message.offset, message.timestamp, message.key, message.value, tuple(message.headers)


def offset_for_time(bootstrap: str, topic: str, timestamp: int) -> int | None:
    async def find() -> int | None:
        partition = TopicPartition(topic, 0)
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap) as consumer:
            position = (await consumer.offsets_for_times({partition: timestamp}))[partition]
            return None if position is None else position.offset

    return run(find())


class AioMember(ConsumerRebalanceListener):
    """See ``Member``."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topic: str,
        strategy: str = "range",
        *,
        instance: str | None = None,
    ) -> None:
        self.assignments = 0
        self._partitions: set[int] = set()
        self._consumer: AIOKafkaConsumer
        self._getting: asyncio.Future[dict[TopicPartition, list[Any]]] | None = None
        run(
            self._start(
                topic,
                bootstrap_servers=bootstrap,
                group_id=group,
                group_instance_id=instance,
                partition_assignment_strategy=[ASSIGNORS[strategy]],
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                session_timeout_ms=SESSION_MS,
                heartbeat_interval_ms=100,
            )
        )

    async def _start(self, topic: str, **settings: Any) -> None:
        self._consumer = AIOKafkaConsumer(**settings)
        self._consumer.subscribe([topic], listener=self)
        # start() waits for the first assignment, which waits for the other members: let it go on meanwhile.
        self._started = asyncio.ensure_future(self._consumer.start())

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        self._partitions.clear()

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self.assignments += 1
        self._partitions = {partition.partition for partition in assigned}

    @property
    def assigned(self) -> frozenset[int]:
        return frozenset(self._partitions)

    def poll(self) -> list[tuple[int, Record]]:
        return run(self._poll())

    async def _poll(self) -> list[tuple[int, Record]]:
        await asyncio.wait([self._started], timeout=0.05)
        if not self._started.done():
            return []
        self._started.result()
        # getmany() may wait for a rebalance, and that for members of other makes, polled by the same thread.
        if self._getting is None:
            self._getting = asyncio.ensure_future(self._consumer.getmany(timeout_ms=50, max_records=1000))
        await asyncio.wait([self._getting], timeout=0.5)
        if not self._getting.done():
            return []
        batches, self._getting = self._getting.result(), None
        return [
            (tp.partition, to_record(message)) for tp, messages in batches.items() for message in messages
        ]

    def commit(self) -> None:
        run(self._consumer.commit())

    def close(self) -> None:
        async def close() -> None:
            await asyncio.wait([self._started], timeout=SECONDS)
            if self._getting is not None:
                self._getting.cancel()
                await asyncio.wait([self._getting])
            await self._consumer.stop()

        run(close())


member = AioMember
