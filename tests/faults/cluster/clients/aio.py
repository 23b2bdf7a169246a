"""aiokafka: see `speech`."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from tests.faults.cluster.clients import speech
from tests.faults.cluster.clients.speech import say


async def _write(servers: str, topic: str, partitions: int, is_over: threading.Event) -> int:
    producer = AIOKafkaProducer(
        bootstrap_servers=servers,
        enable_idempotence=True,
        linger_ms=1,
        # It is a record's own, too: what is not acknowledged by then is given up.
        request_timeout_ms=speech.DELIVERY_MS,
        retry_backoff_ms=speech.BACKOFF_MS,
    )
    await producer.start()
    waiting: set[asyncio.Task[None]] = set()
    lost: list[BaseException] = []

    async def acknowledged(number: int, delivery: asyncio.Future[Any]) -> None:
        try:
            where = await delivery
        except Exception as error:
            lost.append(error)
            raise
        say("acked", number, where.partition, where.offset)

    sent = 0
    while not is_over.is_set():
        await asyncio.sleep(speech.PAUSE_S)
        for _ in range(speech.AT_ONCE if len(waiting) < speech.WAITING_MAX else 0):
            delivery = await producer.send(topic, b"%d" % sent, partition=sent % partitions)
            task = asyncio.ensure_future(acknowledged(sent, delivery))
            waiting.add(task)
            task.add_done_callback(waiting.discard)
            sent += 1
        assert not lost, lost
    await asyncio.gather(*waiting)
    await producer.stop()
    return sent


async def _read(servers: str, topic: str, group: str, is_over: threading.Event) -> None:
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=speech.SESSION_MS,
        heartbeat_interval_ms=speech.SESSION_MS // 10,
        retry_backoff_ms=speech.BACKOFF_MS,
        request_timeout_ms=10_000,
    )
    await consumer.start()
    while not is_over.is_set():
        polled = await consumer.getmany(timeout_ms=speech.POLL_MS, max_records=speech.READ_AT_ONCE)
        ends: dict[TopicPartition, int] = {}
        for tp, messages in polled.items():
            for message in messages:
                say("read", tp.partition, message.offset, int(message.value))
                ends[tp] = message.offset + 1
        if ends:
            await _commit(consumer, ends)
    # Closing its fetcher, it may raise what it has cancelled itself: everything is committed by then.
    with contextlib.suppress(asyncio.CancelledError):
        await consumer.stop()


async def _commit(consumer: AIOKafkaConsumer, ends: dict[TopicPartition, int]) -> None:
    """Say what was done; what was not is the next commit's."""
    try:
        await consumer.commit(ends)
    except KafkaError:
        return
    for tp, end in ends.items():
        say("committed", tp.partition, end)


def write(servers: str, topic: str, partitions: int, is_over: threading.Event) -> int:
    return asyncio.run(_write(servers, topic, partitions, is_over))


def read(servers: str, topic: str, group: str, is_over: threading.Event) -> None:
    asyncio.run(_read(servers, topic, group, is_over))


if __name__ == "__main__":
    speech.main(write, read)
