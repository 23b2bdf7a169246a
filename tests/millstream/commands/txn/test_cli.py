"""`millstream txn` against a broker: what it prints, and what it exits with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from millstream.commands.txn.cli import app
from millstream.terminal.status import Status
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.markers import wait_for_markers
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import TIMEOUT_MS, Writer


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Run a broker without verification, so that transactions can hang as they did before KIP-890."""
    overrides = {
        "transaction.partition.verification.enable": "false",
        "transaction.state.log.num.partitions": "3",
    }
    with LogdProcess(tmp_path_factory.mktemp("logd"), overrides) as process:
        yield process


@pytest.fixture
def client(logd: LogdProcess) -> Iterator[RawClient]:
    with RawClient(logd.port) as raw:
        yield raw


@pytest.fixture
def topic(client: RawClient, request: pytest.FixtureRequest) -> str:
    name = request.node.name.partition("[")[0]
    creation = CreatableTopic(name=name, num_partitions=2, replication_factor=1)
    assert client.request(CreateTopicsRequest(topics=[creation]), 7).topics[0].error_code == 0
    topics = [MetadataRequestTopic(name=name)]
    while client.request(MetadataRequest(topics=topics), 12).topics[0].error_code:
        pass
    return name


def run(logd: LogdProcess, *arguments: object) -> Result:
    return CliRunner().invoke(app, ["--bootstrap-server", logd.bootstrap, *map(str, arguments)])


def table(result: Result) -> list[dict[str, str]]:
    """Rows by column, cut where the header's words stand."""
    assert result.exit_code == 0, result.output
    header, *lines = result.stdout.splitlines()
    columns = header.split()
    starts = [header.index(column) for column in columns]
    ends = [*starts[1:], len(header) + 1_000]
    return [
        {column: line[a:b].strip() for column, a, b in zip(columns, starts, ends, strict=True)}
        for line in lines
    ]


def hang(client: RawClient, topic: str, index: int, producer_id: int) -> Writer:
    """Write a record of a transaction that no coordinator knows."""
    zombie = Writer(client, "lost", producer_id, 0)
    assert zombie.produce(topic, index) == 0
    return zombie


def commit(writer: Writer, topic: str, index: int) -> None:
    """Commit, and wait for the marker in this partition."""
    writer.end(commit=True)
    wait_for_markers(writer.client, topic, index)


def test_list(logd: LogdProcess, client: RawClient, topic: str) -> None:
    writer, other = Writer.begin(client, "list-a"), Writer.begin(client, "list-b")
    writer.add_partition(topic, 0)
    rows = {row["TransactionalId"]: row for row in table(run(logd, "list"))}
    assert rows["list-a"] == {
        "TransactionalId": "list-a",
        "Coordinator": "1",
        "ProducerId": str(writer.producer_id),
        "TransactionState": "Ongoing",
    }
    assert rows["list-b"]["TransactionState"] == "Empty"
    some = table(run(logd, "list", "--transactional-id-pattern", "list-b|nothing"))
    assert [row["ProducerId"] for row in some] == [str(other.producer_id)]
    assert "list-a" not in run(logd, "list", "--duration-filter", 3_600_000).stdout
    bad = run(logd, "list", "--transactional-id-pattern", "(")
    assert bad.exit_code == 1
    assert "INVALID_REGULAR_EXPRESSION" in bad.stderr
    writer.end(commit=False)


def test_describe(logd: LogdProcess, client: RawClient, topic: str) -> None:
    writer = Writer.begin(client, "described")
    (row,) = table(run(logd, "describe", "--transactional-id", "described"))
    assert (row["TransactionState"], row["TopicPartitions"]) == ("Empty", "")
    assert (row["CurrentTransactionStartTimeMs"], row["TransactionDurationMs"]) == ("None", "None")
    writer.add_partition(topic, 0)
    writer.add_partition(topic, 1)
    (row,) = table(run(logd, "describe", "--transactional-id", "described"))
    assert int(row.pop("CurrentTransactionStartTimeMs")) > 0
    assert int(row.pop("TransactionDurationMs")) >= 0
    assert row == {
        "CoordinatorId": "1",
        "TransactionalId": "described",
        "ProducerId": str(writer.producer_id),
        "ProducerEpoch": "0",
        "TransactionState": "Ongoing",
        "TransactionTimeoutMs": str(TIMEOUT_MS),
        "TopicPartitions": f"{topic}-0,{topic}-1",
    }
    writer.end(commit=True)
    unknown = run(logd, "describe", "--transactional-id", "nobody")
    assert (unknown.exit_code, unknown.stdout) == (Status.NOT_FOUND, "")
    assert "'nobody'" in unknown.stderr


@deep
def test_describe_producers(logd: LogdProcess, client: RawClient, topic: str) -> None:
    writer = Writer.begin(client, "producers")
    writer.add_partition(topic, 1)
    writer.produce(topic, 1)
    where = ("describe-producers", "--topic", topic, "--partition", 1)
    for arguments in (where, (*where, "--broker-id", 1)):
        (row,) = table(run(logd, *arguments))
        assert int(row.pop("LastTimestamp")) > 0
        assert row == {
            "ProducerId": str(writer.producer_id),
            "ProducerEpoch": "0",
            "LatestCoordinatorEpoch": "-1",
            "LastSequence": "0",
            "CurrentTransactionStartOffset": "0",
        }
    commit(writer, topic, 1)
    (row,) = table(run(logd, *where))
    assert (row["LatestCoordinatorEpoch"], row["CurrentTransactionStartOffset"]) == ("0", "None")
    missing = run(logd, "describe-producers", "--topic", topic, "--partition", 2)
    assert missing.exit_code == Status.NOT_FOUND


def test_find_hanging_and_abort(logd: LogdProcess, client: RawClient, topic: str) -> None:
    writer = Writer.begin(client, "at work")
    writer.add_partition(topic, 0)
    writer.produce(topic, 0)
    zombie = hang(client, topic, 0, 900)
    hang(client, topic, 1, 901)
    # By the default they may go on for a quarter of an hour.
    assert table(run(logd, "find-hanging", "--topic", topic)) == []

    now = ("--max-transaction-timeout", 0)
    row, other = table(run(logd, "find-hanging", "--topic", topic, *now))
    assert int(row.pop("LastTimestamp")) > 0
    assert row == {
        "Topic": topic,
        "Partition": "0",
        "ProducerId": "900",
        "ProducerEpoch": "0",
        "CoordinatorEpoch": "-1",
        "StartOffset": "1",
        "Duration(min)": "0",
    }
    assert (other["Partition"], other["ProducerId"]) == ("1", "901")
    assert table(run(logd, "find-hanging", "--topic", topic, "--partition", 1, *now)) == [other]
    everywhere = table(run(logd, "find-hanging", "--broker-id", 1, *now))
    assert [row for row in everywhere if row["Topic"] == topic][1] == other

    first = client.fetch(topic, isolation_level=1)
    assert (first.last_stable_offset, first.high_watermark) == (0, 2)
    aborted = run(
        logd, "abort", "--topic", topic, "--partition", 0, "--start-offset", row["StartOffset"], "--yes"
    )
    assert (aborted.exit_code, aborted.output) == (0, "")
    by_producer = ("--producer-id", 901, "--producer-epoch", 0, "--coordinator-epoch", -1)
    assert run(logd, "abort", "--topic", topic, "--partition", 1, *by_producer, "--yes").exit_code == 0
    assert table(run(logd, "find-hanging", "--topic", topic, *now)) == []

    commit(writer, topic, 0)
    assert zombie.produce(topic, 1) == 0  # it may go on: nothing but its transaction was ended
    after = client.fetch(topic, isolation_level=1)
    assert after.last_stable_offset == after.high_watermark == 4
    assert [each.producer_id for each in after.aborted_transactions] == [900]


def test_what_cannot_be_aborted(logd: LogdProcess, client: RawClient, topic: str) -> None:
    nothing = run(logd, "abort", "--topic", topic, "--partition", 0, "--start-offset", 77)
    assert nothing.exit_code == 1
    assert f"starting at offset 77 on partition {topic}-0" in nothing.stderr
    Writer.begin(client, "somebody")  # there is a coordinator then, which the next one's batch asks for
    newer = Writer(client, "lost", 911, 5)
    assert newer.produce(topic, 0) == 0
    unasked = ("--producer-id", 911, "--producer-epoch", 5, "--coordinator-epoch", 0)
    unconfirmed = run(logd, "abort", "--topic", topic, "--partition", 0, *unasked)
    assert unconfirmed.exit_code == 1
    assert "give --yes" in unconfirmed.stderr
    assert newer.produce(topic, 1) == 0  # nothing was done
    stale = ("--producer-id", 911, "--producer-epoch", 4, "--coordinator-epoch", 0)
    fenced = run(logd, "abort", "--topic", topic, "--partition", 0, *stale, "--yes")
    assert fenced.exit_code == 1
    assert "INVALID_PRODUCER_EPOCH" in fenced.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("find-hanging",),
        ("find-hanging", "--broker-id", 1, "--partition", 0),
        ("abort", "--topic", "t", "--partition", 0),
        ("abort", "--topic", "t", "--partition", 0, "--producer-id", 1, "--producer-epoch", 0),
        ("abort", "--topic", "t", "--partition", 0, "--start-offset", 1, "--producer-id", 1),
        ("describe",),
        ("describe-producers", "--topic", "t"),
    ],
    ids=lambda arguments: " ".join(map(str, arguments)),
)
def test_wrong_command_lines(arguments: tuple[object, ...]) -> None:
    result = CliRunner().invoke(app, ["--bootstrap-server", "127.0.0.1:1", *map(str, arguments)])
    assert result.exit_code == 2
    assert "--" in result.stderr


def test_the_servers_stand_before_the_command_or_after_it(logd: LogdProcess) -> None:
    after = CliRunner().invoke(app, ["list", "--bootstrap-server", logd.bootstrap])
    assert after.stdout == run(logd, "list").stdout


def test_the_file_stands_before_the_command_or_after_it(logd: LogdProcess, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"bootstrap.servers={logd.bootstrap}\n")
    option = ["--command-config", str(file)]
    for arguments in ([*option, "list"], ["list", *option]):
        assert CliRunner().invoke(app, arguments).stdout == run(logd, "list").stdout


def test_rows_as_json(logd: LogdProcess, client: RawClient) -> None:
    writer = Writer.begin(client, "as-json")
    (row,) = json.loads(run(logd, "describe", "--transactional-id", "as-json", "-o", "json").stdout)
    assert (row["producer_id"], row["start_time_ms"], row["partitions"]) == (writer.producer_id, None, [])


def test_nobody_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.terminal.servers.CONNECT_TIMEOUT_MS", 200)
    result = CliRunner().invoke(app, ["list", "--bootstrap-server", "127.0.0.1:1"])
    assert result.exit_code == Status.UNREACHABLE
    assert "cannot connect to 127.0.0.1:1" in result.stderr


def test_a_broker_that_is_not_there(logd: LogdProcess) -> None:
    result = run(logd, "find-hanging", "--broker-id", 7)
    assert result.exit_code == Status.NOT_FOUND
    assert "there is no broker 7" in result.stderr
