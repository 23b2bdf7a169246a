"""How transactions of a producer fail, are aborted, closed and fenced, against a scripted coordinator."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_client import TransactionalProducer
from kafka_client.errors import (
    AbortableTransactionError,
    ConfigError,
    ConnectionClosed,
    ErrorCode,
    FatalTransactionError,
    KafkaError,
    ProducerFenced,
)
from kafka_client.wire import ApiKey
from tests.kafka_client.fake_broker import CUT
from tests.kafka_client.fake_coordinator import (
    OFFSETS,
    SMALL,
    VERSIONS,
    coordinated,
    producing,
    record,
    send,
    transaction,
)
from tests.support.waiting import until


@VERSIONS
async def test_what_was_begun_behind_a_failed_commit_falls_with_it(version: int) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        answer = coordinator.ends[True] = asyncio.Event()
        coordinator.refuse(ApiKey.END_TXN, ErrorCode.TRANSACTION_ABORTABLE)
        producer.begin()
        await send(producer, b"a")
        closing = await producer.commit_soon()
        producer.begin()
        future = await send(producer, b"b")
        answer.set()
        for failed in (closing, future):
            with pytest.raises(AbortableTransactionError):
                await failed
        with pytest.raises(AbortableTransactionError):
            await send(producer, b"c")
        with pytest.raises(AbortableTransactionError):
            await producer.commit()
        await producer.abort()
        await transaction(producer, b"d")
        assert coordinator.committed == {0: [b"d"]}


@VERSIONS
async def test_a_failure_in_the_next_transaction_leaves_the_closing_one_alone(version: int) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        answer = coordinator.ends[True] = asyncio.Event()
        producer.begin()
        await send(producer, b"a")
        closing = await producer.commit_soon()
        producer.begin()
        lost = await producer.send("nowhere", 0, [record(b"b")])
        with pytest.raises(KafkaError):
            await lost
        with pytest.raises(AbortableTransactionError) as caught:
            await producer.commit()
        assert caught.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        answer.set()
        await closing
        await producer.abort()
        await transaction(producer, b"c")
        assert coordinator.committed == {0: [b"a", b"c"]}


async def test_version_1_raises_its_epoch_after_an_error_and_only_then() -> None:
    async with producing(1, linger_ms=0) as (coordinator, producer):
        producer.begin()
        await (await send(producer, b"a"))
        await producer.abort()
        assert "init at 0" not in coordinator.steps
        coordinator.refuse(ApiKey.PRODUCE, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        with pytest.raises(AbortableTransactionError):
            await transaction(producer, b"b")
        await producer.abort()
        assert coordinator.steps[-2:] == ["end abort at 0", "init at 0"]
        await transaction(producer, b"c")
        assert coordinator.steps[-2:] == ["produce 0@1", "end commit at 1"]
        assert coordinator.committed == {0: [b"c"]}


async def test_a_version_1_transaction_that_never_began_needs_no_end() -> None:
    async with producing(1) as (coordinator, producer):
        coordinator.refuse(ApiKey.ADD_PARTITIONS_TO_TXN, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        with pytest.raises(AbortableTransactionError):
            await transaction(producer, b"a")
        coordinator.refuse(ApiKey.END_TXN, ErrorCode.INVALID_TXN_STATE)
        await producer.abort()
        await transaction(producer, b"b")
        assert coordinator.committed == {0: [b"b"]}


@VERSIONS
async def test_a_producer_the_coordinator_forgot_gets_a_new_identity(version: int) -> None:
    async with producing(version) as (coordinator, producer):
        forgotten = ErrorCode.UNKNOWN_PRODUCER_ID
        coordinator.refuse(ApiKey.END_TXN, forgotten, forgotten)
        with pytest.raises(AbortableTransactionError):
            await transaction(producer, b"a")
        await producer.abort()
        assert coordinator.steps[-1] == "init at 0"
        await transaction(producer, b"b")
        assert coordinator.committed == {0: [b"b"]}


@VERSIONS
async def test_an_abort_that_finds_the_transactional_id_forgotten_is_fatal(version: int) -> None:
    """Kafka 4 does the same: another producer may own the id by now, and a new epoch would fence it."""
    async with producing(version, linger_ms=0) as (coordinator, producer):
        producer.begin()
        await (await send(producer, b"a"))
        coordinator.refuse(ApiKey.END_TXN, ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        for attempt in (producer.abort, producer.abort):
            with pytest.raises(FatalTransactionError) as caught:
                await attempt()
            assert caught.value.code is ErrorCode.INVALID_PRODUCER_ID_MAPPING
        with pytest.raises(FatalTransactionError):
            producer.begin()


@VERSIONS
async def test_an_abort_can_be_called_again(version: int) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        answer = coordinator.ends[False] = asyncio.Event()
        producer.begin()
        await (await send(producer, b"a"))
        first = asyncio.create_task(producer.abort())
        await until(lambda: "end abort at 0" in coordinator.steps)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        with pytest.raises(AbortableTransactionError):
            await send(producer, b"b")
        answer.set()
        await producer.abort()
        await transaction(producer, b"c")
        assert coordinator.committed == {0: [b"c"]}


@VERSIONS
async def test_an_abort_gives_up_what_waits(version: int) -> None:
    async with producing(version, linger_ms=600_000, **SMALL) as (
        coordinator,
        producer,
    ):
        release = asyncio.Event()

        async def hold(request: Any) -> Any:
            await release.wait()
            return coordinator.produce(request)

        coordinator.broker.on(ApiKey.PRODUCE, hold)
        producer.begin()
        future = await send(producer, b"x" * 3_000)
        waiting = asyncio.create_task(send(producer, b"y" * 3_000))
        await until(lambda: coordinator.broker.count(ApiKey.PRODUCE))
        aborting = asyncio.create_task(producer.abort())
        for given_up in (future, waiting):
            with pytest.raises(AbortableTransactionError):
                await given_up
        for _ in range(5):
            await producer.client.metadata(refresh=True)
        assert not [step for step in coordinator.steps if "end" in step]  # not before the answer
        release.set()
        await aborting
        coordinator.broker.on(ApiKey.PRODUCE, coordinator.produce)
        await transaction(producer, b"z")
        assert coordinator.committed == {0: [b"z"]}


@VERSIONS
async def test_what_is_not_acknowledged_in_time_is_aborted(version: int) -> None:
    async with coordinated(version) as (coordinator, client):
        coordinator.broker.on(ApiKey.PRODUCE, lambda request: CUT)
        async with TransactionalProducer(client, "id", linger_ms=0, delivery_timeout_ms=50) as producer:
            with pytest.raises(AbortableTransactionError) as caught:
                await transaction(producer, b"a")
            assert caught.value.code is ErrorCode.REQUEST_TIMED_OUT
            await producer.abort()
        coordinator.broker.on(ApiKey.PRODUCE, coordinator.produce)
        async with TransactionalProducer(client, "id", linger_ms=0) as producer:
            await transaction(producer, b"b")
        assert coordinator.committed == {0: [b"b"]}


@VERSIONS
async def test_a_send_cancelled_half_way_cannot_be_committed(version: int) -> None:
    async with producing(version, batch_size=2_000, **SMALL) as (
        coordinator,
        producer,
    ):
        release = asyncio.Event()

        async def hold(request: Any) -> Any:
            await release.wait()
            return coordinator.produce(request)

        coordinator.broker.on(ApiKey.PRODUCE, hold)
        producer.begin()
        half = asyncio.create_task(producer.send("t", 0, [record(b"x" * 1_500)] * 3))
        await until(lambda: coordinator.broker.count(ApiKey.PRODUCE))
        half.cancel()
        with pytest.raises(asyncio.CancelledError):
            await half
        release.set()
        with pytest.raises(AbortableTransactionError):
            await producer.commit()
        await producer.abort()
        coordinator.broker.on(ApiKey.PRODUCE, coordinator.produce)
        await transaction(producer, b"a")
        assert coordinator.committed == {0: [b"a"]}


@VERSIONS
async def test_close_waits_for_a_commit_and_aborts_what_is_open(version: int) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        producer.begin()
        await send(producer, b"a")
        closing = await producer.commit_soon()
        producer.begin()
        future = await send(producer, b"b")
    await closing
    assert coordinator.committed == {0: [b"a"]}
    assert future.done()
    with pytest.raises(ConnectionClosed):
        producer.begin()


async def test_a_close_that_waits_no_longer_fails_the_commit() -> None:
    async with producing(2, linger_ms=0) as (coordinator, producer):
        answer = coordinator.ends[True] = asyncio.Event()
        producer.begin()
        await send(producer, b"a")
        closing = await producer.commit_soon()
        await until(lambda: "end commit at 0" in coordinator.steps)
        await producer.close(timeout_ms=1)
        with pytest.raises(FatalTransactionError):
            await closing
        answer.set()


async def test_a_fenced_producer_is_told_by_every_call() -> None:
    async with producing(2) as (coordinator, producer):
        coordinator.refuse(ApiKey.END_TXN, ErrorCode.PRODUCER_FENCED)
        with pytest.raises(ProducerFenced):
            await transaction(producer, b"a")
        with pytest.raises(ProducerFenced):
            producer.begin()
        with pytest.raises(ProducerFenced):
            await send(producer, b"a")
        with pytest.raises(ProducerFenced):
            await producer.send_offsets(OFFSETS, "g")
        with pytest.raises(ProducerFenced):
            await producer.abort()


async def test_calls_out_of_place_are_refused() -> None:
    async with coordinated(2) as (_, client):
        with pytest.raises(ConfigError):
            TransactionalProducer(client, "")
        with pytest.raises(RuntimeError):
            TransactionalProducer(client, "id").begin()
        async with TransactionalProducer(client, "id") as producer:
            with pytest.raises(RuntimeError):
                await producer.start()
            with pytest.raises(RuntimeError):
                await send(producer, b"a")
            with pytest.raises(RuntimeError):
                await producer.commit()
            with pytest.raises(RuntimeError):
                await producer.abort()
            producer.begin()
            with pytest.raises(RuntimeError):
                producer.begin()
            with pytest.raises(ValueError, match="group"):
                await producer.commit(OFFSETS)
            await producer.commit(OFFSETS, "g")
