"""A standalone broker is moved to ZooKeeper, grows to three, and is lost: its data survives.

A producer, a group and a transaction are in the middle of their work all the time.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from logd.metadata.journal_store import FILE_NAME
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from logd.metadata.zookeeper.znodes import paths
from tests.faults.cluster.audit import assert_kept, folders_of, log_in, records_in
from tests.faults.cluster.cluster import REPLICAS, SESSION_MS, Cluster
from tests.faults.cluster.test_coordinators import QUIET, RECORDS_BETWEEN, Reader, committed_records
from tests.faults.cluster.writers import PARTITIONS, ConfluentWriter
from tests.millstream.invoking import invoke
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.millstream_command import started
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import SECONDS, wait_for

pytest.importorskip("confluent_kafka")

OF_A_CLUSTER = (
    "zookeeper.connect",
    "zookeeper.session.timeout.ms",
    "default.replication.factor",
    "offsets.topic.replication.factor",
    "transaction.state.log.replication.factor",
)

MANY = 1500
"""Partitions whose znodes are written in several batches."""


class OpenTransaction:
    """A transaction that stays open, with a record in each partition before and after other events."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self._producer: Any = Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": "open",
                "transaction.timeout.ms": 800_000,
                **QUIET,
            }
        )
        self._producer.init_transactions(100)

    def commit_one(self, number: int) -> None:
        self._producer.begin_transaction()
        self.write(number)
        self._producer.commit_transaction(100)

    def abort_one(self, number: int) -> None:
        self._producer.begin_transaction()
        self.write(number)
        self._producer.abort_transaction(100)

    def begin(self, number: int) -> None:
        self._producer.begin_transaction()
        self.write(number)

    def write(self, number: int) -> None:
        for partition in range(PARTITIONS):
            self._producer.produce(self._topic, b"%d" % number, partition=partition)
        assert self._producer.flush(100) == 0

    def commit(self) -> None:
        self._producer.commit_transaction(100)


class Growing:
    """The standalone first broker, then `cluster` with it as one of three."""

    def __init__(self, folder: Path, zookeeper: str) -> None:
        self.zookeeper = zookeeper
        self.cluster = Cluster(folder, zookeeper, min_insync_replicas=1)
        self.first = self.cluster.brokers[1]
        self._later = {key: self.first.overrides.pop(key) for key in OF_A_CLUSTER}

    @property
    def command(self) -> tuple[object, ...]:
        """The command that moves the first broker."""
        where = ("--log-dirs", self.first.overrides["log.dirs"], "--node-id", 1)
        session = ("--override", f"zookeeper.session.timeout.ms={SESSION_MS}")
        return ("cluster", "move-to-zookeeper", *where, "--zookeeper", self.zookeeper, *session)

    def move(self, *, state: str = "to be moved") -> None:
        """Stop the broker and move it; from then on it starts in a cluster."""
        assert self.first.stop() == 0
        planned = json.loads(_done(*self.command, "--dry-run", "-o", "json"))
        assert planned["state"] == state
        moved = json.loads(_done(*self.command, "--yes", "-o", "json"))
        assert moved == {**planned, "state": "moved"}
        self.first.overrides |= self._later

    def move_killed(self, when: str) -> bool:
        """Stop it, and have the move killed as soon as a znode is there; it starts by itself again.

        False: the move was faster, and is done.
        """
        assert self.first.stop() == 0
        with started(*self.command, "--yes") as process:
            asyncio.run(_there(self.zookeeper, when))
            process.kill()
            process.wait()
        if not (Path(str(self.first.overrides["log.dirs"])) / FILE_NAME).exists():
            self.first.overrides |= self._later
            return False
        self.first.start()
        return True

    def grow(self, folder: Path) -> None:
        """Have three replicas of every partition there is: of internal topics by Kafka's tool."""
        topics = {topic.name: topic for topic in self.cluster.metadata().topics if topic.name is not None}
        for is_internal in (False, True):
            plan = [
                {
                    "topic": name,
                    "partition": state.partition_index,
                    "replicas": [1 + (state.partition_index + n) % REPLICAS for n in range(REPLICAS)],
                }
                for name, topic in topics.items()
                for state in topic.partitions
                if topic.is_internal is is_internal
            ]
            file = folder / "grow.json"
            file.write_text(json.dumps({"version": 1, "partitions": plan}))
            where = ("--reassignment-json-file", file, "--bootstrap-server", self.cluster.bootstrap)
            if is_internal:
                _done("kafka-reassign-partitions", *where, "--execute")
            else:
                _done("partition", "reassign", *where, "--wait")
        for name in topics:
            wait_for(lambda name=name: self._has_grown(name))  # type: ignore[misc]

    def _has_grown(self, topic: str) -> bool:
        states = self.cluster.states(topic).values()
        return all(len(state.replica_nodes) == REPLICAS for state in states) and self.cluster.is_in_sync(
            topic
        )


def _done(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


async def _there(zookeeper: str, path: str) -> None:
    """Wait until there is such a znode."""
    session = await Session(ZooKeeperSettings.of(zookeeper)).open()
    async with asyncio.timeout(SECONDS):
        while await session.exists(path) is None:
            pass
    await session.close()


def described(cluster: Cluster) -> dict[str, tuple[bytes, int]]:
    """Return each topic's id and number of partitions."""
    return {topic.name: (topic.topic_id, len(topic.partitions)) for topic in cluster.metadata().topics}


def write(broker: LogdProcess, topic: str, number: int) -> None:
    with RawClient(broker.port) as client:
        assert client.produce(topic, [(0, None, b"%d" % number, ())]).error_code == 0


@depth.deep
def test_a_move_is_killed_again_and_again(tmp_path: Path, zookeeper: str) -> None:
    """Killed moves are repeated, and the broker runs standalone in between.

    The killed run's session has to expire first.
    """
    growing = Growing(tmp_path, zookeeper)
    cluster = growing.cluster
    try:
        growing.first.start()
        create_topic(growing.first, "many", partitions=MANY)
        written, before = [], {}
        for number, when in enumerate(
            (paths.TOPICS, paths.CLUSTER_ID, paths.CONTROLLER, paths.topic("many"))
        ):
            create_topic(growing.first, f"t{number}")
            write(growing.first, "many", number)
            written.append(b"%d" % number)
            before = described(cluster)
            if not growing.move_killed(when):
                break
        else:
            growing.move(state="to be gone on with")
        cluster.start(1)
        assert described(cluster) == before
        assert before.keys() == {"many", *(f"t{number}" for number in range(len(written)))}
        write(growing.first, "many", len(written))
        assert growing.first.stop() == 0
        (folder,) = folders_of(growing.first, "many", 0)
        numbers = [record.number for record in records_in(log_in(folder))]
        assert numbers == [*map(int, written), len(written)]
        cluster.assert_no_tracebacks()
    finally:
        cluster.end()


@depth.deep
def test_a_broker_becomes_three_and_is_lost(tmp_path: Path, zookeeper: str) -> None:
    growing = Growing(tmp_path, zookeeper)
    cluster = growing.cluster
    try:
        growing.first.start()
        create_topic(growing.first, "t", {"retention.ms": "-1"}, partitions=PARTITIONS)
        create_topic(growing.first, "x", partitions=PARTITIONS)
        create_topic(growing.first, "gone", partitions=2)
        _done("topic", "delete", "gone", "--yes", "-b", growing.first.bootstrap)
        with ConfluentWriter(cluster.bootstrap, "t") as writer:
            reader = Reader(cluster.bootstrap, "t", "g")
            reader.read_more(RECORDS_BETWEEN)
            transaction = OpenTransaction(cluster.bootstrap, "x")
            transaction.commit_one(1)
            transaction.abort_one(2)
            transaction.begin(3)
            before = described(cluster)
            assert before.keys() == {"t", "x", "__consumer_offsets", "__transaction_state"}

            growing.move()
            cluster.start(1)
            assert described(cluster) == before
            writer.goes_on(RECORDS_BETWEEN)
            reader.read_more(RECORDS_BETWEEN)

            cluster.start(2, 3)
            growing.grow(tmp_path)
            writer.goes_on(RECORDS_BETWEEN)
            reader.read_more(RECORDS_BETWEEN)
            transaction.write(3)

            cluster.kill(1)
            assert described(cluster) == before
            writer.goes_on(RECORDS_BETWEEN)
            reader.reopen()
            reader.read_more(RECORDS_BETWEEN)
            transaction.write(3)
            transaction.commit()
            assert committed_records(cluster.bootstrap, "x") == [[1, 3, 3, 3]] * PARTITIONS
            configs = _done("config", "describe", "topic", "t", "-b", cluster.bootstrap, "-o", "json")
            assert {each["key"]: each["value"] for each in json.loads(configs)}["retention.ms"] == "-1"

            cluster.start(1)
            wait_for(lambda: cluster.is_in_sync("__consumer_offsets"))
            writer.finish()
            wait_for(lambda: reader.read_some() == writer.sent)
            reader.close()
            wait_for(lambda: cluster.is_in_sync("x"))
            print(f"{assert_kept(cluster, writer)} records, {sum(reader.committed.values())} committed")
    except BaseException:
        print(cluster.report())
        raise
    finally:
        cluster.end()
