"""Consumer groups of confluent-kafka, aiokafka and kafka-python: rebalances, static members, committed
offsets.
"""

from __future__ import annotations

import asyncio
import time
import warnings
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import IllegalStateError
from confluent_kafka import (
    Consumer,
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    ConsumerGroupType,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_client.records import Record
from tests.interop.clients.base import wait_until
from tests.support.depth import deep, sample
from tests.support.logd_process import LogdProcess

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # kafka-python reads its schemas in a deprecated way
    from tests.interop.clients import python

WAIT_SECONDS = 100.0
PARTITIONS = 4


@pytest.fixture
def filled(logd: LogdProcess, new_name: Callable[..., str]) -> str:
    """Return a topic of four partitions with 25 records each."""
    return fill(logd, new_name())


def fill(logd: LogdProcess, topic: str) -> str:
    admin = AdminClient({"bootstrap.servers": logd.bootstrap})
    for done in admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values():
        done.result()
    write(logd, topic, range(25 * PARTITIONS))
    return topic


def write(logd: LogdProcess, topic: str, numbers: range) -> None:
    """Produce the numbers in order, to all partitions in turn."""
    producer = Producer({"bootstrap.servers": logd.bootstrap})
    for number in numbers:
        producer.produce(topic, str(number).encode(), partition=number % PARTITIONS)
    assert producer.flush(WAIT_SECONDS) == 0


def consumer(logd: LogdProcess, group: str, **settings: Any) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": logd.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 200,
            "session.timeout.ms": 30_000,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )


def poll_until(consumers: list[Consumer], done: Callable[[], bool]) -> list[bytes]:
    """Poll the consumers in turn until the condition holds; return the values."""
    values: list[bytes] = []
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline, [each.assignment() for each in consumers]
        for each in consumers:
            message = each.poll(0.02)
            if message is not None and message.error() is None:
                values.append(message.value())
    return values


def share_evenly(consumers: list[Consumer]) -> bool:
    owned = [{(part.topic, part.partition) for part in each.assignment()} for each in consumers]
    share = PARTITIONS // len(consumers)
    return all(len(parts) == share for parts in owned) and len(set().union(*owned)) == PARTITIONS


def committed(logd: LogdProcess, group: str, topic: str) -> list[int]:
    with closing(consumer(logd, group)) as reader:
        partitions = [TopicPartition(topic, index) for index in range(PARTITIONS)]
        return [position.offset for position in reader.committed(partitions, timeout=WAIT_SECONDS)]


@deep
@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_confluent_members_come_and_go(
    logd: LogdProcess, filled: str, new_name: Callable[..., str], strategy: str
) -> None:
    group = new_name("group")
    with ExitStack() as stack:
        members = [
            stack.enter_context(closing(consumer(logd, group, partition_assignment_strategy=strategy)))
            for _ in range(2)
        ]
        for member in members:
            member.subscribe([filled])
        values = poll_until(members, lambda: share_evenly(members))
        late = stack.enter_context(closing(consumer(logd, group, partition_assignment_strategy=strategy)))
        late.subscribe([filled])
        values += poll_until([*members, late], lambda: bool(late.assignment()))
        members.pop().close()
        values += poll_until([*members, late], lambda: share_evenly([*members, late]))
        assert {int(value) for value in values} <= set(range(100))


def test_confluent_static_member_comes_back_without_a_rebalance(
    logd: LogdProcess, filled: str, new_name: Callable[..., str]
) -> None:
    group = new_name("group")
    with ExitStack() as stack:

        def member(name: str) -> Consumer:
            made = consumer(logd, group, group_instance_id=name)
            made.subscribe([filled])
            return stack.enter_context(closing(made))

        first, second = member("i1"), member("i2")
        poll_until([first, second], lambda: share_evenly([first, second]))
        owned, before = second.assignment(), stable_assignments(logd, group)
        second.close()
        again = member("i2")
        poll_until([first, again], lambda: bool(again.assignment()))
        assert again.assignment() == owned
        assert stable_assignments(logd, group) == before
        assert again.memberid() != ""


def stable_assignments(logd: LogdProcess, group: str) -> dict[str, list[tuple[str, int]]]:
    """Return the assignments of a stable group by instance id, which a rebalance would change or empty."""
    admin = AdminClient({"bootstrap.servers": logd.bootstrap})
    description = admin.describe_consumer_groups([group])[group].result()
    assert description.state is ConsumerGroupState.STABLE
    return {
        member.group_instance_id: [
            (part.topic, part.partition) for part in member.assignment.topic_partitions
        ]
        for member in description.members
    }


def test_confluent_admin(logd: LogdProcess, filled: str, new_name: Callable[..., str]) -> None:
    group = new_name("group")
    admin = AdminClient({"bootstrap.servers": logd.bootstrap})
    with closing(consumer(logd, group, client_id="me")) as member:
        member.subscribe([filled])
        poll_until([member], lambda: len(member.assignment()) == PARTITIONS)
        member.commit(
            offsets=[TopicPartition(filled, 0, 5), TopicPartition(filled, 1, 6)], asynchronous=False
        )

        description = admin.describe_consumer_groups([group])[group].result()
        assert (description.state, description.partition_assignor, description.coordinator.port) == (
            ConsumerGroupState.STABLE,
            "range",
            logd.port,
        )
        assert [(each.client_id, each.host) for each in description.members] == [("me", "/127.0.0.1")]
        groups = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result().valid
        assert [each.type for each in groups if each.group_id == group] == [ConsumerGroupType.CLASSIC]
        with pytest.raises(KafkaException, match="NON_EMPTY_GROUP"):
            admin.delete_consumer_groups([group])[group].result()

    changed = ConsumerGroupTopicPartitions(group, [TopicPartition(filled, 2, 9)])
    admin.alter_consumer_group_offsets([changed])[group].result()
    stored = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result()
    assert {part.partition: part.offset for part in stored.topic_partitions} == {0: 5, 1: 6, 2: 9}
    admin.delete_consumer_groups([group])[group].result()
    assert group not in [each.group_id for each in admin.list_consumer_groups().result().valid]
    assert set(committed(logd, group, filled)) == {-1001}


@sample(1)
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_offsets_and_groups_survive_a_restart(tmp_path: Path, how: str) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        topic = fill(logd, "kept")
        with closing(consumer(logd, "g")) as member:
            member.subscribe([topic])
            poll_until([member], lambda: len(member.assignment()) == PARTITIONS)
            positions = [TopicPartition(topic, index, 10 + index) for index in range(PARTITIONS)]
            member.commit(offsets=positions, asynchronous=False)
            getattr(logd, how)()
            logd.start()
            assert committed(logd, "g", topic) == [10, 11, 12, 13]
            # The member is still one: the broker knows its generation, and takes its commits.
            moved = [TopicPartition(topic, index, 20) for index in range(PARTITIONS)]
            deadline = time.monotonic() + WAIT_SECONDS
            while True:
                try:
                    member.commit(offsets=moved, asynchronous=False)
                    break
                except KafkaException:
                    assert time.monotonic() < deadline
                    member.poll(0.05)
            assert committed(logd, "g", topic) == [20] * PARTITIONS


async def both_are_at_the_end(*members: AIOKafkaConsumer) -> bool:
    """Return True if each member has two partitions and is at their end.

    Positions count, not records: a member may have got records of its partitions before a rebalance.
    """
    if any(len(each.assignment()) != 2 for each in members):
        return False
    try:
        return all([await each.position(tp) == 25 for each in members for tp in each.assignment()])
    except IllegalStateError:  # a rebalance has taken it
        return False


def test_aiokafka_group(logd: LogdProcess, filled: str, new_name: Callable[..., str]) -> None:
    group = new_name("group")

    async def run() -> None:
        def member() -> AIOKafkaConsumer:
            return AIOKafkaConsumer(
                filled,
                bootstrap_servers=logd.bootstrap,
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                heartbeat_interval_ms=200,
            )

        first, second = member(), member()
        await first.start()
        await second.start()
        try:
            values: set[int] = set()
            deadline = time.monotonic() + WAIT_SECONDS
            while not await both_are_at_the_end(first, second):
                assert time.monotonic() < deadline, (first.assignment(), second.assignment(), len(values))
                for each in (first, second):
                    for records in (await each.getmany(timeout_ms=50)).values():
                        values |= {int(record.value or b"") for record in records}
            assert values == set(range(100))
            await first.commit()
            await second.commit()
        finally:
            await first.stop()
            await second.stop()

    asyncio.run(run())
    assert committed(logd, group, filled) == [25] * PARTITIONS


@deep
def test_kafka_python_group(logd: LogdProcess, filled: str, new_name: Callable[..., str]) -> None:
    """Group offsets and assignments work for a dynamic and a static member together."""
    group = new_name("group")
    members = [python.member(logd.bootstrap, group, filled)]

    def read(*numbers: range, received: list[tuple[int, Record]] | None = None) -> None:
        """Check that the members get all of `numbers` exactly once, `received` included, and commit."""
        count = sum(map(len, numbers))
        received = received or []
        deadline = time.monotonic() + WAIT_SECONDS
        while len(received) < count:
            assert time.monotonic() < deadline, f"{len(received)} of {count} came"
            received += [one for member in members for one in member.poll()]
        values = [int(record[3] or b"") for _, record in received]
        assert sorted(values) == [number for some in numbers for number in some]
        for member in members:
            member.commit()

    try:
        received = wait_until(lambda: len(members[0].assigned) == PARTITIONS, members[0])
        write(logd, filled, range(100, 200))
        read(range(100), range(100, 200), received=received)
        assert committed(logd, group, filled) == [50] * PARTITIONS
        members.append(python.member(logd.bootstrap, group, filled, instance="static"))
        assert wait_until(lambda: all(len(each.assigned) == 2 for each in members), *members) == []
        write(logd, filled, range(200, 300))
        read(range(200, 300))
    finally:
        for member in members:
            member.close()
    assert committed(logd, group, filled) == [75] * PARTITIONS
