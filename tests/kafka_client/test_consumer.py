from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable
from typing import Any
from unittest import mock

import pytest
from confluent_kafka import Consumer as ForeignConsumer

from kafka_client import Admin, BatchProducer, Client, Consumer, NewTopic, OffsetAndMetadata, TopicPartition
from kafka_client.errors import (
    ConfigError,
    ConnectionClosed,
    ErrorCode,
    Fenced,
    KafkaError,
    MillstreamError,
    OffsetOutOfRange,
    error_for,
)
from tests.support.depth import deep
from tests.support.waiting import until

Name = Callable[[str], str]
QUICK_GROUP: dict[str, Any] = {"heartbeat_interval_ms": 100, "session_timeout_ms": 30_000}


async def topic_with(client: Client, name: str, partitions: int, records: int = 0) -> None:
    """Create a topic with `records` records in each partition, with their numbers as values."""
    await Admin(client).create_topics([NewTopic(name, partitions, 1)])
    await fill(client, name, partitions, range(records))


async def fill(client: Client, name: str, partitions: int, numbers: range) -> None:
    if numbers:
        async with BatchProducer(client) as producer:
            for partition in range(partitions):
                await producer.send(name, partition, [(0, None, b"%d" % n, ()) for n in numbers])


async def values(consumer: Consumer, count: int) -> list[bytes | None]:
    values_so_far: list[bytes | None] = []
    while len(values_so_far) < count:
        for fetched in await consumer.fetch():
            values_so_far += [record[3] for record in fetched.records()]
    return values_so_far


def quick(client: Client, group: str, **settings: Any) -> Consumer:
    return Consumer(client, group, **{"auto_offset_reset": "earliest", **QUICK_GROUP, **settings})


async def test_a_group_goes_on_where_it_committed(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 1, 10)
        async with quick(client, group) as consumer:
            await consumer.subscribe([topic])
            assert await values(consumer, 10) == [b"%d" % n for n in range(10)]
            await consumer.commit()
            tp = TopicPartition(topic, 0)
            assert (await consumer.committed([tp]))[tp].offset == 10
            await consumer.commit({tp: 7})
        async with quick(client, group) as consumer:
            await consumer.subscribe([topic])
            assert await values(consumer, 3) == [b"7", b"8", b"9"]


@deep
@pytest.mark.parametrize("assignors", [["range"], ["roundrobin"], ["cooperative-sticky"]])
async def test_two_share_and_one_takes_over(bootstrap: str, new_name: Name, assignors: list[str]) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 4)
        revoked: list[set[TopicPartition]] = []
        async with quick(client, group, assignors=assignors) as first:
            await first.subscribe([topic], on_revoked=revoked.append)
            await until(lambda: len(first.assignment) == 4)
            async with quick(client, group, assignors=assignors) as second:
                await second.subscribe([topic])
                await until(lambda: len(first.assignment) == len(second.assignment) == 2)
                assert not first.assignment & second.assignment
                assert len(revoked[0]) == (2 if assignors == ["cooperative-sticky"] else 4)
            await until(lambda: len(first.assignment) == 4)


async def test_cooperative_members_read_on_during_a_rebalance(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 2)
        sticky: dict[str, Any] = {"assignors": ["cooperative-sticky"]}
        async with quick(client, group, **sticky) as first:
            await first.subscribe([topic])
            await until(lambda: len(first.assignment) == 2)
            released = asyncio.Event()

            async def hold(revoked: set[TopicPartition]) -> None:
                await released.wait()

            first._on_revoked = hold
            async with quick(client, group, **sticky) as second:
                await second.subscribe([topic])
                await until(lambda: first._fetcher.paused())
                (remaining,) = first.assignment - first._fetcher.paused()
                await fill(client, topic, 2, range(3))
                (fetched, *_) = await first.fetch()
                assert fetched.tp == remaining
                released.set()
                await until(lambda: len(second.assignment) == 1)
                assert await values(second, 3) == [b"0", b"1", b"2"]


@deep
async def test_a_pattern_finds_topics_as_they_come(bootstrap: str, new_name: Name) -> None:
    prefix, group = new_name("many"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, f"{prefix}-1", 1, 1)
        async with quick(client, group, topic_check_ms=50) as consumer:
            await consumer.subscribe(re.compile(f"{prefix}-\\d"))
            assert await values(consumer, 1) == [b"0"]
            await consumer.commit()
            await topic_with(client, f"{prefix}-2", 1, 2)
            await topic_with(client, f"{prefix}-no", 1, 2)
            assert await values(consumer, 2) == [b"0", b"1"]
            assert {tp.topic for tp in consumer.assignment} == {f"{prefix}-1", f"{prefix}-2"}


async def test_a_topic_and_partitions_that_come_later_are_read(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("later"), new_name("group")
    async with Client(bootstrap) as client:
        async with quick(client, group, topic_check_ms=50) as consumer:
            await consumer.subscribe([topic])
            assert await consumer.wait_assigned() == set()
            await topic_with(client, topic, 1, 1)
            assert await values(consumer, 1) == [b"0"]
            await Admin(client).create_partitions({topic: 3})
            await until(lambda: len(consumer.assignment) == 3)


async def test_a_failure_nobody_expected_while_looking_for_topics_is_raised_by_fetch(
    bootstrap: str, new_name: Name, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such an error once ended the topic watcher silently, and later topics were never read."""
    failures = [KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "not yet"), ZeroDivisionError("looking")]

    async def broken(*_: object) -> dict[str, int]:
        raise failures.pop(0)

    async with Client(bootstrap) as client:
        group = new_name("group")
        await topic_with(client, group, 1, records=3)
        async with quick(client, group, topic_check_ms=1) as consumer:
            await consumer.subscribe([group])
            assert await values(consumer, 3) == [b"0", b"1", b"2"]
            monkeypatch.setattr("kafka_client.group.topic_watcher.partition_counts", broken)
            with pytest.raises(ZeroDivisionError, match="looking"):
                await consumer.fetch()
            assert not failures, "a broker's error is retried"
            with pytest.raises(ZeroDivisionError, match="looking"):
                await consumer.fetch(timeout_ms=0)


async def test_seek_in_on_assigned_comes_before_anything_is_handed_out(
    bootstrap: str, new_name: Name
) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 1, 10)

        async def seek(tps: set[TopicPartition]) -> None:
            await asyncio.sleep(0.05)
            for tp in tps:
                consumer.seek(tp, 8)

        async with quick(client, group) as consumer:
            await consumer.subscribe([topic], on_assigned=seek)
            assert await values(consumer, 2) == [b"8", b"9"]


@deep
async def test_pause_and_resume(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 2, 1)
        async with quick(client, group) as consumer:
            await consumer.subscribe([topic], on_assigned=lambda tps: consumer.pause([first]))
            assert [fetched.tp for fetched in await consumer.fetch()] == [second]
            assert await consumer.fetch(timeout_ms=50) == []
            consumer.resume([first])
            assert [fetched.tp for fetched in await consumer.fetch()] == [first]


@deep
async def test_partitions_by_hand_without_a_group(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 1, 5)
        async with Consumer(client, auto_offset_reset="earliest") as consumer:
            await consumer.assign([tp])
            assert len(await values(consumer, 5)) == 5
            await consumer.assign({tp: 3})
            assert await values(consumer, 2) == [b"3", b"4"]
            for refused in (consumer.commit(), consumer.committed([tp]), consumer.subscribe([topic])):
                with pytest.raises(ConfigError, match="group_id"):
                    await refused


async def test_partitions_by_hand_with_a_groups_offsets(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 1, 5)
        async with Consumer(client, group, auto_offset_reset="earliest") as consumer:
            await consumer.assign([tp])
            await values(consumer, 5)
            await consumer.commit({tp: 4})
        async with Consumer(client, group) as consumer:
            await consumer.assign([tp])
            async for record in consumer:
                assert record.value == b"4"
                break


async def test_no_committed_offset_and_no_reset_is_an_error(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 1, 1)
        async with quick(client, group, auto_offset_reset="none") as consumer:
            await consumer.subscribe([topic])
            with pytest.raises(OffsetOutOfRange, match=f"{topic}-0"):
                await consumer.fetch()


async def test_latest_begins_at_the_end(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 1, 5)
        async with quick(client, group, auto_offset_reset="latest") as consumer:
            await consumer.subscribe([topic])
            await consumer.wait_assigned()
            await until(lambda: consumer.position(tp) == 5)
            await fill(client, topic, 1, range(5, 7))
            assert await values(consumer, 2) == [b"5", b"6"]


async def test_a_static_member_comes_back_without_a_rebalance_and_fences_its_double(
    bootstrap: str, new_name: Name
) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 2)
        static: dict[str, Any] = {"group_instance_id": "one"}
        async with quick(client, group) as other:
            await other.subscribe([topic])
            async with quick(client, group, **static) as first:
                await first.subscribe([topic])
                await until(lambda: len(first.assignment) == len(other.assignment) == 1)
                had = first.assignment
            assert other.member is not None
            generation = other.member.generation
            async with quick(client, group, **static) as again:
                await again.subscribe([topic])
                await until(lambda: again.assignment == had)
                assert other.member.generation == generation
                async with quick(client, group, **static) as double:
                    await double.subscribe([topic])
                    with pytest.raises(Fenced):
                        await again.fetch()


@deep
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_a_group_shared_with_librdkafka(bootstrap: str, new_name: Name, assignor: str) -> None:
    topic, group = new_name("topic"), new_name("group")
    async with Client(bootstrap) as client:
        await topic_with(client, topic, 4)
        foreign = ForeignConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "partition.assignment.strategy": assignor,
                "heartbeat.interval.ms": 100,
                "session.timeout.ms": 30000,
            }
        )
        try:
            foreign.subscribe([topic])
            async with quick(client, group, assignors=[assignor]) as ours:
                await ours.subscribe([topic])

                def shared() -> bool:
                    foreign.poll(0.01)
                    theirs = {(tp.topic, tp.partition) for tp in foreign.assignment()}
                    return len(ours.assignment) == len(theirs) == 2 and not theirs & ours.assignment

                await until(shared)
        finally:
            await asyncio.to_thread(foreign.close)


async def test_what_is_told_to_be_assigned_can_be_sought(bootstrap: str, new_name: Name) -> None:
    """Between assignment and the lookup of where to begin, a partition was told, and could not be sought."""
    topic = new_name("sought")
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with Consumer(client, group_id=new_name("g")) as consumer:
            called, answer = asyncio.Event(), asyncio.Event()
            committed = consumer.committed

            async def slowly(tps: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
                called.set()
                await answer.wait()
                return await committed(tps)

            with mock.patch.object(consumer, "committed", slowly):
                await consumer.subscribe([topic])
                await called.wait()
                try:
                    for tp in consumer.assignment:
                        consumer.seek(tp, 0)
                finally:
                    answer.set()
                assert await consumer.wait_assigned() == {TopicPartition(topic, 0)}


async def test_offsets_that_cannot_be_had_for_long_do_not_end_the_membership(
    bootstrap: str, new_name: Name
) -> None:
    """Membership once ended when a broker was away for longer than a request while offsets were looked up."""
    topic = new_name("patient")
    async with Client(bootstrap, retry_backoff_ms=1) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with Consumer(client, group_id=new_name("g")) as consumer:
            committed = consumer.committed
            errors: list[MillstreamError] = [
                ConnectionClosed("away"),
                error_for(ErrorCode.UNSTABLE_OFFSET_COMMIT, "a transaction is about to commit them"),
            ]

            async def at_last(tps: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
                if errors:
                    raise errors.pop(0)
                return await committed(tps)

            with mock.patch.object(consumer, "committed", at_last):
                await consumer.subscribe([topic])
                assert await consumer.wait_assigned() == {TopicPartition(topic, 0)}
            assert not errors


async def test_a_consumer_whose_offsets_cannot_be_had_can_be_closed(bootstrap: str, new_name: Name) -> None:
    topic = new_name("closed")
    async with Client(bootstrap, retry_backoff_ms=1) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        consumer = Consumer(client, group_id=new_name("g"))
        away = mock.AsyncMock(side_effect=ConnectionClosed("away"))
        with mock.patch.object(consumer, "committed", away):
            await consumer.subscribe([topic])
            await until(lambda: away.await_count > 2)
            await consumer.close()
