"""docs/backup.md: its commands in their order, with brokers whose data is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafka_client.wire.messages.metadata import MetadataRequest
from tests.docs.page_commands import Page
from tests.docs.pages import ROOT
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.raw_client import RawClient
from tests.support.waiting import wait_for

PAGE = ROOT / "docs" / "backup.md"
READY = b"logd ready at "
BROKERS = (1, 2, 3)
ADDRESS = "127.0.0.1:9092"
"""The address of the first broker on the page."""
ZOOKEEPER = "127.0.0.1:21811/kafka"
RECORDS = 1_000

needs_zookeeper = pytest.mark.skipif(
    shutil.which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)


def test_a_standalone_broker_is_backed_up_and_restored(tmp_path: Path) -> None:
    (backup,), restore, *_ = Page(PAGE, tmp_path, {}).blocks
    with LogdProcess(tmp_path / "logd") as logd:
        page = Page(
            PAGE,
            tmp_path,
            {"/var/lib/logd": str(logd.folder / "data"), "/var/backups/logd": str(tmp_path / "backup")},
        )
        produce = f"millstream bench produce flights --record-size 100 -b {logd.bootstrap} --num-records "
        page.done(f"millstream topic create flights -b {logd.bootstrap} --config retention.ms=-1")
        page.done(produce + "10")
        before = page.done(f"millstream topic describe -b {logd.bootstrap} -o json")
        logd.stop()
        page.done(backup)
        logd.start()
        page.done(produce + "5")
        logd.stop()
        for line in restore:
            page.done(line)
        logd.start()
        assert page.done(f"millstream topic describe -b {logd.bootstrap} -o json") == before
        assert len(page.done(f"millstream consume flights -e -b {logd.bootstrap}").splitlines()) == 10


class ThreeBrokers:
    """Three brokers of a cluster; `page` has their addresses, and ZooKeeper's as soon as it runs."""

    def __init__(self, folder: Path) -> None:
        self._ports = {broker: free_port() for broker in BROKERS}
        self.folders = {broker: folder / f"logd-{broker}" for broker in BROKERS}
        self.first, self.second = (f"127.0.0.1:{self._ports[broker]}" for broker in (1, 2))
        self.page = Page(PAGE, folder, {ADDRESS: self.first, "/var/lib/logd-": f"{folder}/logd-"})
        self.folder = folder

    @contextmanager
    def zookeeper(self, name: str) -> Iterator[None]:
        """Run ZooKeeper with the data of this name."""
        line = f"millstream zookeeper --folder {self.folder}/{name}"
        with self.page.running(line, b"ZooKeeper ready at ") as (_, ready):
            self.page.places[ZOOKEEPER] = ready.split()[-1].decode() + "/kafka"
            yield

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run the brokers."""
        with ExitStack() as stack:
            for broker in BROKERS:
                stack.enter_context(self.page.running(self.command(broker), READY))
            yield

    def command(self, broker: int) -> str:
        """Return the command of a broker."""
        settings = {
            "node.id": broker,
            "listeners": f"PLAINTEXT://127.0.0.1:{self._ports[broker]}",
            "log.dirs": self.folders[broker],
            "zookeeper.connect": ZOOKEEPER,
            "default.replication.factor": 3,
            "offsets.topic.replication.factor": 3,
            "offsets.topic.num.partitions": 2,
            "min.insync.replicas": 2,
            "group.initial.rebalance.delay.ms": 0,
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS",
        }
        return "millstream logd" + "".join(f" --override {key}={value}" for key, value in settings.items())

    def wait_in_sync(self) -> None:
        """Wait until every partition has all of its replicas in sync."""
        with RawClient(self._ports[1]) as client:
            wait_for(
                lambda: all(
                    each.leader_id > 0 and len(each.isr_nodes) == len(each.replica_nodes)
                    for topic in client.request(MetadataRequest(topics=None), 12).topics
                    for each in topic.partitions
                )
            )


@deep
@needs_zookeeper
def test_a_cluster_without_zookeeper_s_data_is_made_again_from_logs(tmp_path: Path) -> None:
    brokers = ThreeBrokers(tmp_path)
    page = brokers.page
    _, _, written_down, under_replicated, (adopt,), settings, (move,), (reassign,) = page.blocks
    with brokers.zookeeper("zookeeper"), brokers.running():
        page.done(f"millstream topic create flights -b {ADDRESS} --config retention.ms=-1")
        page.done(f"millstream topic create airlines -b {ADDRESS} --replica-assignment 2:3")
        for topic in ("flights", "airlines"):
            page.done(
                f"millstream bench produce {topic} --num-records {RECORDS} --record-size 100 -b {ADDRESS}"
            )
        assert (
            len(page.done(f"millstream consume flights -g counts -e -c 400 -b {ADDRESS}").splitlines()) == 400
        )
        for line in written_down:
            page.done(line)
    assert {each["topic"] for each in json.loads((tmp_path / "topics.json").read_text())} > {"flights"}
    before = topic_ids(tmp_path)

    # Step 2: the first broker has no replica of the second topic.
    shutil.copytree(brokers.folders[2] / "airlines-0", brokers.folders[1] / "airlines-0")
    with page.running(adopt, READY):
        for line in settings:
            page.done(line)
    for broker in (2, 3):
        brokers.folders[broker].rename(tmp_path / f"before-{broker}")
    with brokers.zookeeper("new-zookeeper"):
        page.done(move)
        with brokers.running():
            page.done(reassign)
            page.done(written_down[0])
            assert topic_ids(tmp_path) == before
            described = {each["topic"]: each for each in json.loads((tmp_path / "topics.json").read_text())}
            assert described["airlines"]["configs"] == {"cleanup.policy": "compact"}
            brokers.wait_in_sync()
            (line,) = under_replicated
            assert "flights" not in page.done(line)
            assert len(page.done(f"millstream consume flights -g counts -e -b {ADDRESS}").splitlines()) == 600
            assert (
                len(page.done(f"millstream consume airlines -e -b {brokers.second}").splitlines()) == RECORDS
            )


def topic_ids(folder: Path) -> dict[str, str]:
    """Return the topics' ids that were written down."""
    return {each["topic"]: each["topic_id"] for each in json.loads((folder / "topics.json").read_text())}


@deep
@needs_zookeeper
def test_a_broker_with_an_empty_disk_copies_what_it_had(tmp_path: Path) -> None:
    brokers = ThreeBrokers(tmp_path)
    page = brokers.page
    with brokers.zookeeper("zookeeper"):
        with brokers.running():
            page.done(f"millstream topic create flights -b {ADDRESS}")
            page.done(
                f"millstream bench produce flights --num-records {RECORDS} --record-size 100 -b {ADDRESS}"
            )
        shutil.rmtree(brokers.folders[3])
        with brokers.running():
            brokers.wait_in_sync()
            assert len(page.done(f"millstream consume flights -e -b {ADDRESS}").splitlines()) == RECORDS
        shutil.rmtree(brokers.folders[3])
        shutil.copytree(brokers.folders[2], brokers.folders[3])
        with page.start(brokers.command(3)) as refused:
            output, _ = refused.communicate(timeout=100)
        assert refused.returncode == 1 and b"belongs to node 2, not to node 3" in output, output
    logs = [(brokers.folders[broker] / "flights-0" / "00000000000000000000.log") for broker in (1, 2)]
    assert logs[0].read_bytes() == logs[1].read_bytes()
