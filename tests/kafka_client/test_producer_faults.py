from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kafka_client import BatchProducer, Client
from kafka_client.errors import (
    ConfigError,
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    MillstreamError,
    RequestTimedOut,
)
from kafka_client.records import build_batch, build_end_marker, read_header
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.init_producer_id import InitProducerIdResponse
from tests.kafka_client.fake_broker import CUT, SILENCE, FakeBroker, ReceivedRequest
from tests.kafka_client.fake_log import FakeLog, append_all
from tests.kafka_client.running import QUICK
from tests.support.depth import deep
from tests.support.waiting import until


class Stage:
    """A fake broker with logs, and a producer at it. `faults` come before the log answers, one a request."""

    def __init__(self, broker: FakeBroker, client: Client) -> None:
        self.broker = broker
        self.client = client
        self.logs: dict[int, FakeLog] = {0: FakeLog()}
        self.faults: list[Callable[[ReceivedRequest], Any]] = []
        broker.on(ApiKey.PRODUCE, self._produce)

    def _produce(self, request: ReceivedRequest) -> Any:
        return self.faults.pop(0)(request) if self.faults else append_all(self.logs, request)

    def refuse(self, code: ErrorCode) -> None:
        """Answer the next request's batches with this error, without appending them."""
        self.faults.append(
            lambda request: request.produced(*((p, code, -1) for p, _ in request.message.topics[0][1]))
        )

    def lose_answer(self) -> None:
        """Append the next request's batches, but cut the connection before the answer."""
        self.faults.append(lambda request: append_all(self.logs, request) and CUT)

    @property
    def values(self) -> list[bytes | None]:
        return self.logs[0].values


@asynccontextmanager
async def stage(**settings: Any) -> AsyncIterator[Stage]:
    async with FakeBroker() as broker, Client(broker.bootstrap, **{**QUICK, **settings}) as client:
        yield Stage(broker, client)


def values(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


async def send(
    producer: BatchProducer, numbers: range, size: int = 1, partition: int = 0
) -> list[asyncio.Future[int | None]]:
    """Send one batch for each `size` numbers."""
    futures = []
    for start in range(numbers.start, numbers.stop, size):
        records = [(0, None, value, ()) for value in values(start, min(start + size, numbers.stop))]
        futures.append(await producer.send("t", partition, records))
    return futures


async def test_batches_arrive_once_and_in_order() -> None:
    async with stage() as on, BatchProducer(on.client, linger_ms=0, batch_size=120) as producer:
        futures = await send(producer, range(100), 3)
        assert [await future for future in futures] == list(range(0, 100, 3))
        assert on.values == values(0, 100)


async def test_a_lost_answer_makes_no_duplicate() -> None:
    async with stage() as on, BatchProducer(on.client, batch_size=120) as producer:
        on.lose_answer()
        futures = await send(producer, range(30), 3)
        assert [await future for future in futures] == list(range(0, 30, 3))
        assert on.values == values(0, 30)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ],
)
async def test_a_batch_refused_for_now_keeps_its_place(code: ErrorCode) -> None:
    """Later batches in flight are refused as out of order, and all are sent again."""
    async with stage() as on, BatchProducer(on.client, batch_size=80) as producer:
        on.refuse(code)
        futures = await send(producer, range(20), 2)
        assert [await future for future in futures] == list(range(0, 20, 2))
        assert on.values == values(0, 20)
        assert set(on.logs[0].epochs.values()) == {0}


async def test_state_the_broker_lost_is_begun_anew_with_a_higher_epoch() -> None:
    async with stage() as on, BatchProducer(on.client, batch_size=80) as producer:
        await asyncio.gather(*await send(producer, range(4), 2))
        on.refuse(ErrorCode.UNKNOWN_PRODUCER_ID)
        futures = await send(producer, range(4, 10), 2)
        assert [await future for future in futures] == [4, 6, 8]
        assert on.values == values(0, 10)
        assert set(on.logs[0].epochs.values()) == {1}


async def test_a_batch_given_up_does_not_stop_those_behind_it() -> None:
    async with stage() as on, BatchProducer(on.client, batch_size=80) as producer:
        on.refuse(ErrorCode.INVALID_RECORD)
        futures = await send(producer, range(10), 2)
        with pytest.raises(KafkaError, match="INVALID_RECORD"):
            await futures[0]
        assert [await future for future in futures[1:]] == [0, 2, 4, 6]
        assert on.values == values(2, 10)


async def test_a_forgotten_duplicate_counts_as_success() -> None:
    async with stage() as on, BatchProducer(on.client) as producer:
        on.refuse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        (future,) = await send(producer, range(1))
        assert await future is None


async def test_a_batch_too_large_for_the_topic_is_halved() -> None:
    async with stage() as on, BatchProducer(on.client, max_in_flight=1, linger_ms=60_000) as producer:
        too_large: list[int] = []

        def limited(request: ReceivedRequest) -> object:
            ((_, ((_, batch),)),) = request.message.topics
            if read_header(batch).count > 10:
                too_large.append(read_header(batch).count)
                return request.produced((0, ErrorCode.MESSAGE_TOO_LARGE, -1))
            return append_all(on.logs, request)

        on.broker.on(ApiKey.PRODUCE, limited)
        futures = [*await send(producer, range(30), 30), *await send(producer, range(30, 60), 30)]
        await producer.flush()
        assert [await future for future in futures] == [0, 30]
        assert on.values == values(0, 60)
        assert set(on.logs[0].epochs.values()) == {0}
        assert too_large[:3] == [60, 30, 15]


async def test_a_single_record_too_large_for_the_topic_fails() -> None:
    async with stage() as on, BatchProducer(on.client) as producer:
        on.refuse(ErrorCode.MESSAGE_TOO_LARGE)
        (future,) = await send(producer, range(1))
        with pytest.raises(KafkaError, match="t-0"):
            await future


async def test_a_record_larger_than_a_request_is_refused_at_once() -> None:
    async with stage() as on, BatchProducer(on.client, max_request_size=1000) as producer:
        with pytest.raises(KafkaError, match="max_request_size is 1000"):
            await producer.send("t", 0, [(0, None, b"small", ()), (0, None, b"x" * 1000, ())])
        assert producer.statistics()["buffered_bytes"] == 0
        await producer.flush()
        assert on.values == []


@deep
async def test_an_unanswered_batch_fails_after_the_delivery_timeout() -> None:
    async with stage() as on, BatchProducer(on.client, delivery_timeout_ms=3000) as producer:
        on.faults.append(lambda _: SILENCE)
        (future,) = await send(producer, range(1))
        with pytest.raises(RequestTimedOut, match="t-0"):
            await future
        assert producer.statistics()["buffered_bytes"] == 0
        on.broker.cut_all()
        # Sequence 0 never reached the log: the next batch finds out and begins a new epoch.
        (future,) = await send(producer, range(1, 2))
        assert await future == 0
        assert on.values == [b"1"]


async def test_what_is_sent_to_a_topic_that_is_not_there_fails() -> None:
    async with stage() as on, BatchProducer(on.client) as producer:
        future = await producer.send("nowhere", 0, [(0, None, b"v", ())])
        with pytest.raises(KafkaError, match="nowhere-0"):
            await future
        assert producer.statistics()["buffered_bytes"] == 0


async def test_a_full_buffer_makes_send_wait() -> None:
    async with stage() as on:
        gate = asyncio.Event()

        async def answer_later(request: ReceivedRequest) -> object:
            await gate.wait()
            return append_all(on.logs, request)

        on.broker.on(ApiKey.PRODUCE, answer_later)
        async with BatchProducer(
            on.client, buffer_memory=2000, max_request_size=1000, batch_size=500, linger_ms=50
        ) as producer:
            sending = asyncio.create_task(send(producer, range(200)))
            await until(lambda: on.broker.count(ApiKey.PRODUCE))
            assert producer.statistics()["buffered_bytes"] <= 2000
            assert not sending.done()
            gate.set()
            for future in await sending:
                await future
            assert on.values == values(0, 200)


async def test_a_send_given_up_while_it_waits_for_room_leaves_no_trace() -> None:
    async with stage() as on:
        gate = asyncio.Event()

        async def answer_later(request: ReceivedRequest) -> object:
            await gate.wait()
            return append_all(on.logs, request)

        on.broker.on(ApiKey.PRODUCE, answer_later)
        async with BatchProducer(on.client, buffer_memory=1000, max_request_size=1000) as producer:
            (first,) = await send(producer, range(20), 20)
            waiting = asyncio.create_task(send(producer, range(20, 40), 20))
            await until(lambda: on.broker.count(ApiKey.PRODUCE))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            gate.set()
            await first
            await producer.flush()
            assert on.values == values(0, 20)
            assert producer.statistics()["buffered_bytes"] == 0


async def test_partitions_of_one_broker_share_a_request() -> None:
    async with stage() as on:
        on.broker.topics["t"] = dict.fromkeys(range(5), 1)
        async with BatchProducer(on.client, linger_ms=10_000) as producer:
            for partition in range(5):
                await send(producer, range(10), 10, partition)
            await producer.flush()
        assert on.broker.count(ApiKey.PRODUCE) == 1
        assert all(log.values == values(0, 10) for log in on.logs.values())


async def test_closing_fails_what_is_not_acked_in_time() -> None:
    async with stage() as on:
        on.faults += [lambda _: SILENCE] * 3
        producer = await BatchProducer(on.client).start()
        (future,) = await send(producer, range(1))
        await producer.close(timeout_ms=30)
        with pytest.raises(ConnectionClosed):
            await future
        with pytest.raises(ConnectionClosed):
            await send(producer, range(1))


@pytest.mark.parametrize("acks", [0, 1])
async def test_without_idempotence_order_is_kept_as_well(acks: int) -> None:
    async with stage() as on:
        if acks == 0:

            def mute(request: ReceivedRequest) -> object:
                append_all(on.logs, request)
                return SILENCE

            on.broker.on(ApiKey.PRODUCE, mute)
        else:
            on.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        async with BatchProducer(on.client, acks=acks, batch_size=80) as producer:
            futures = await send(producer, range(20), 2)
            offsets = [await future for future in futures]
            assert offsets == ([None] * 10 if acks == 0 else list(range(0, 20, 2)))
            await until(lambda: len(on.values) == 20)
            assert on.values == values(0, 20)
        assert on.broker.count(ApiKey.INIT_PRODUCER_ID) == 0


async def test_a_batch_is_passed_on_under_our_own_name() -> None:
    async with stage() as on, BatchProducer(on.client) as producer:
        records = [(5, b"k", value, ()) for value in values(0, 3)]
        foreign = build_batch(
            records,
            base_offset=900,
            producer_id=5,
            producer_epoch=3,
            base_sequence=9,
            transactional=True,
        )
        futures = [
            await producer.send_batch("t", 0, foreign),
            *await send(producer, range(3, 5), 2),
            await producer.send_batch("t", 0, memoryview(foreign)),
        ]
        assert [await future for future in futures] == [0, 3, 5]
        assert on.logs[0].epochs == {77: 0}
        assert on.values == values(0, 5) + values(0, 3)


async def test_batches_no_client_may_produce_are_refused() -> None:
    async with stage() as on, BatchProducer(on.client, max_request_size=2000) as producer:
        marker = build_end_marker(0, timestamp_ms=0, producer_id=1, producer_epoch=0, coordinator_epoch=0)
        gap = bytearray(build_batch([(0, None, b"v", ())] * 2))
        gap[26] += 1
        for batch in (marker, bytes(gap)):
            with pytest.raises(KafkaError, match="INVALID_RECORD"):
                await producer.send_batch("t", 0, batch)
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            await producer.send_batch("t", 0, build_batch([(0, None, b"v" * 3000, ())]))


async def test_nothing_to_send_is_done_at_once() -> None:
    async with stage() as on, BatchProducer(on.client) as producer:
        assert await (await producer.send("t", 0, [])) is None


async def test_settings_are_checked() -> None:
    async with stage() as on:
        for bad in ({"acks": 2}, {"max_in_flight": 6}, {"buffer_memory": 10}):
            with pytest.raises(ConfigError, match=next(iter(bad))):
                BatchProducer(on.client, **bad)  # type: ignore[arg-type]


@deep
@pytest.mark.parametrize("seed", range(12))
async def test_every_record_once_and_in_order_whatever_happens(seed: int) -> None:
    """Fault model: a request may be lost before or after it is appended, refused, answered
    late or not at all.
    """
    chance = random.Random(seed)
    print(f"seed {seed}")
    async with stage(request_timeout_ms=200) as on:
        on.broker.topics["t"] = {0: 1, 1: 1}
        on.logs[1] = FakeLog()

        async def troubled(request: ReceivedRequest) -> object:
            what = chance.random()
            if what < 0.08:
                return CUT
            if what < 0.16:
                append_all(on.logs, request)
                return CUT
            if what < 0.18:
                append_all(on.logs, request)
                return SILENCE
            if what < 0.26:
                code = chance.choice([ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS])
                return request.produced(*((p, code, -1) for p, _ in request.message.topics[0][1]))
            if what < 0.4:
                await asyncio.sleep(0.002)
            return append_all(on.logs, request)

        on.broker.on(ApiKey.PRODUCE, troubled)
        async with BatchProducer(on.client, linger_ms=0, batch_size=120) as producer:
            sent: dict[int, int] = {0: 0, 1: 0}
            futures = []
            for _ in range(80):
                partition = chance.randrange(2)
                count = chance.randrange(1, 6)
                start = sent[partition]
                futures += await send(producer, range(start, start + count), count, partition)
                sent[partition] += count
                if chance.random() < 0.3:
                    await asyncio.sleep(0.001)
            for future in futures:
                await future
        for partition, count in sent.items():
            assert on.logs[partition].values == values(0, count)


async def test_a_fatal_answer_to_the_request_for_an_id_is_raised() -> None:
    async with stage() as on:
        denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        on.broker.on(ApiKey.INIT_PRODUCER_ID, lambda _: InitProducerIdResponse(error_code=denied))
        with pytest.raises(MillstreamError, match="CLUSTER_AUTHORIZATION_FAILED"):
            await BatchProducer(on.client).start()


async def test_a_record_that_cannot_be_encoded_fails_what_waits() -> None:
    """Its batch must not be lost on the way from the queue to the request: nobody would hear of it."""
    async with stage() as at, BatchProducer(at.client, linger_ms=0) as producer:
        future = await producer.send("t", 0, [(1 << 70, None, b"v", ())])
        with pytest.raises(ConnectionClosed, match="the producer failed"):
            await asyncio.wait_for(future, 100)


async def test_an_answer_that_fails_for_many_partitions_is_one_failure() -> None:
    """Backoff grows once per answer: a broker that shuts down refuses all partitions it led at once."""
    partitions = 30
    async with (
        stage(retry_backoff_max_ms=3_600_000) as on,
        BatchProducer(on.client, linger_ms=3_600_000) as producer,
    ):
        on.broker.topics["t"] = dict.fromkeys(range(partitions), on.broker.node_id)
        on.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        futures = [
            future for index in range(partitions) for future in await send(producer, range(1), 1, index)
        ]
        await producer.flush()
        assert [await future for future in futures] == [0] * partitions
        first = next(request for request in on.broker.requests if request.api_key == ApiKey.PRODUCE)
        assert len(first.message.topics[0][1]) == partitions
