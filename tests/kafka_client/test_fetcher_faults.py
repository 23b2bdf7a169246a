from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, MalformedMessage, OffsetOutOfRange
from kafka_client.records import FileSlice, assign_offset, build_batch, read_header
from kafka_client.records.build import seal
from kafka_client.records.header import HEADER_SIZE, LOG_OVERHEAD
from kafka_client.wire import ApiKey
from kafka_client.wire.fetch import PartitionFetched
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.kafka_client.fake_broker import CUT, FakeBroker, ReceivedRequest
from tests.kafka_client.running import QUICK
from tests.support.waiting import until

TP = TopicPartition("t", 0)


def partition(records: bytes = b"", error_code: int = 0, index: int = 0) -> PartitionFetched[FileSlice]:
    return PartitionFetched(index, error_code, 100, 100, 0, records)


def one(offset: int, value: bytes = b"v") -> bytes:
    return build_batch([(0, None, value, ())], base_offset=offset)


def emptied(offset: int) -> bytes:
    """Return the empty batch that compaction leaves of a producer's last sequence."""
    header = read_header(one(offset))
    return seal(header._replace(batch_length=HEADER_SIZE - LOG_OVERHEAD, count=0), b"")


def log_of(count: int, *, per_answer: int = 1) -> Callable[[ReceivedRequest], Awaitable[bytes]]:
    """Return a Fetch script for `count` single-record batches; at the end it answers empty after 10 ms."""

    async def answer(request: ReceivedRequest) -> bytes:
        offset = request.message.topics[0].partitions[0].fetch_offset
        if offset >= count:
            await asyncio.sleep(0.01)
        return request.fetched(partition(b"".join(map(one, range(offset, min(offset + per_answer, count))))))

    return answer


def offsets(start: int, end: int) -> Callable[[ReceivedRequest], ListOffsetsResponse]:
    """Return a ListOffsets script for a log from `start` to `end`."""

    def answer(request: ReceivedRequest) -> ListOffsetsResponse:
        offset = start if request.message.topics[0].partitions[0].timestamp == -2 else end
        partitions = [ListOffsetsPartitionResponse(partition_index=0, offset=offset)]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=partitions)])

    return answer


async def read(fetcher: BatchFetcher, count: int) -> list[int]:
    """Offsets of the next `count` records."""
    offsets_read: list[int] = []
    while len(offsets_read) < count:
        for fetched in await fetcher.fetch():
            offsets_read += [record[0] for record in fetched.records()]
    return offsets_read


@pytest.mark.parametrize(
    "fault",
    [
        lambda request: CUT,
        lambda request: (500).to_bytes(4, "big") + request.correlation_id.to_bytes(4, "big") + b"cut",
        lambda request: request.fetched(partition(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)),
        lambda request: request.fetched(partition(error_code=ErrorCode.UNKNOWN_TOPIC_ID)),
        lambda request: request.fetched(partition(error_code=ErrorCode.FENCED_LEADER_EPOCH)),
        lambda request: request.fetched(partition(error_code=ErrorCode.OFFSET_NOT_AVAILABLE)),
        lambda request: request.fetched(partition(error_code=ErrorCode.KAFKA_STORAGE_ERROR)),
    ],
    ids=["cut", "cut inside", "not leader", "topic id", "fenced epoch", "not available", "storage"],
)
async def test_what_mends_is_not_seen(fault: Callable[[ReceivedRequest], object]) -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        answer = log_of(6)

        def cut_after(request: ReceivedRequest) -> object:
            answer = fault(request)
            if isinstance(answer, bytes) and answer.endswith(b"cut"):
                asyncio.get_running_loop().call_later(0.01, broker.cut_all)
            return answer

        broker.on(ApiKey.FETCH, answer, cut_after, answer, cut_after, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            assert await read(fetcher, 6) == list(range(6))


async def test_a_partition_is_followed_to_its_new_leader() -> None:
    async with FakeBroker(1) as old, FakeBroker(2, old.nodes) as new:
        async with Client(old.bootstrap, **QUICK) as client:
            old.on(ApiKey.FETCH, log_of(3))
            new.on(ApiKey.FETCH, log_of(6))
            async with BatchFetcher(client) as fetcher:
                fetcher.add(TP, 0)
                assert await read(fetcher, 3) == [0, 1, 2]
                old.topics["t"][0] = new.topics["t"][0] = 2
                moved = ErrorCode.NOT_LEADER_OR_FOLLOWER
                old.on(ApiKey.FETCH, lambda request: request.fetched(partition(error_code=moved)))
                assert await read(fetcher, 3) == [3, 4, 5]


async def test_an_answer_from_before_a_seek_is_discarded() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        sought = asyncio.Event()

        async def slow(request: ReceivedRequest) -> bytes:
            await sought.wait()
            return request.fetched(partition(one(0, b"stale")))

        broker.on(ApiKey.FETCH, slow, log_of(100))
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            await until(lambda: broker.count(ApiKey.FETCH) == 1)
            fetcher.seek(TP, 50)
            sought.set()
            (fetched, *_) = await fetcher.fetch()
            assert fetched.position == 50
            assert fetched.records()[0][0] == 50


async def test_a_removed_partition_is_never_handed_out() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.on(ApiKey.FETCH, log_of(100))
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            await until(lambda: fetcher.statistics()["buffered_bytes"])
            fetcher.remove(TP)
            assert await fetcher.fetch(timeout_ms=30) == []
            assert fetcher.assignment == set()


async def test_a_paused_partition_waits_and_keeps_its_place() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.on(ApiKey.FETCH, log_of(10))
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            await until(lambda: fetcher.statistics()["buffered_bytes"])
            fetcher.pause([TP])
            assert fetcher.paused() == {TP}
            assert await fetcher.fetch(timeout_ms=30) == []
            fetcher.resume([TP])
            assert await read(fetcher, 10) == list(range(10))
            assert fetcher.position(TP) == 10


@pytest.mark.parametrize(("policy", "first"), [("earliest", 20), ("latest", 25)])
async def test_out_of_range_goes_on_where_the_policy_says(policy: Any, first: int) -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        out = ErrorCode.OFFSET_OUT_OF_RANGE
        broker.on(ApiKey.FETCH, lambda request: request.fetched(partition(error_code=out)), log_of(30))
        broker.on(ApiKey.LIST_OFFSETS, offsets(20, 25))
        async with BatchFetcher(client, auto_offset_reset=policy) as fetcher:
            fetcher.add(TP, 7)
            assert await read(fetcher, 30 - first) == list(range(first, 30))


async def test_out_of_range_without_a_policy_says_by_how_much() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        out = ErrorCode.OFFSET_OUT_OF_RANGE
        broker.on(ApiKey.FETCH, lambda request: request.fetched(partition(error_code=out)), log_of(30))
        broker.on(ApiKey.LIST_OFFSETS, offsets(20, 25))
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 7)
            with pytest.raises(OffsetOutOfRange) as raised:
                await fetcher.fetch()
            error = raised.value
            facts = (error.topic, error.partition, error.offset, error.start, error.end)
            assert facts == ("t", 0, 7, 20, 25)
            assert await fetcher.fetch(timeout_ms=20) == []
            fetcher.seek(TP, 20)
            assert await read(fetcher, 10) == list(range(20, 30))


async def test_what_does_not_mend_is_raised_once_and_others_go_on() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        broker.topics["t"][1] = 1
        denied = ErrorCode.TOPIC_AUTHORIZATION_FAILED

        async def answer(request: ReceivedRequest) -> bytes:
            results = []
            for p in request.message.topics[0].partitions:
                if p.partition == 1:
                    results.append(partition(error_code=denied, index=1))
                elif p.fetch_offset < 3:
                    results.append(partition(one(p.fetch_offset)))
            if not results:
                await asyncio.sleep(0.01)
            return request.fetched(*results)

        broker.on(ApiKey.FETCH, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({TP: 0, TopicPartition("t", 1): 0})
            offsets_read: list[int] = []
            codes: list[int] = []
            while len(offsets_read) < 3 or not codes:
                try:
                    offsets_read += await read(fetcher, 1)
                except KafkaError as error:
                    codes.append(error.code)
            assert offsets_read == [0, 1, 2]
            assert codes == [denied]
            assert await fetcher.fetch(timeout_ms=30) == []


async def test_a_topic_that_is_not_there_is_named() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TopicPartition("nowhere", 3), 0)
            with pytest.raises(KafkaError, match="nowhere-3"):
                await fetcher.fetch()


async def test_a_batch_cut_off_at_the_end_is_left_for_the_next_fetch() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:

        async def answer(request: ReceivedRequest) -> bytes:
            offset = request.message.topics[0].partitions[0].fetch_offset
            if offset == 0:
                return request.fetched(partition(one(0) + one(1)[:-3]))
            return await log_of(2)(request)

        broker.on(ApiKey.FETCH, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            assert await read(fetcher, 2) == [0, 1]


async def test_answers_without_a_record_are_passed_over() -> None:
    """Apache Kafka gives batches that compaction took all records from, one by one here, and at the end."""
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:

        async def answer(request: ReceivedRequest) -> bytes:
            offset = request.message.topics[0].partitions[0].fetch_offset
            if offset == 24:
                await asyncio.sleep(0.01)
                return request.fetched(partition())
            return request.fetched(partition(one(offset) if offset == 20 else emptied(offset)))

        broker.on(ApiKey.FETCH, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            assert await read(fetcher, 1) == [20]
            while fetcher.position(TP) < 24:
                for fetched in await fetcher.fetch():
                    assert fetched.records() == []


async def test_garbage_in_place_of_an_answer_is_raised() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:

        def garbage(request: ReceivedRequest) -> bytes:
            body = request.correlation_id.to_bytes(4, "big") + b"\0" * 4 + b"\xff" * 40
            return len(body).to_bytes(4, "big") + body

        broker.on(ApiKey.FETCH, garbage)
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            with pytest.raises(MalformedMessage):
                await fetcher.fetch()


async def test_the_buffer_keeps_its_bound() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        batch = len(one(0))
        broker.on(ApiKey.FETCH, log_of(500))
        async with BatchFetcher(
            client, buffer_max_bytes=10 * batch, max_partition_fetch_bytes=3 * batch
        ) as fetcher:
            fetcher.add(TP, 0)
            await until(lambda: fetcher.statistics()["buffered_bytes"] >= 10 * batch)
            request = broker.count(ApiKey.FETCH)
            for _ in range(20):
                await asyncio.sleep(0.001)
            assert broker.count(ApiKey.FETCH) == request
            assert fetcher.statistics()["buffered_bytes"] <= 11 * batch
            assert all(a.message.max_bytes <= 10 * batch for a in broker.requests if a.api_key == 1)
            assert await read(fetcher, 500) == list(range(500))


async def test_paused_partitions_do_not_starve_the_others() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.topics["t"] = {0: 1, 1: 1}
        big = 1000

        async def answer(request: ReceivedRequest) -> bytes:
            requested = request.message.topics[0].partitions
            if all(p.partition == 1 and p.fetch_offset >= 5 for p in requested):
                await asyncio.sleep(0.01)
            return request.fetched(
                *(
                    partition(one(p.fetch_offset, b"x" * big), index=p.partition)
                    for p in requested
                    if p.partition == 0 or p.fetch_offset < 5
                )
            )

        broker.on(ApiKey.FETCH, answer)
        other = TopicPartition("t", 1)
        async with BatchFetcher(client, buffer_max_bytes=big, max_partition_fetch_bytes=big) as fetcher:
            fetcher.add(TP, 0)
            await until(lambda: fetcher.statistics()["buffered_bytes"] >= big)
            fetcher.pause([TP])
            fetcher.add(other, 0)
            assert await read(fetcher, 5) == [0, 1, 2, 3, 4]
            fetcher.resume([TP])
            assert fetcher.position(TP) == 0
            assert (await read(fetcher, 2))[:2] == [0, 1]


async def test_a_bounded_fetch_takes_turns() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.topics["t"] = {0: 1, 1: 1}

        async def answer(request: ReceivedRequest) -> bytes:
            requested = [p for p in request.message.topics[0].partitions if p.fetch_offset < 50]
            if not requested:
                await asyncio.sleep(0.01)
            return request.fetched(*(partition(one(p.fetch_offset), index=p.partition) for p in requested))

        broker.on(ApiKey.FETCH, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({TP: 0, TopicPartition("t", 1): 0})
            await until(lambda: fetcher.statistics()["buffered_bytes"] >= 100 * len(one(0)))
            turns = [(await fetcher.fetch(max_bytes=1))[0].tp.partition for _ in range(6)]
            assert turns == [0, 1, 0, 1, 0, 1]


async def test_fetching_ends_when_the_client_closes() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap, **QUICK) as client:
        broker.on(ApiKey.FETCH, log_of(0))
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            waiting = asyncio.create_task(fetcher.fetch())
            await until(lambda: broker.count(ApiKey.FETCH))
            await client.close()
            with pytest.raises(ConnectionClosed):
                await waiting


async def test_one_fetch_hands_out_a_bounded_part_of_what_is_buffered() -> None:
    """Calls of `fetch` are bounded: one once returned the whole buffer, decompressed into memory."""
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        many = build_batch([(0, None, b"", ())] * 4_000)
        large = build_batch([(0, None, b"x" * 400_000, ())])

        async def answer(request: ReceivedRequest) -> bytes:
            offset, batches = request.message.topics[0].partitions[0].fetch_offset, b""
            if offset:
                await asyncio.sleep(0.01)
                return request.fetched(partition())
            for batch in [many] * 5 + [large] * 5:
                placed = bytearray(batch)
                assign_offset(placed, offset, 0)
                offset = read_header(placed).next_offset
                batches += placed
            return request.fetched(partition(batches))

        broker.on(ApiKey.FETCH, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            await until(lambda: fetcher.statistics()["buffered_bytes"])
            counts = []
            while fetcher.statistics()["buffered_bytes"]:
                (fetched,) = await fetcher.fetch()
                counts.append(len(fetched.records()))
                assert fetcher.position(TP) == fetched.next_offset
            # 10,000 records, or a megabyte, whichever comes first; the bytes of the last record batches.
            assert counts == [8_000, 8_000, 4_002, 2, 1]


async def test_a_quiet_partition_keeps_no_large_response_in_memory() -> None:
    async with FakeBroker() as broker, Client(broker.bootstrap) as client:
        broker.topics["t"] = {0: 1, 1: 1}

        async def answer(request: ReceivedRequest) -> bytes:
            requested = [p for p in request.message.topics[0].partitions if p.fetch_offset == 0]
            if not requested:
                await asyncio.sleep(0.01)
            sizes = {0: 500_000, 1: 10}
            return request.fetched(
                *(partition(one(0, b"x" * sizes[p.partition]), index=p.partition) for p in requested)
            )

        broker.on(ApiKey.FETCH, answer)
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({TP: 0, TopicPartition("t", 1): 0})
            results: dict[int, Any] = {}
            while len(results) < 2:
                results |= {fetched.tp.partition: fetched for fetched in await fetcher.fetch()}
            assert len(results[1].buffer.obj) < 100
            assert len(results[0].buffer.obj) > 500_000, "what makes up most of a response is not copied"
