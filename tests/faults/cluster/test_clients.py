"""Every client works on while brokers are killed: the leader, the group's coordinator, the controller; and
while they are restarted one after the other.

Each writes with acks=all, and idempotently unless it cannot, and reads in a group. What was acknowledged is
there (once), the reader has seen it, and the group begins where it has committed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from logd.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic
from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.audit import assert_written, count_of, settle
from tests.faults.cluster.cluster import Cluster
from tests.faults.cluster.foreign import ForeignClient, ForeignReader, ForeignWriter
from tests.faults.cluster.writers import PARTITIONS
from tests.support import depth, java
from tests.support.other_languages import FETCH_SECONDS, NODE, go_program, node_modules
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

RECORDS_BETWEEN = 200
PYTHON = {"confluent": "confluent_kafka", "aio": "aiokafka", "python": "kafka"}
"""Modules in `clients`, and the libraries they are for."""

pytestmark = [depth.deep, pytest.mark.timeout(FETCH_SECONDS + 900)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory, ensemble: Ensemble) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("clients"), f"{ensemble.connect_string}/clients") as cluster:
        yield cluster
        cluster.stop()
        cluster.assert_no_tracebacks()


@pytest.fixture
def cluster(brokers: Cluster) -> Iterator[Cluster]:
    """All of them are up again behind each test, whatever becomes of it."""
    yield brokers
    brokers.start_missing()


def in_python(name: str) -> ForeignClient:
    if find_spec(PYTHON[name]) is None:
        pytest.skip(f"{PYTHON[name]} is not installed")
    return ForeignClient(name, [sys.executable, "-m", f"tests.faults.cluster.clients.{name}"])


def in_java() -> ForeignClient:
    return ForeignClient("java", java.program("Failovers"))


def in_go(module: str) -> ForeignClient:
    program = go_program(f"{module}-failovers", module, "./failovers")
    is_sarama = module == "sarama"
    name = "sarama" if is_sarama else "franz-go"
    return ForeignClient(name, [str(program)], is_idempotent=not is_sarama, tells_commits=not is_sarama)


def in_node() -> ForeignClient:
    modules = node_modules()
    return ForeignClient("kafkajs", ["node", str(NODE / "failovers.js")], {"NODE_PATH": str(modules)})


@pytest.mark.parametrize("name", PYTHON)
def test_python_clients(cluster: Cluster, tmp_path: Path, name: str) -> None:
    works_through_failovers(cluster, in_python(name), tmp_path)


@java.needs_javac
def test_java(cluster: Cluster, tmp_path: Path) -> None:
    works_through_failovers(cluster, in_java(), tmp_path)


@pytest.mark.parametrize("module", ["go", "sarama", "kafkajs"])
def test_programs(cluster: Cluster, tmp_path: Path, module: str) -> None:
    client = in_node() if module == "kafkajs" else in_go(module)
    works_through_failovers(cluster, client, tmp_path)


def works_through_failovers(cluster: Cluster, client: ForeignClient, folder: Path) -> None:
    # Made beforehand: aiokafka may forget the leader of a topic that comes after it began.
    topic, group = cluster.create_topic(f"{client.name}-records"), f"{client.name}-readers"
    try:
        with (
            ForeignWriter(client, cluster.bootstrap, topic, folder / "writer.log") as writer,
            ForeignReader(client, cluster.bootstrap, topic, group, folder / "reader.log") as reader,
        ):
            go_on(writer, reader)
            for kind in ("leader", "coordinator", "controller"):
                victim = {
                    "leader": lambda: cluster.leader(topic),
                    "coordinator": lambda: cluster.coordinator(group),
                    "controller": lambda: cluster.controller,
                }[kind]()
                cluster.kill(victim)
                go_on(writer, reader)
                if kind == "coordinator":
                    reader.reopen()
                    go_on(writer, reader)
                cluster.start(victim)
                in_sync(cluster, topic)
            for id_ in cluster.brokers:
                cluster.restart(id_)
                in_sync(cluster, topic)
            go_on(writer, reader)
            settle(cluster, writer)
            assert_written(cluster, writer)
            reader.comes_to(count_of(cluster, writer))
        assert_read(writer, reader)
        ends = {partition: len(found) for partition, found in reader.numbers.items()}
        assert committed_offsets(cluster, group, topic) == ends
        if client.tells_commits:
            assert reader.committed == ends
    except BaseException:
        cluster.tell()
        raise
    print(f"{client.name}: {writer.sent} records, {sum(reader.committed.values())} told to be committed")


def in_sync(cluster: Cluster, topic: str) -> None:
    for each in (topic, "__consumer_offsets"):
        wait_for(lambda each=each: cluster.is_in_sync(each))  # type: ignore[misc]


def go_on(writer: ForeignWriter, reader: ForeignReader) -> None:
    writer.goes_on(RECORDS_BETWEEN)
    reader.goes_on(RECORDS_BETWEEN)


def assert_read(writer: ForeignWriter, reader: ForeignReader) -> None:
    """The reader has found each record where the writer was told that it is."""
    for number, (partition, offset) in writer.acknowledged.items():
        assert offset is None or reader.numbers[partition][offset] == number
    read = {number for found in reader.numbers.values() for number in found.values()}
    assert read == set(range(writer.sent))


def committed_offsets(cluster: Cluster, group: str, topic: str) -> Mapping[int, int]:
    """As the group's coordinator has them."""
    asked = OffsetFetchRequestTopic(name=topic, partition_indexes=list(range(PARTITIONS)))
    with RawClient(cluster.brokers[cluster.coordinator(group)].port) as raw:
        answer = raw.request(OffsetFetchRequest(group_id=group, topics=[asked]), 5)
    (found,) = answer.topics
    return {each.partition_index: each.committed_offset for each in found.partitions}
