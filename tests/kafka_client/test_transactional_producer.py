"""The transactional producer against a scripted coordinator: what it asks, when, and what it holds back."""

from __future__ import annotations

import asyncio

import pytest

from kafka_client import Client, OffsetAndMetadata, TopicPartition, TransactionalProducer
from kafka_client.errors import (
    AbortableTransactionError,
    ErrorCode,
    KafkaError,
)
from kafka_client.producer.transaction_coordinator import PART_BYTES
from kafka_client.producer.transaction_manager import Offsets
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.end_txn import EndTxnResponse
from kafka_client.wire.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.kafka_client.fake_broker import FakeBroker, ReceivedRequest
from tests.kafka_client.fake_coordinator import (
    OFFSETS,
    SMALL,
    VERSIONS,
    FakeCoordinator,
    produced,
    producing,
    send,
    transaction,
)
from tests.kafka_client.running import QUICK, run
from tests.support.waiting import until


async def test_version_1_adds_partitions_and_groups_first() -> None:
    async with producing(1) as (coordinator, producer):
        assert producer.transaction_version == 1
        for _ in range(2):
            producer.begin()
            await send(producer, b"a")
            await send(producer, b"b", 1)
            await producer.commit(OFFSETS, "g")
        once = ["add 0 1", "add offsets g", "offsets g -1", "produce 0@0 1@0", "end commit at 0"]
        assert sorted(coordinator.steps[1:6]) == sorted(coordinator.steps[6:]) == sorted(once)
        assert coordinator.steps[0] == "init"
        assert coordinator.steps.index("add 0 1") < coordinator.steps.index("produce 0@0 1@0")
        assert coordinator.steps[5] == coordinator.steps[-1] == "end commit at 0"
        assert coordinator.committed == {0: [b"a", b"a"], 1: [b"b", b"b"]}


@VERSIONS
async def test_many_offsets_are_committed_in_several_requests(version: int) -> None:
    """Requests are split, since a group's log limits the size of one append."""
    note = "x" * 1000
    offsets = {TopicPartition("in", number): OffsetAndMetadata(number, note) for number in range(500)}
    async with producing(version) as (coordinator, producer):
        producer.begin()
        await producer.commit(offsets, "g")
        assert coordinator.steps.count("offsets g -1") == 500 * 1202 // PART_BYTES + 1
        assert coordinator.offsets == {str(tp): tp.partition for tp in offsets}


async def test_version_2_adds_by_writing_and_has_an_epoch_for_each_transaction() -> None:
    async with producing(2) as (coordinator, producer):
        assert producer.transaction_version == 2
        await transaction(producer, b"a")
        producer.begin()
        await (await send(producer, b"x"))
        await producer.abort()
        await transaction(producer, b"b")
        assert coordinator.steps == [
            "init",
            "produce 0@0",
            "end commit at 0",
            "produce 0@1",
            "end abort at 1",
            "produce 0@2",
            "end commit at 2",
        ]
        assert coordinator.committed == {0: [b"a", b"b"]}


@VERSIONS
async def test_an_empty_transaction_asks_nobody(version: int) -> None:
    async with producing(version) as (coordinator, producer):
        await transaction(producer)
        producer.begin()
        await producer.abort()
        producer.begin()
    assert coordinator.steps == ["init"]


@VERSIONS
async def test_the_next_transaction_is_filled_while_one_is_closing(version: int) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        answer = coordinator.ends[True] = asyncio.Event()
        producer.begin()
        await send(producer, b"a")
        closing = await producer.commit_soon()
        producer.begin()
        futures = [await send(producer, b"b"), await send(producer, b"c", 1)]
        await until(lambda: "end commit at 0" in coordinator.steps)
        assert not closing.done()
        assert produced(coordinator) == ["produce 0@0"]
        answer.set()
        await closing
        await asyncio.gather(*futures)
        await producer.commit()
        assert coordinator.committed == {0: [b"a", b"b"], 1: [b"c"]}
        ends = [step for step in coordinator.steps if step.startswith("end")]
        assert ends == ["end commit at 0", f"end commit at {1 if version == 2 else 0}"]


@VERSIONS
async def test_offsets_may_depend_on_where_records_landed(version: int) -> None:
    """Offsets may be a function, called once all batches are acknowledged; its errors fail the commit."""
    async with producing(version, linger_ms=0) as (coordinator, producer):
        for landed_well in (True, False):
            producer.begin()
            ack = await send(producer, b"a")

            def offsets(ack: asyncio.Future[int | None] = ack, well: bool = landed_well) -> Offsets:
                assert ack.result() is not None
                if not well:
                    raise AbortableTransactionError(ErrorCode.TRANSACTION_ABORTABLE, "landed badly")
                return OFFSETS

            closing = await producer.commit_soon(offsets, "g")
            if landed_well:
                await closing
                produced_at = coordinator.steps.index("produce 0@0")
                assert produced_at < coordinator.steps.index("offsets g -1")
            else:
                with pytest.raises(AbortableTransactionError, match="landed badly"):
                    await closing
                await producer.abort()
        assert coordinator.committed == {0: [b"a"]}
        assert coordinator.steps.count("offsets g -1") == 1


@VERSIONS
def test_what_waits_for_a_closing_transaction_is_bounded(version: int) -> None:
    async def test() -> None:
        async with producing(version, linger_ms=0, **SMALL) as (
            coordinator,
            producer,
        ):
            answer = coordinator.ends[True] = asyncio.Event()
            await_ended = await self_closing(producer)
            producer.begin()
            await send(producer, b"x" * 3_000)
            waiting = asyncio.create_task(send(producer, b"y" * 3_000))
            offsets = asyncio.create_task(producer.send_offsets(OFFSETS, "g"))
            await until(lambda: "end commit at 0" in coordinator.steps)
            assert not waiting.done()
            assert not offsets.done()
            answer.set()
            await await_ended
            await waiting
            await offsets
            await producer.commit()
            assert [len(value or b"") for value in coordinator.committed[0]] == [1, 3_000, 3_000]
            assert coordinator.offsets == {"in-0": 5}

    async def self_closing(producer: TransactionalProducer) -> asyncio.Future[None]:
        producer.begin()
        await send(producer, b"a")
        return await producer.commit_soon()

    run(test())


@VERSIONS
async def test_one_transaction_is_closing_at_a_time(version: int) -> None:
    async with producing(version) as (coordinator, producer):
        answer = coordinator.ends[True] = asyncio.Event()
        producer.begin()
        await send(producer, b"a")
        first = await producer.commit_soon()
        producer.begin()
        await send(producer, b"b")
        second = asyncio.create_task(producer.commit_soon())
        await until(lambda: "end commit at 0" in coordinator.steps)
        assert not second.done()
        with pytest.raises(RuntimeError):
            await send(producer, b"too late")
        answer.set()
        await (await second)
        assert first.done()
        assert coordinator.committed == {0: [b"a", b"b"]}


@VERSIONS
@pytest.mark.parametrize("commit", [True, False])
async def test_an_end_whose_answer_is_lost_is_asked_for_again_under_its_epoch(
    version: int, commit: bool
) -> None:
    async with producing(version, linger_ms=0) as (coordinator, producer):
        for _ in range(2):
            coordinator.lose(ApiKey.END_TXN)
        producer.begin()
        await (await send(producer, b"a"))
        await (producer.commit() if commit else producer.abort())
        end = f"end {'commit' if commit else 'abort'} at 0"
        assert [step for step in coordinator.steps if "end" in step] == [f"{end} → lost"] * 2 + [end]
        await transaction(producer, b"b")
        assert coordinator.committed == {0: [b"a", b"b"] if commit else [b"b"]}


async def test_the_version_follows_the_cluster_once_the_coordinator_was_away() -> None:
    async with producing(1) as (coordinator, producer):
        await transaction(producer, b"a")
        producer.begin()
        await (await send(producer, b"b"))
        coordinator.lose(ApiKey.END_TXN)
        # From here on the broker says 2; the transaction that is open still ends by version 1.
        coordinator.version = 2
        coordinator.broker.on(ApiKey.END_TXN, coordinator.end_of_any_version)
        await producer.commit()
        assert coordinator.steps[-1] == "init at 0"
        assert producer.transaction_version == 2
        await transaction(producer, b"c")
        assert coordinator.steps[-2:] == ["produce 0@1", "end commit at 1"]
        assert coordinator.committed == {0: [b"a", b"b", b"c"]}


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
async def test_a_coordinator_that_moved_is_looked_up(code: ErrorCode) -> None:
    async with FakeBroker() as first, FakeBroker(2, first.nodes) as second:
        coordinator = FakeCoordinator(first, 2)
        coordinator.serve_at(first)
        coordinator.serve_at(second)
        at = [first]

        def find_coordinator(request: ReceivedRequest) -> FindCoordinatorResponse:
            return FindCoordinatorResponse(
                coordinators=[Coordinator(node_id=at[0].node_id, host="127.0.0.1", port=at[0].port)]
            )

        for broker in (first, second):
            broker.on(ApiKey.FIND_COORDINATOR, find_coordinator)
        async with (
            Client(first.bootstrap, **QUICK) as client,
            TransactionalProducer(client, "id", linger_ms=0) as producer,
        ):
            await transaction(producer, b"a")
            at[0] = second
            first.on(ApiKey.END_TXN, lambda request: EndTxnResponse(error_code=code))
            await transaction(producer, b"b")
            assert second.count(ApiKey.END_TXN) == 1
        assert coordinator.committed == {0: [b"a", b"b"]}


@VERSIONS
async def test_a_commit_that_was_not_waited_for_can_be_waited_for_again(version: int) -> None:
    async with producing(version) as (coordinator, producer):
        answer = coordinator.ends[True] = asyncio.Event()
        producer.begin()
        await send(producer, b"a")
        first = asyncio.create_task(producer.commit())
        await until(lambda: "end commit at 0" in coordinator.steps)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        again = asyncio.create_task(producer.commit())
        answer.set()
        await again
        assert coordinator.steps.count("end commit at 0") == 1
        assert coordinator.committed == {0: [b"a"]}


@VERSIONS
async def test_a_record_too_large_is_refused_and_the_transaction_goes_on(version: int) -> None:
    async with producing(version, max_request_size=1_000) as (coordinator, producer):
        producer.begin()
        with pytest.raises(KafkaError):
            await send(producer, b"x" * 2_000)
        await producer.commit()
        assert not produced(coordinator)
        producer.begin()
        with pytest.raises(KafkaError):
            await send(producer, b"x" * 2_000, 1)
        await send(producer, b"a")
        await producer.commit()
        assert coordinator.committed == {0: [b"a"]}
