"""Consumer groups of every client, and of several clients in one group."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from kafka_client.records import NewRecord, Record
from tests.interop.clients.base import LIBRARIES, SECONDS, Client, Member, load, wait_until
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

PARTITIONS = frozenset(range(6))
STRATEGIES = [
    pytest.param(name, strategy, id=f"{name}-{strategy}")
    for name, strategies in {
        "confluent": ["range", "roundrobin", "cooperative-sticky"],
        "aio": ["range", "roundrobin", "sticky"],
        "python": ["range", "roundrobin", "sticky", "cooperative-sticky"],
    }.items()
    for strategy in strategies
]


def records_of(partition: int, first: int, count: int) -> list[NewRecord]:
    return [(1, b"%d" % partition, b"%d" % number, ()) for number in range(first, first + count)]


def fill(logd: LogdProcess, topic: str, first: int = 0, count: int = 20) -> None:
    with RawClient(logd.port) as raw:
        for partition in PARTITIONS:
            assert (
                raw.produce(topic, records_of(partition, first, count), partition=partition).error_code == 0
            )


def shared_out(*members: Member) -> bool:
    """Return True if every partition has one owner and every member its share."""
    assigned = sorted(partition for member in members for partition in member.assigned)
    return assigned == sorted(PARTITIONS) and all(
        len(member.assigned) == len(PARTITIONS) // len(members) for member in members
    )


def joined(members: list[Member], member: Member) -> list[tuple[int, Record]]:
    """Let a member join, and wait until all have their shares; what they received meanwhile.

    One after the other: a leader of kafka-python that joins before it has the topic's metadata gives nobody
    anything, and is slow to notice.
    """
    members.append(member)
    return wait_until(lambda: shared_out(*members), *members)


@deep
@pytest.mark.parametrize(("name", "strategy"), STRATEGIES)
def test_members_come_and_go(
    logd: LogdProcess, name: str, strategy: str, new_name: Callable[[str], str]
) -> None:
    client = load(name)
    topic, group = create_topic(logd, new_name("group"), partitions=6), new_name("g")
    fill(logd, topic)
    first = client.member(logd.bootstrap, group, topic, strategy)
    second: Member | None = None
    try:
        received = wait_until(lambda: first.assigned == PARTITIONS, first)
        while len(received) < 120:
            received += first.poll()
        assert sorted(record[3] for _, record in received) == sorted(
            b"%d" % n for n in range(20) for _ in range(6)
        )
        first.commit()
        second = client.member(logd.bootstrap, group, topic, strategy)
        assert wait_until(lambda: shared_out(first, second), first, second) == []
        fill(logd, topic, 20)
        received = []
        while len(received) < 120:
            received += first.poll() + second.poll()
        assert {record[0] for _, record in received} == set(range(20, 40))
        assert len(received) == 120
        second.commit()
        first.commit()
        second.close()
        assert wait_until(lambda: first.assigned == PARTITIONS, first) == []
    finally:
        first.close()
        if second is not None:
            second.close()


def test_clients_of_three_makes_share_a_group(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic, group = create_topic(logd, new_name("group"), partitions=6), new_name("g")
    members: list[Member] = []
    try:
        received: list[tuple[int, Record]] = []
        for name in LIBRARIES:
            received += joined(members, load(name).member(logd.bootstrap, group, topic))
        fill(logd, topic)
        while len(received) < 120:
            for member in members:
                received += member.poll()
        assert len({(partition, record[0]) for partition, record in received}) == 120
        for member in members:
            member.commit()
        members.pop(0).close()
        assert wait_until(lambda: shared_out(*members), *members) == []
        members.pop(0).close()
        assert wait_until(lambda: shared_out(*members), *members) == []
    finally:
        for member in members:
            member.close()


@deep
def test_offsets_committed_by_one_client_are_the_others(
    logd: LogdProcess, client: Client, new_name: Callable[[str], str]
) -> None:
    topic, group = create_topic(logd, new_name("group"), partitions=6), new_name("g")
    fill(logd, topic)
    writer = client.member(logd.bootstrap, group, topic)
    received = wait_until(lambda: writer.assigned == PARTITIONS, writer)
    while len(received) < 120:
        received += writer.poll()
    writer.commit()
    writer.close()
    fill(logd, topic, 20, 1)
    for name in LIBRARIES:
        reader = load(name).member(logd.bootstrap, group, topic)
        received = wait_until(lambda reader=reader: reader.assigned == PARTITIONS, reader)
        while len(received) < 6:
            received += reader.poll()
        assert {(partition, record[0]) for partition, record in received} == {(p, 20) for p in PARTITIONS}
        reader.close()


@deep
def test_a_static_member_comes_back_without_a_rebalance(
    logd: LogdProcess, client: Client, new_name: Callable[[str], str]
) -> None:
    """KIP-345: the one that returns under its instance id gets its partitions; the other notices nothing."""
    topic, group = create_topic(logd, new_name("static"), partitions=6), new_name("g")
    members: list[Member] = []
    stays = client.member(logd.bootstrap, group, topic, instance="stays")
    joined(members, stays)
    goes = client.member(logd.bootstrap, group, topic, instance="goes")
    try:
        joined(members, goes)
        before, assignments = goes.assigned, stays.assignments
        goes.close()
        goes = client.member(logd.bootstrap, group, topic, instance="goes")
        wait_until(lambda: bool(goes.assigned), stays, goes)
        assert goes.assigned == before
        fill(logd, topic)
        received: list[object] = []
        while len(received) < 120:
            received += stays.poll() + goes.poll()
        assert stays.assignments == assignments
        assert shared_out(stays, goes)
    finally:
        stays.close()
        goes.close()


@deep
def test_an_instance_id_belongs_to_one_member(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    topic, group = create_topic(logd, new_name("static"), partitions=6), new_name("g")
    client = load("confluent")
    first = client.member(logd.bootstrap, group, topic, instance="one")
    wait_until(lambda: first.assigned == PARTITIONS, first)
    second = client.member(logd.bootstrap, group, topic, instance="one")
    wait_until(lambda: second.assigned == PARTITIONS, second)
    with pytest.raises(confluent_kafka.KafkaException, match=r"FENCED_INSTANCE_ID|FATAL"):
        wait_until(lambda: False, first)
    assert second.assigned == PARTITIONS
    first.close()
    second.close()


KILLED = """
import sys
from confluent_kafka import Consumer
bootstrap, group, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "session.timeout.ms": 3000,
    "heartbeat.interval.ms": 300, "partition.assignment.strategy": "range"})
consumer.subscribe([topic], on_assign=lambda _, partitions: print(len(partitions), flush=True))
while True:
    consumer.poll(0.1)
"""


@deep
def test_a_killed_member_is_missed(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic, group = create_topic(logd, new_name("killed"), partitions=6), new_name("g")
    client = load("confluent")
    survivor = client.member(logd.bootstrap, group, topic)
    wait_until(lambda: survivor.assigned == PARTITIONS, survivor)  # else the other may be the first one
    arguments = [sys.executable, "-c", KILLED, logd.bootstrap, group, topic]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as process:
        try:
            wait_until(lambda: len(survivor.assigned) == 3, survivor)
            assert process.stdout is not None and process.stdout.readline() == b"3\n"
            process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
            wait_until(lambda: survivor.assigned == PARTITIONS, survivor)
        finally:
            process.kill()
            survivor.close()
