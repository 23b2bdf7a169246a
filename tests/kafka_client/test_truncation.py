"""Logs that lose what was read and are written again at the same offsets (KIP-320).

A broker that lost power starts with less than it acknowledged, in a new leader epoch. A reader that was past
the new end went on at its old offset, and missed the records written before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka_client import BatchFetcher, Client, Consumer, OffsetAndMetadata, TopicPartition
from kafka_client.errors import LogTruncated, OffsetOutOfRange
from kafka_client.fetcher.epochs import ReadEpochs
from kafka_client.wire import ApiKey
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tests.kafka_client.epoch_log import EpochLog
from tests.kafka_client.fake_broker import FakeBroker, ReceivedRequest
from tests.kafka_client.running import QUICK, run
from tests.support.waiting import until

TP = TopicPartition("t", 0)

Case = Callable[[EpochLog, Client], Coroutine[Any, Any, None]]


def with_log(case: Case, *, compares: bool = True, fetch: tuple[int, int] = (4, 17)) -> None:
    async def test() -> None:
        async with FakeBroker() as broker:
            broker.served[ApiKey.FETCH] = fetch
            log = EpochLog(broker, compares=compares)
            async with Client(broker.bootstrap, **QUICK) as client:
                await case(log, client)

    run(test())


async def values(fetcher: BatchFetcher | Consumer, count: int) -> list[bytes | None]:
    values_so_far: list[bytes | None] = []
    while len(values_so_far) < count:
        for fetched in await fetcher.fetch():
            values_so_far += [record[3] for record in fetched.records()]
    return values_so_far


HOW_IT_IS_NOTICED = pytest.mark.parametrize(
    "broker",
    [
        {"fetch": (4, 17)},
        {"fetch": (4, 17), "compares": False},
        {"fetch": (4, 11)},
    ],
    ids=["by the fetch", "by asking for the epoch's end", "with a broker before Fetch 12"],
)


@HOW_IT_IS_NOTICED
def test_truncation_is_told_with_where_the_logs_part(broker: dict[str, Any]) -> None:
    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b", b"c", b"d")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            assert await values(fetcher, 4) == [b"a", b"b", b"c", b"d"]
            log.truncate(2)
            log.append(b"C", b"D", b"E", b"F")
            with pytest.raises(LogTruncated, match="t-0: the log was truncated, from offset 2 on") as raised:
                await fetcher.fetch()
            error = raised.value
            place = (error.topic, error.partition, error.offset, error.leader_epoch, error.diverging_offset)
            assert place == ("t", 0, 4, 0, 2)
            assert (error.start, error.end) == (0, 6)
            assert isinstance(error, OffsetOutOfRange), "who knows nothing of truncation takes it for that"
            assert await fetcher.fetch(timeout_ms=20) == [], "the partition waits for a seek"
            fetcher.seek(TP, error.diverging_offset)
            assert await values(fetcher, 4) == [b"C", b"D", b"E", b"F"]

    with_log(case, **broker)


@HOW_IT_IS_NOTICED
@pytest.mark.parametrize("policy", ["earliest", "latest"])
def test_with_a_policy_reading_goes_on_where_the_logs_part(
    broker: dict[str, Any], policy: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's consumer does so too: resetting by the policy would read all records again, or skip them."""

    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b", b"c", b"d")
        async with BatchFetcher(client, auto_offset_reset=policy) as fetcher:
            fetcher.add(TP, 0)
            await values(fetcher, 4)
            log.truncate(2)
            log.append(b"C", b"D", b"E", b"F")
            assert await values(fetcher, 4) == [b"C", b"D", b"E", b"F"]
            assert fetcher.leader_epoch(TP, fetcher.position(TP)) == 1

    with caplog.at_level(logging.WARNING):
        with_log(case, **broker)
    assert "t-0: the log was truncated, from offset 2 on; it was read up to 4" in caplog.text


@HOW_IT_IS_NOTICED
def test_a_log_that_only_has_a_new_leader_is_read_on(broker: dict[str, Any]) -> None:
    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            assert await values(fetcher, 2) == [b"a", b"b"]
            log.truncate(2)
            log.append(b"c")
            assert await values(fetcher, 1) == [b"c"]

    with_log(case, **broker)


@HOW_IT_IS_NOTICED
def test_what_was_fetched_and_not_handed_out_is_fetched_anew(broker: dict[str, Any]) -> None:
    """Buffered records that were cut off are dropped; the one record that the user read still exists."""

    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b", b"c")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            (first,) = await fetcher.fetch(max_records=1)
            assert [record[3] for record in first.records()] == [b"a"]
            log.truncate(1)
            log.append(b"B", b"C", b"D")
            position = fetcher._partitions[TP]
            await until(
                lambda: position.leader_epoch == 1 and not position.unvalidated and position.buffered_bytes
            )
            assert await values(fetcher, 3) == [b"B", b"C", b"D"]

    with_log(case, **broker)


@HOW_IT_IS_NOTICED
def test_an_epoch_the_new_leader_never_had(broker: dict[str, Any]) -> None:
    """After an unclean election the leader's log goes on in epoch 0, while epoch 1 was read here.

    The leader's log is the longer one, so comparing end offsets is not enough.
    """

    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 0)
            await values(fetcher, 2)
            log.truncate(2)
            log.append(b"c in 1", b"d in 1")
            assert await values(fetcher, 2) == [b"c in 1", b"d in 1"]
            log.truncate(2, epoch=0)
            log.append(b"c in 0", b"d in 0", b"e in 0", b"f in 0")
            log.truncate(6, epoch=2)
            with pytest.raises(LogTruncated) as raised:
                await fetcher.fetch()
            assert raised.value.diverging_offset == 2

    with_log(case, **broker)


@HOW_IT_IS_NOTICED
def test_a_committed_position_is_validated_before_anything_is_fetched(broker: dict[str, Any]) -> None:
    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b")
        log.truncate(2)
        log.append(b"C", b"D", b"E")
        async with BatchFetcher(client) as fetcher:
            fetcher.assign({TP: OffsetAndMetadata(4, leader_epoch=0)})
            with pytest.raises(LogTruncated) as raised:
                await fetcher.fetch()
            assert raised.value.diverging_offset == 2
            fetcher.seek(TP, 2, 0)
            assert await values(fetcher, 3) == [b"C", b"D", b"E"]

    with_log(case, **broker)


def test_an_epoch_nobody_knows_goes_by_the_policy() -> None:
    """Committed in another cluster, say: the broker cannot tell where its log parts from the one read."""

    async def case(log: EpochLog, client: Client) -> None:
        log.append(b"a", b"b", b"c")
        for policy, expected in (("earliest", [b"a", b"b", b"c"]), ("latest", [b"d"])):
            async with BatchFetcher(client, auto_offset_reset=policy) as fetcher:  # type: ignore[arg-type]
                fetcher.add(TP, 2, 7)
                reading = asyncio.create_task(values(fetcher, len(expected)))
                if policy == "latest":
                    await until(lambda now=fetcher.position: now(TP) == 3)  # type: ignore[misc]
                    log.append(b"d")
                assert await reading == expected
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 2, 7)
            with pytest.raises(LogTruncated, match="nobody knows from where on"):
                await fetcher.fetch()

    with_log(case)


def test_a_broker_that_knows_no_epochs_is_read_as_before() -> None:
    async def case(log: EpochLog, client: Client) -> None:
        del log.broker.served[ApiKey.OFFSET_FOR_LEADER_EPOCH]
        log.append(b"a", b"b")
        async with BatchFetcher(client) as fetcher:
            fetcher.add(TP, 1, 0)
            assert await values(fetcher, 1) == [b"b"]

    with_log(case, fetch=(4, 8))


def test_commits_carry_the_epoch_of_the_record_before_them() -> None:
    async def case(log: EpochLog, client: Client) -> None:
        committed: list[tuple[int, int]] = []

        def commit(request: ReceivedRequest) -> OffsetCommitResponse:
            (topic,) = request.message.topics
            (partition,) = topic.partitions
            committed.append((partition.committed_offset, partition.committed_leader_epoch))
            done = [OffsetCommitResponsePartition(partition_index=0)]
            return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=done)])

        log.broker.on(ApiKey.OFFSET_COMMIT, commit)
        log.append(b"a", b"b")
        log.truncate(2)
        log.append(b"c")
        async with Consumer(client, "g") as consumer:
            await consumer.assign({TP: 0})
            await values(consumer, 3)
            await consumer.commit()
            await consumer.commit({TP: 2})
            await consumer.commit({TP: OffsetAndMetadata(1, "note")})
        assert committed == [(3, 1), (2, 0), (1, 0)]

    with_log(case)


def test_a_consumer_starts_with_the_epoch_that_was_committed() -> None:
    async def case(log: EpochLog, client: Client) -> None:
        def fetch(request: ReceivedRequest) -> OffsetFetchResponse:
            partition = OffsetFetchResponsePartitions(
                partition_index=0, committed_offset=4, committed_leader_epoch=0
            )
            topics = [OffsetFetchResponseTopics(name="t", partitions=[partition])]
            return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)])

        log.broker.on(ApiKey.OFFSET_FETCH, fetch)
        log.append(b"a", b"b")
        log.truncate(2)
        log.append(b"C", b"D", b"E")
        async with Consumer(client, "g", auto_offset_reset="earliest") as consumer:
            await consumer.assign([TP])
            assert await values(consumer, 3) == [b"C", b"D", b"E"]

    with_log(case)


def test_epochs_read_are_known_by_offset() -> None:
    epochs = ReadEpochs(10, 3)
    assert [epochs.before(offset) for offset in (9, 10, 50)] == [-1, 3, 3]
    epochs.jump(50)
    assert [epochs.before(offset) for offset in (49, 50)] == [3, -1]
    assert epochs.first_above(2) == 9
    assert epochs.first_above(3) is None
    epochs.jump(5)
    assert epochs.before(50) == -1
