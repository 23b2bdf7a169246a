"""A producer that continues what another one began, and halts where it cannot do so without a gap."""

from __future__ import annotations

import asyncio

import pytest

from kafka_client import BatchProducer, TopicPartition
from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError
from kafka_client.producer.identity import Identity
from kafka_client.records import build_batch
from kafka_client.wire import ApiKey
from tests.kafka_client.fake_broker import SILENCE
from tests.kafka_client.test_producer_faults import Stage, stage, values
from tests.support.waiting import until

TP = TopicPartition("t", 0)
BEFORE = Identity(77, 3)


def batch_before(start: int, end: int) -> memoryview:
    """Return a batch of the previous producer, with sequence numbers equal to its values."""
    records = [(0, None, value, ()) for value in values(start, end)]
    return memoryview(build_batch(records, producer_id=77, producer_epoch=3, base_sequence=start))


def producer_at(on: Stage) -> BatchProducer:
    on.broker.topics["t"] = {0: 1, 1: 1}
    return BatchProducer(on.client, linger_ms=0, halt_on_failure=True)


async def send(
    producer: BatchProducer, numbers: range, partition: int = 0
) -> list[asyncio.Future[int | None]]:
    """Send a prebuilt batch for each three numbers."""
    return [
        await producer.send_batch("t", partition, build_batch([(0, None, v, ()) for v in values(at, at + 3)]))
        for at in range(numbers.start, numbers.stop, 3)
    ]


@pytest.mark.parametrize("late", ["before", "behind"])
async def test_what_was_on_its_way_is_not_written_twice(late: str) -> None:
    """Batches are written once if a killed producer's batch arrives before or after this producer's copy."""
    async with stage() as on, producer_at(on) as producer:
        on.logs[0].append(batch_before(0, 3))
        if late == "before":
            on.logs[0].append(batch_before(3, 6))
        producer.continue_at(TP, BEFORE, 3)
        futures = await send(producer, range(3, 6))
        assert [await future for future in futures] == [3]
        futures = await send(producer, range(6, 30))
        assert [await future for future in futures] == list(range(6, 30, 3))
        if late == "behind":
            assert on.logs[0].append(batch_before(3, 6))[0] == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert on.values == values(0, 30)


async def test_a_sequence_that_is_not_taken_halts_the_partition() -> None:
    """Raising the epoch instead would write after records that this producer does not know."""
    async with stage() as on, producer_at(on) as producer:
        on.logs[0].append(batch_before(0, 3))
        producer.continue_at(TP, BEFORE, 9)
        futures = await send(producer, range(9, 15))
        for future in futures:
            with pytest.raises(KafkaError) as failed:
                await future
            assert failed.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        with pytest.raises(KafkaError):
            await send(producer, range(15, 18))
        assert on.values == values(0, 3)
        assert producer.statistics()["buffered_bytes"] == 0
        (other,) = await send(producer, range(3), partition=1)
        assert await other == 0
        await until(lambda: producer.is_idle(TP))
        producer.continue_at(TP, BEFORE, 3)
        (future,) = await send(producer, range(3, 6))
        assert await future == 3


async def test_nothing_is_written_behind_a_batch_that_was_refused() -> None:
    async with stage() as on, producer_at(on) as producer:
        on.refuse(ErrorCode.INVALID_RECORD)
        futures = await send(producer, range(30))
        failed = await asyncio.gather(*futures, return_exceptions=True)
        assert {error.code for error in failed if isinstance(error, KafkaError)} == {ErrorCode.INVALID_RECORD}
        assert len(failed) == 10
        assert on.values == []


async def test_what_is_abandoned_is_not_sent_again() -> None:
    async with stage() as on, producer_at(on) as producer:
        on.refuse(ErrorCode.NOT_ENOUGH_REPLICAS)
        futures = await send(producer, range(30))
        producer.abandon(TP)
        failed = await asyncio.gather(*futures, return_exceptions=True)
        assert all("given up" in str(error) for error in failed)
        await until(lambda: producer.is_idle(TP))
        assert producer.statistics()["buffered_bytes"] == 0


async def test_what_waited_for_memory_when_its_partition_was_abandoned_is_not_sent() -> None:
    """Records that wait for memory would be sent with the sequence numbers set by `continue_at`."""
    async with stage() as on:
        on.broker.on(ApiKey.PRODUCE, lambda _: SILENCE)
        memory = {"buffer_memory": 200, "max_request_size": 200}
        async with BatchProducer(on.client, linger_ms=0, halt_on_failure=True, **memory) as producer:
            sent = [*await send(producer, range(3)), *await send(producer, range(3, 6))]
            waiting = asyncio.create_task(send(producer, range(6, 9)))
            await until(lambda: producer._backlog.memory._waiting)
            producer.abandon(TP)
            with pytest.raises(ConnectionClosed, match="given up"):
                await waiting
            for failed in await asyncio.gather(*sent, return_exceptions=True):
                assert isinstance(failed, ConnectionClosed)
                assert "given up" in str(failed)
            assert producer.statistics()["buffered_bytes"] == 0
            await producer.close(timeout_ms=0)
