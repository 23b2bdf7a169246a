"""Groups of consumers before Kafka 0.9: shown from ZooKeeper, and their offsets imported."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client import TopicPartition
from millstream.terminal import servers
from millstream.terminal.ensemble import zookeeper
from millstream.terminal.status import Status, Unreachable
from millstream.zookeeper.ensemble import Ensemble
from tests.logd.metadata.zookeeper.proxy import Proxy
from tests.logd.metadata.zookeeper.test_tls import Secured, secured
from tests.millstream.commands.group.old_group import OldGroup
from tests.millstream.commands.group.test_cli import member
from tests.millstream.invoking import On, invoke, produce
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

__all__ = ["secured"]  # a fixture
_numbers = itertools.count()
SHOWN = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "consumer_id",
    "host",
)


@pytest.fixture(scope="module")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    if shutil.which("java") is None:
        pytest.skip("ZooKeeper needs Java")
    pytest.importorskip("pyspark")
    with Ensemble(tmp_path_factory.mktemp("zookeeper"), tick_ms=500) as running:
        yield running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Start a broker without ZooKeeper, to which such groups are to be moved."""
    with LogdProcess(tmp_path_factory.mktemp("logd"), {"log.retention.ms": "-1"}) as process:
        yield process


@pytest.fixture
def on(broker: LogdProcess) -> On:
    return On(broker.bootstrap)


@pytest.fixture
def connect(ensemble: Ensemble) -> str:
    """A chroot that is there, and in which nobody is registered."""
    connect = f"{ensemble.connect_string}/old-{os.getpid()}-{next(_numbers)}"
    with OldGroup(ensemble.connect_string, "unused") as group:
        group.create(connect[len(ensemble.connect_string) :], "")
    return connect


@pytest.fixture
def topic(on: On, request: pytest.FixtureRequest) -> str:
    """Two partitions, the first with records 0 to 2."""
    name = str(request.node.name)
    on.done("topic", "create", name, "--partitions", 2)
    produce(on.bootstrap, TopicPartition(name, 0), 1_000, 2_000, 3_000)
    return name


def test_offsets_owners_and_members(on: On, connect: str, topic: str) -> None:
    with OldGroup(connect, "g") as group, OldGroup(connect, "left") as left:
        busy, idle = group.join("host-a.example", **{topic: 2}), group.join("host-b", **{topic: 1})
        group.own(busy, topic, 0)
        group.own(busy, topic, 1, 1)
        group.commit(topic, {0: 1})
        group.commit("gone", {0: 9})
        left.commit(topic, {0: 3})

        listed = on.rows("group", "list", "--zookeeper", connect)
        assert [(row["group"], row["state"], row["type"]) for row in listed] == [
            ("g", "Stable", "zookeeper"),
            ("left", "Empty", "zookeeper"),
        ]
        assert len(on.rows("group", "list", "--zookeeper", connect, "--state", "empty")) == 1

        shown = (
            "group",
            "topic",
            "partition",
            "current_offset",
            "log_end_offset",
            "lag",
            "consumer_id",
            "host",
        )
        rows = on.rows("group", "describe", "--zookeeper", connect)
        assert [tuple(row[key] for key in shown) for row in rows] == [
            ("g", "gone", 0, 9, None, None, None, None),
            ("g", topic, 0, 1, 3, 2, busy, "host-a.example"),
            ("g", topic, 1, None, 0, None, busy, "host-a.example"),
            ("g", None, None, None, None, None, idle, "host-b"),
            ("left", topic, 0, 3, 3, 0, None, None),
        ]
        assert rows[2]["owner"] == f"{busy}-1"
        plain = on.done("group", "describe", "left", "--zookeeper", connect, "-o", "plain").stdout
        assert plain == f"left\t{topic}\t0\t3\t3\t0\t-\t-\t-\n"
        table = on.done("group", "describe", "left", "--zookeeper", connect).stdout
        assert [line.split() for line in table.splitlines()][1][:6] == ["left", topic, "0", "3", "3", "0"]

        first, second = on.rows("group", "members", "g", "--zookeeper", connect)
        assert (first["consumer_id"], first["assignment"]) == (busy, [f"{topic}-0", f"{topic}-1"])
        assert (second["consumer_id"], second["partitions"], second["subscription"]) == (idle, 0, {topic: 1})


def test_without_brokers_there_is_no_lag(connect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "CONNECT_TIMEOUT_MS", 300)
    with OldGroup(connect, "g") as group:
        group.commit("t", {0: 1})
        ended = invoke("group", "describe", "--zookeeper", connect, "-b", "127.0.0.1:1", "-o", "json")
    assert ended.exit_code == Status.OK
    assert "without lag, since brokers do not tell" in ended.stderr
    (row,) = json.loads(ended.stdout)
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (1, None, None)


def test_brokers_are_found_in_zookeeper(
    broker: LogdProcess, connect: str, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    with OldGroup(connect, "g") as group:
        group.commit(topic, {0: 1})
        group.create(
            "/brokers/ids/1",
            json.dumps(
                {
                    "version": 4,
                    "host": "127.0.0.1",
                    "port": broker.port,
                    "jmx_port": -1,
                    "timestamp": "1",
                    "endpoints": ["SSL://127.0.0.1:1", f"PLAINTEXT://127.0.0.1:{broker.port}"],
                    "listener_security_protocol_map": {"SSL": "SSL", "PLAINTEXT": "PLAINTEXT"},
                }
            ),
        )
        group.create("/brokers/ids/2", "?")
        ended = invoke("group", "describe", "--zookeeper", connect, "-o", "json")
    (row,) = json.loads(ended.stdout)
    assert row["lag"] == 2


def test_what_cannot_be_read_is_told(on: On, connect: str) -> None:
    with OldGroup(connect, "bad") as bad, OldGroup(connect, "good") as good:
        bad.commit("t", {0: "many"})
        good.commit("t", {0: 1})
        ended = on("group", "describe", "--zookeeper", connect)
        assert ended.exit_code == Status.PARTLY
        assert "/consumers/bad/offsets/t/0 is 'many': it must be a decimal number" in ended.stderr
        assert "good" in ended.stdout
        assert on("group", "import", "bad", "--zookeeper", connect).exit_code == Status.FAILED
    for verb in (("describe",), ("import",)):
        missing = on("group", *verb, "no-such", "--zookeeper", connect)
        assert missing.exit_code == Status.NOT_FOUND
        assert "there is no group 'no-such' in ZooKeeper at 127.0.0.1" in missing.stderr


def test_zookeeper_that_is_not_there(on: On, ensemble: Ensemble, tmp_path: Path) -> None:
    config = tmp_path / "zookeeper.properties"
    config.write_text("zookeeper.connection.timeout.ms=300\n")
    away = on("group", "list", "--zookeeper", "127.0.0.1:1", "--zk-tls-config-file", config)
    assert away.exit_code == Status.UNREACHABLE
    assert "no ZooKeeper at 127.0.0.1:1" in away.stderr
    assert "--bootstrap-server" not in away.stderr
    chroot = f"{ensemble.connect_string}/no/such"
    missing = on("group", "list", "--zookeeper", chroot)
    assert missing.exit_code == Status.NOT_FOUND
    assert "there is no path /no/such" in missing.stderr
    assert on("group", "list", "--zookeeper", chroot).exit_code == Status.NOT_FOUND, "nothing was created"
    assert on("group", "list", "--zookeeper", "a:b").exit_code == Status.USAGE
    assert on("group", "list", "--zk-tls-config-file", config).exit_code == Status.USAGE
    assert on("group", "describe", "--zookeeper", chroot, "--state").exit_code == Status.USAGE


@deep
@pytest.mark.parametrize("hangs", [False, True])
async def test_zookeeper_that_goes_away_meanwhile(ensemble: Ensemble, tmp_path: Path, hangs: bool) -> None:
    config = tmp_path / "zookeeper.properties"
    config.write_text("zookeeper.connection.timeout.ms=500\nzookeeper.session.timeout.ms=1000\n")
    async with Proxy(ensemble.connect_string) as proxy:
        with pytest.raises(Unreachable, match="went away, and has not come back for"):
            async with zookeeper(proxy.address, config) as session:
                assert await session.exists("/zookeeper") is not None
                proxy.is_open = False
                proxy.hangs = hangs
                if not hangs:
                    proxy.cut()
                async with asyncio.timeout(60):
                    await session.exists("/zookeeper")


def test_zookeeper_by_a_digest(on: On, connect: str, tmp_path: Path) -> None:
    config = tmp_path / "zookeeper.properties"
    config.write_text("millstream.zookeeper.digest=ours:secret\n")
    listing = ("group", "list", "--zookeeper", connect)
    with OldGroup(connect, "g", digest="ours:secret"):
        refused = on(*listing)
        assert refused.exit_code == Status.NOT_ALLOWED
        assert "--zk-tls-config-file" in refused.stderr
        assert [row["group"] for row in on.rows(*listing, "--zk-tls-config-file", config)] == ["g"]


@deep
def test_zookeeper_by_tls(on: On, secured: Secured, tmp_path: Path) -> None:
    """Read the TLS settings under a broker's names, as Kafka's tools do."""
    secured.authority.issue("operator").write_pkcs12(tmp_path / "key.p12", "changeit")
    config = tmp_path / "zookeeper.properties"
    config.write_text(
        "zookeeper.ssl.client.enable=true\n"
        "zookeeper.clientCnxnSocket=org.apache.zookeeper.ClientCnxnSocketNetty\n"
        f"zookeeper.ssl.truststore.location={secured.folder}/trust.pem\n"
        "zookeeper.ssl.truststore.type=PEM\n"
        f"zookeeper.ssl.keystore.location={tmp_path}/key.p12\n"
        "zookeeper.ssl.keystore.password=changeit\n"
    )
    with OldGroup(secured.plain, "g"):
        rows = on.rows("group", "list", "--zookeeper", secured.secure, "--zk-tls-config-file", config)
    assert [row["group"] for row in rows] == ["g"]


def committed(on: On, group: str) -> dict[tuple[str, int], int]:
    rows = on.rows("group", "describe", group)
    return {(row["topic"], row["partition"]): row["current_offset"] for row in rows}


@deep
def test_offsets_are_imported(on: On, connect: str, topic: str) -> None:
    name = f"{topic}-group"
    with OldGroup(connect, name) as group:
        group.commit(topic, {0: 2, 1: 0})
        group.commit("other", {0: 5})
        rows = on.rows("group", "import", name, "--zookeeper", connect, "--topic", topic)
        assert [(row["partition"], row["zookeeper_offset"], row["new_offset"]) for row in rows] == [
            (0, 2, 2),
            (1, 0, 0),
        ]
        assert on("group", "describe", name).exit_code == Status.NOT_FOUND, "nothing was set"
        on.done("group", "import", name, "--zookeeper", connect, "--topic", topic, "--execute")
        assert committed(on, name) == {(topic, 0): 2, (topic, 1): 0}
        # Once more: nothing is replaced, and nobody asked.
        on.done("group", "import", name, "--zookeeper", connect, "--topic", f"{topic}:0", "--execute")
        nothing = on("group", "import", name, "--zookeeper", connect, "--topic", f"{topic}:0,7")
        assert nothing.exit_code == Status.NOT_FOUND

        group.commit(topic, {0: 1})
        execute = ("group", "import", name, "--zookeeper", connect, "--topic", topic, "--execute")
        unasked = on(*execute)
        assert unasked.exit_code == Status.FAILED
        assert f"Replace offsets that {name} has already, of {topic}-0 (2)?" in unasked.stderr
        assert committed(on, name)[topic, 0] == 2
        on.done(*execute, "--yes")
        assert committed(on, name)[topic, 0] == 1


def test_what_is_left_out_is_told(on: On, connect: str, topic: str) -> None:
    name = f"{topic}-group"
    with OldGroup(connect, name) as group:
        group.commit(topic, {0: 4, 1: 0, 2: 0})
        group.commit("gone", {0: 5})
        shown = on("group", "import", name, "--zookeeper", connect, "-o", "json")
        assert shown.exit_code == Status.OK
        assert {(row["topic"], row["partition"]): row["left_out"] for row in json.loads(shown.stdout)} == {
            ("gone", 0): "there is no such topic or partition",
            (topic, 0): "its log goes from 0 to 3",
            (topic, 1): None,
            (topic, 2): "there is no such topic or partition",
        }
        ended = on("group", "import", name, "--zookeeper", connect, "--execute")
        assert ended.exit_code == Status.PARTLY
        assert f"3 of 4 left out: gone-0 at 5: there is no such topic or partition; {topic}-0" in ended.stderr
        assert committed(on, name) == {(topic, 1): 0}
        nothing = on("group", "import", name, "--zookeeper", connect, "--topic", "gone", "--execute")
        assert nothing.exit_code == Status.FAILED


def test_a_group_that_is_at_work_is_refused(on: On, connect: str, topic: str) -> None:
    name = f"{topic}-group"
    execute = ("group", "import", name, "--zookeeper", connect, "--execute")
    with OldGroup(connect, name) as group:
        group.commit(topic, {0: 2})
        old = group.join("host", **{topic: 1})
        refused = on(*execute)
        assert refused.exit_code == Status.FAILED
        assert f"has members in ZooKeeper ({old}): stop them, or give --force" in refused.stderr
        assert on("group", "describe", name).exit_code == Status.NOT_FOUND
        assert "has members in ZooKeeper" in on.done("group", "import", name, "--zookeeper", connect).stderr
        with member(on, name, topic):
            refused = on(*execute, "--force")
            assert refused.exit_code == Status.FAILED
            assert "in Kafka: stop its consumers" in refused.stderr
        on.done(*execute, "--force", "--yes")
        assert committed(on, name)[topic, 0] == 2


@deep
@java.needs_kafka
def test_into_apache_kafka(connect: str, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, {"log.retention.ms": -1}) as kafka, OldGroup(connect, "g") as group:
        on = On(kafka.bootstrap)
        on.done("topic", "create", "t", "--partitions", 2)
        produce(on.bootstrap, TopicPartition("t", 0), 1_000, 2_000, 3_000)
        group.commit("t", {0: 2, 1: 1})
        assert [row["lag"] for row in on.rows("group", "describe", "--zookeeper", connect)] == [1, 0]
        ended = on("group", "import", "g", "--zookeeper", connect, "--execute")
        assert (ended.exit_code, committed(on, "g")) == (Status.PARTLY, {("t", 0): 2})
        with member(on, "g", "t"):
            assert on("group", "import", "g", "--zookeeper", connect, "--execute").exit_code == Status.FAILED


NOTE = "Note: This will only show information about consumers that use ZooKeeper"


def test_kafkas_tool_of_old(broker: LogdProcess, connect: str, topic: str) -> None:
    """Line by line what ConsumerGroupCommand of Kafka 1.0 prints."""

    def tool(*arguments: str) -> list[str]:
        ended = invoke("kafka-consumer-groups", "--zookeeper", connect, *arguments)
        assert ended.exit_code == 0
        assert ended.stderr.startswith(NOTE)
        return ended.stdout.splitlines()

    with OldGroup(connect, "g") as group, OldGroup(connect, "left") as left:
        busy, idle = group.join("host-a", **{topic: 2}), group.join("host-b", a=1, b=1)
        group.own(busy, topic, 0)
        group.commit(topic, {0: 1})
        left.commit(topic, {0: 3})
        left.commit("other", {0: 3})
        group.create(f"/brokers/topics/{topic}", '{"version":1,"partitions":{"0":[1],"1":[1]}}')
        group.create(
            "/brokers/ids/1",
            f'{{"version":1,"host":"127.0.0.1","port":{broker.port},"jmx_port":-1,"timestamp":"1"}}',
        )
        assert tool("--list") == ["g", "left"]
        header = (
            "TOPIC                          PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG        "
            "CONSUMER-ID                                       "
        )
        assert tool("--describe", "--group", "g") == [
            f"Error: Could not fetch offset from zookeeper for group 'g' partition '{topic}-1' due to "
            "missing offset data in zookeeper.",
            "",
            header,
            f"{topic:<30} 0          1               3               2          {busy:<50}",
            f"{topic:<30} 1          -               0               -          {'-':<50}",
            *[f"{'-':<30} -          -               -               -          {idle:<50}"] * 2,
        ]
        assert tool("--describe", "--group", "no") == ["Error: The consumer group 'no' does not exist."]
        assert tool("--delete", "--group", "g", "--group", "no", "--topic", topic) == [
            f"Error: Delete for group 'g' topic '{topic}' failed because its consumers are still active.",
            f"Error: Delete for group 'no' topic '{topic}' failed because group does not exist.",
        ]
        assert tool("--delete", "--topic", topic) == [
            "Deleted consumer group information for all inactive consumer groups for topic "
            f"'{topic}' in zookeeper."
        ]
        assert not left.exists(f"{left.root}/offsets/{topic}")
        assert left.exists(f"{left.root}/offsets/other/0")
        assert group.exists(f"{group.root}/offsets/{topic}/0")
        assert tool("--delete", "--group", "left") == [
            "Deleted all consumer group information for group 'left' in zookeeper."
        ]
        assert not left.exists(left.root)
