"""`millstream.testing.Broker`, in a process and in a thread: what a test can ask of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient

from kafka_client.errors import KafkaError
from millstream import testing
from millstream.testing import Broker, BrokerError
from tests.support.depth import deep
from tests.support.waiting import wait_for

KINDS = pytest.mark.parametrize("in_process", [False, True], ids=["process", "thread"])


@pytest.fixture(scope="module")
def brokers() -> Iterator[dict[bool, Broker]]:
    with ExitStack() as stack:
        yield {kind: stack.enter_context(Broker(in_process=kind)) for kind in (False, True)}


@pytest.fixture
def broker(brokers: dict[bool, Broker], in_process: bool) -> Broker:
    brokers[in_process].clean()
    return brokers[in_process]


def consumed(broker: Broker, topic: str, count: int, group: str = "g") -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    try:
        messages = consumer.consume(count, timeout=60)
        consumer.commit(asynchronous=False)
        return [message.value() for message in messages]
    finally:
        consumer.close()


@KINDS
def test_records_are_read_as_they_were_written(broker: Broker) -> None:
    broker.topic("orders", 3)
    broker.produce("orders", ["a", b"b", ("key", None)], headers={"h": "1"}, timestamp=77, partition=1)
    first, second, third = broker.records("orders")
    assert (first.text, second.value, third.key, third.value) == ("a", b"b", b"key", None)
    assert first.headers == (("h", b"1"),) and first.timestamp == 77
    assert [record.offset for record in (first, second, third)] == [0, 1, 2]


@KINDS
def test_a_topic_is_created_by_writing_and_not_by_reading(broker: Broker) -> None:
    broker.produce("new", ["a"])
    assert len(broker.records("new")) == 1
    with pytest.raises(KafkaError, match="typo"):
        broker.records("typo")
    assert "typo" not in broker.report()


@KINDS
def test_a_topic_that_cannot_be_created_is_named(broker: Broker) -> None:
    broker.topic("orders")
    with pytest.raises(BrokerError, match="orders"):
        broker.topic("orders")
    with pytest.raises(BrokerError, match=r"retention\.ms"):
        broker.topic("other", config={"retention.ms": "soon"})


@deep
@KINDS
def test_cleaning_leaves_nothing_and_clients_connected(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    producer.produce("orders", "before")
    assert producer.flush(60) == 0
    assert consumed(broker, "orders", 1) == [b"before"]
    broker.clean()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    assert not admin.list_topics(timeout=60).topics
    assert not admin.list_consumer_groups().result(60).valid
    broker.topic("orders")
    producer.produce("orders", "after")
    assert producer.flush(60) == 0
    assert [record.text for record in broker.records("orders")] == ["after"]
    assert consumed(broker, "orders", 1) == [b"after"]


@deep
@KINDS
def test_lag_is_zero_once_everything_is_committed(broker: Broker) -> None:
    broker.produce("orders", ["a", "b", "c"], partition=0)
    assert len(consumed(broker, "orders", 2)) == 2
    with pytest.raises(AssertionError, match="has not read 1 record of orders-0"):
        broker.wait_lag_zero("g", seconds=0.01)
    with pytest.raises(AssertionError, match="group 'nobody' has committed no offset"):
        broker.wait_lag_zero("nobody", seconds=0.01)
    assert len(consumed(broker, "orders", 1)) == 1
    broker.wait_lag_zero("g", seconds=60)
    broker.topic("more")
    broker.wait_lag_zero("g", ["orders", "more"], seconds=60)
    broker.produce("more", ["unread"])
    with pytest.raises(AssertionError, match="1 record of more-0"):
        broker.wait_lag_zero("g", ["orders", "more"], seconds=0.01)


@deep
@KINDS
def test_markers_of_transactions_are_no_lag(broker: Broker) -> None:
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce("orders", "a")
    producer.commit_transaction(60)
    assert consumed(broker, "orders", 1) == [b"a"]
    broker.wait_lag_zero("g", "orders", seconds=60)


@KINDS
def test_exactly_once_tells_of_what_is_there_twice_or_not_at_all(broker: Broker) -> None:
    broker.produce("orders", [("1", "a"), ("2", "b")])
    broker.assert_exactly_once("orders")
    broker.assert_exactly_once("orders", expected=[b"1", b"2"])
    broker.assert_exactly_once("orders", key=lambda record: record.text, expected=["a", "b"])
    with pytest.raises(AssertionError, match=r"b'3' is missing\nb'1' was not expected: orders-0@0"):
        broker.assert_exactly_once("orders", expected=[b"2", b"3"])
    broker.produce("orders", [("1", "again")])
    with pytest.raises(AssertionError, match="b'1' is there 2 times: orders-0@0, orders-0@2"):
        broker.assert_exactly_once("orders")


@deep
@KINDS
def test_what_is_aborted_is_not_there(broker: Broker) -> None:
    producer = transactional(broker)
    producer.begin_transaction()
    producer.produce("orders", "a")
    assert producer.flush(60) == 0
    producer.abort_transaction(60)
    assert broker.records("orders") == []


@KINDS
def test_a_report_tells_ends_and_requests(broker: Broker) -> None:
    assert "no topics" in broker.report()
    broker.produce("orders", ["a", "b"])
    report = broker.report()
    assert "orders-0: 0 to 2" in report
    assert "Produce v" in report and "of millstream-testing" in report


@deep
def test_settings_are_checked() -> None:
    for in_process in (False, True):
        with pytest.raises(BrokerError, match=r"log\.segment\.bytes=tiny is not allowed"):
            Broker({"log.segment.bytes": "tiny"}, in_process=in_process).start()
        with pytest.raises(BrokerError, match=r"log\.dirs=/tmp .*folder"):
            Broker({"log.dirs": "/tmp"}, in_process=in_process).start()


def test_settings_hold() -> None:
    with Broker({"auto.create.topics.enable": False}, in_process=True) as broker:
        with pytest.raises(KafkaError, match="new"):
            broker.produce("new", ["a"])


@deep
@KINDS
def test_a_temporary_folder_goes_and_a_given_one_stays(in_process: bool, tmp_path: Path) -> None:
    with Broker(in_process=in_process) as broker:
        temporary = broker.folder
        assert temporary.exists()
    assert not temporary.exists()
    folder = tmp_path / "kept"
    with Broker(in_process=in_process, folder=folder) as broker:
        broker.produce("orders", ["a"])
    with Broker(in_process=in_process, folder=folder) as broker:
        assert [record.text for record in broker.records("orders")] == ["a"]


@deep
@pytest.mark.parametrize("paused", [False, True])
def test_a_broker_ends_with_the_test_run_that_is_killed(paused: bool) -> None:
    code = (
        "import os\n"
        "from millstream.testing import Broker\n"
        "broker = Broker().start()\n"
        "print(broker.bootstrap_servers, broker.folder, flush=True)\n"
        f"if {paused}: broker.pause()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = done.stdout.split()[1]
    wait_for(lambda: not os.path.exists(folder))  # its last deed


@deep
def test_what_only_linux_has_is_not_needed() -> None:
    """macOS's Python has none of these names; there is no macOS here."""
    code = (
        "import os, pathlib, socket, time\n"
        "for module, name in ((os, 'fdatasync'), (os, 'posix_fadvise'), (os, 'RWF_NOWAIT'),\n"
        "                     (socket, 'MSG_MORE'), (time, 'CLOCK_BOOTTIME')):\n"
        "    if hasattr(module, name):\n"
        "        delattr(module, name)\n"
        "read_text = pathlib.Path.read_text\n"
        "def without_proc(self, *args, **kwargs):\n"
        "    if self.is_relative_to('/proc'):\n"
        "        raise FileNotFoundError(str(self))\n"
        "    return read_text(self, *args, **kwargs)\n"
        "pathlib.Path.read_text = without_proc\n"
        "import logd.cli\n"
        "from millstream.testing import Broker\n"
        "with Broker(in_process=True) as broker:\n"
        "    broker.produce('orders', ['x' * 100_000, 'y'])\n"
        "    broker.restart()\n"
        "    print([len(record.value) for record in broker.records('orders')])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=100
    )
    assert done.stdout == "[100000, 1]\n", done.stderr


def test_what_a_broker_needs_later_is_imported_later() -> None:
    """Its first start in a test's process is nearly all imports."""
    code = (
        "import sys\n"
        "from millstream.testing import Broker\n"
        "with Broker(in_process=True):\n"
        "    print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    packages = {name for name in done.stdout.split() if not name.startswith("millstream.testing")}
    later = {
        "logd.groups",
        "kafka_client.cluster",
        "logd.broker.cluster",
        "kazoo",
        "rich",
        "typer",
        "argparse",
    }
    assert not packages & (later | {"importlib.metadata", "prometheus_client", "re2", "pytest"})


def test_every_name_offered_is_there() -> None:
    for name in testing.__all__:
        assert getattr(testing, name).__name__ == name
    with pytest.raises(AttributeError, match="Nonesuch"):
        testing.Nonesuch  # noqa: B018


def transactional(broker: Broker) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    producer.init_transactions(60)
    return producer
