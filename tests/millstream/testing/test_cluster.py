"""`millstream.testing.Cluster`: what a test asks of several brokers, and what befalls one of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from millstream.testing import BrokerError, Cluster
from millstream.testing.view import View
from tests.support.depth import deep
from tests.support.waiting import wait_for

needs_zookeeper = pytest.mark.skipif(
    which("java") is None or find_spec("pyspark") is None,
    reason="ZooKeeper needs Java and PySpark's jars",
)
QUICK = {"reconnect.backoff.max.ms": 200, "retry.backoff.max.ms": 200, "log_level": 0}


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Cluster:
    shared.clean()
    return shared


def producer(cluster: Cluster, **settings: object) -> Producer:
    return Producer({"bootstrap.servers": cluster.bootstrap_servers, **QUICK, **settings})


def texts(cluster: Cluster, topic: str = "orders") -> list[str]:
    return [record.text for record in cluster.records(topic)]


@needs_zookeeper
def test_a_leader_is_killed_and_nothing_is_lost(cluster: Cluster) -> None:
    cluster.topic("orders")
    cluster.produce("orders", [("1", "a")])
    killed = cluster.kill_leader("orders")
    assert not killed.is_running
    assert cluster.leader("orders") is not killed
    cluster.produce("orders", [("2", "b")])
    killed.start()
    cluster.wait_in_sync("orders")
    cluster.assert_exactly_once("orders", expected=[b"1", b"2"])
    report = cluster.report()
    assert "orders-0: 0 to 2; leader" in report and "in sync 1, 2, 3 of 1, 2, 3" in report
    assert all(f"broker {id} at 127.0.0.1:" in report for id in (1, 2, 3))
    assert " of broker-" not in report, "who follows asks without an end"


@deep
@needs_zookeeper
def test_clients_find_all_brokers(cluster: Cluster) -> None:
    cluster.topic("orders", 6, {"retention.ms": 3_600_000})
    cluster.topic("once", replication_factor=1)
    for broker in cluster.brokers.values():
        metadata = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=60)
        assert sorted(metadata.brokers) == [1, 2, 3]
        assert metadata.controller_id == cluster.controller().id
        assert all(len(each.isrs) == 3 for each in metadata.topics["orders"].partitions.values())
        assert len(metadata.topics["once"].partitions[0].isrs) == 1
    cluster.produce("orders", [(str(number), "x") for number in range(100)])
    cluster.assert_exactly_once("orders", expected=[b"%d" % number for number in range(100)])
    assert {cluster.leader("orders", partition).id for partition in range(6)} == {1, 2, 3}


@deep
@needs_zookeeper
def test_what_cannot_be_is_named(cluster: Cluster) -> None:
    with pytest.raises(BrokerError, match="replication"):
        cluster.topic("orders", replication_factor=4)
    with pytest.raises(BrokerError, match=r"retention\.ms"):
        cluster.topic("orders", config={"retention.ms": "soon"})
    with pytest.raises(AssertionError, match="no 'unknown'"):
        cluster.wait_in_sync("unknown", seconds=0.01)
    with pytest.raises(AssertionError, match="the leader of unknown-0 is -1"):
        cluster.leader("unknown", seconds=0.01)
    cluster.topic("orders")
    cluster.brokers[2].kill()
    wait_for(lambda: 2 not in view_of(cluster, 1).alive)
    with pytest.raises(AssertionError, match=r"orders-0: leader [13], in sync 1, 3 of 1, 2, 3"):
        cluster.wait_in_sync("orders", seconds=0.01)
    with pytest.raises(BrokerError, match=r"broker 2 does not run .*start\(\)"):
        cluster.brokers[2].requests()
    assert "broker 2 at" in cluster.report() and ", down:" in cluster.report()


@deep
@needs_zookeeper
def test_cleaning_leaves_nothing_and_clients_connected(cluster: Cluster) -> None:
    written = producer(cluster, **{"enable.idempotence": True})
    written.produce("orders", "before")
    assert written.flush(60) == 0
    assert consumed(cluster, 1) == [b"before"]
    processes = [broker.host._child._process for broker in cluster.brokers.values()]
    cluster.clean()
    assert processes == [broker.host._child._process for broker in cluster.brokers.values()]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    assert not admin.list_topics(timeout=60).topics
    assert not admin.list_consumer_groups().result(60).valid
    cluster.topic("orders")
    written.produce("orders", "after")
    assert written.flush(60) == 0
    assert texts(cluster) == ["after"]
    assert consumed(cluster, 1) == [b"after"]


@deep
@needs_zookeeper
def test_cleaning_ends_faults(cluster: Cluster) -> None:
    addresses = cluster.bootstrap_servers
    cluster.topic("orders")
    cluster.brokers[1].kill()
    cluster.brokers[2].pause()
    cluster.brokers[3].faults.full_disk()
    cluster.clean()
    assert cluster.bootstrap_servers == addresses
    cluster.topic("orders")
    cluster.produce("orders", ["a"])
    assert texts(cluster) == ["a"]


@deep
@needs_zookeeper
def test_cleaning_takes_back_brokers_settings(cluster: Cluster) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    changed = ConfigResource(ResourceType.BROKER, "1")
    changed.add_incremental_config(
        ConfigEntry("log.retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)
    )
    for future in admin.incremental_alter_configs([changed]).values():
        future.result(60)
    wait_for(lambda: view_of(cluster, 1).is_harmed)
    cluster.clean()
    assert not any(view_of(cluster, id).is_harmed for id in cluster.brokers)


@deep
@needs_zookeeper
def test_a_broker_that_is_paused_is_led_around(cluster: Cluster) -> None:
    cluster.topic("orders")
    paused = cluster.leader("orders")
    paused.pause()
    assert cluster.leader("orders") is not paused
    cluster.produce("orders", ["a"])
    paused.resume()
    cluster.wait_in_sync("orders")
    assert texts(cluster) == ["a"]


@deep
@needs_zookeeper
def test_a_restart_hands_over(cluster: Cluster) -> None:
    cluster.topic("orders", 3)
    cluster.produce("orders", ["a", "b"])
    for broker in cluster.brokers.values():
        address = broker.bootstrap_servers
        broker.restart()
        assert broker.bootstrap_servers == address
        cluster.wait_in_sync("orders")
    assert sorted(texts(cluster)) == ["a", "b"]


@deep
@needs_zookeeper
def test_a_full_disk_has_others_lead(cluster: Cluster) -> None:
    cluster.topic("orders")
    full = cluster.leader("orders")
    full.faults.full_disk()
    client = producer(cluster)
    client.produce("orders", "a")
    assert client.flush(60) == 0
    assert cluster.leader("orders") is not full
    full.restart()
    cluster.wait_in_sync("orders")
    cluster.assert_exactly_once("orders", key=lambda record: record.text, expected=["a"])


@deep
@needs_zookeeper
def test_a_lost_acknowledgement_is_no_second_record(cluster: Cluster) -> None:
    cluster.topic("orders")
    cluster.leader("orders").faults.lose_answers("Produce")
    client = producer(cluster, **{"enable.idempotence": True})
    client.produce("orders", "a")
    assert client.flush(60) == 0
    assert "Produce" in [request.api for request in cluster.leader("orders").requests()]
    assert texts(cluster) == ["a"]


@deep
@needs_zookeeper
def test_coordinators_that_are_killed_have_followers(cluster: Cluster) -> None:
    client = producer(cluster, **{"transactional.id": "t"})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce("orders", "a")
    assert client.flush(60) == 0
    killed = cluster.coordinator(transactional_id="t")
    killed.kill()
    client.commit_transaction(60)
    assert cluster.coordinator(transactional_id="t") is not killed
    cluster.wait_for_records("orders", 1, seconds=60)
    killed.start()
    assert consumed(cluster, 1) == [b"a"]
    cluster.coordinator("g").kill()
    cluster.wait_lag_zero("g", ["orders"], seconds=60)


@deep
@needs_zookeeper
def test_a_given_folder_stays(tmp_path: Path) -> None:
    with Cluster(1, folder=tmp_path) as cluster:
        cluster.produce("orders", ["a"])
        cluster.brokers[1].kill()
        cluster.clean()
        cluster.produce("orders", ["b"])
        assert cluster.brokers[1].folder.is_relative_to(tmp_path)
    with Cluster(1, folder=tmp_path) as cluster:
        assert texts(cluster) == ["b"]


@deep
@needs_zookeeper
def test_a_cluster_ends_with_the_test_run_that_is_killed() -> None:
    code = (
        "import os\n"
        "from millstream.testing import Cluster\n"
        "cluster = Cluster(2).start()\n"
        "brokers = cluster.brokers.values()\n"
        "print(cluster._own_zookeeper._folder, *[broker.folder for broker in brokers], flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=200
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folders = done.stdout.split()
    assert len(folders) == 3
    wait_for(lambda: not any(map(os.path.exists, folders)))  # the last deed of each
    assert not [command for command in processes() if folders[0] in command]


def test_settings_that_are_each_brokers_own_are_refused() -> None:
    with pytest.raises(BrokerError, match=r"node\.id=7 is not for a test to say: each broker"):
        Cluster(3, {"node.id": 7})
    with pytest.raises(ValueError, match="not 0"):
        Cluster(0)


def test_without_java_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    cluster = Cluster(3)
    with pytest.raises(BrokerError, match=r"ZooKeeper needs Java.*: install a JRE"):
        cluster.start()
    assert not any(broker.folder.exists() for broker in cluster.brokers.values())


def test_without_pyspark_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\n")
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text("import sys\nsys.modules['pyspark'] = None\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(BrokerError, match=r"pip install 'millstream\[spark\]'"):
        Cluster(3).start()


def view_of(cluster: Cluster, id: int) -> View:
    view = cluster.brokers[id].view()
    assert view is not None
    return view


def processes() -> list[str]:
    """Return the arguments of all processes."""
    arguments = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                arguments.append((entry / "cmdline").read_text(errors="replace"))
            except OSError:
                continue
    return arguments


def consumed(cluster: Cluster, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            **QUICK,
        }
    )
    consumer.subscribe(["orders"])
    try:
        messages = consumer.consume(count, timeout=60)
        consumer.commit(asynchronous=False)
        return [message.value() for message in messages]
    finally:
        consumer.close()
