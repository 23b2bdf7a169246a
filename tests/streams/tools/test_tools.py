"""``millstream streams reset|lag|state``, against an application that has run on logd."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from kafka_client import Admin, Client, TopicPartition
from kafka_client.errors import ConfigError
from streams import StreamsBuilder, StreamsError, Topology
from streams.cli import app
from streams.tools.reset import Reset
from streams.tools.reset import reset as reset_application
from streams.tools.targets import Target, duration_ms, read_plan, timestamp_ms
from tests.streams.support.running import make_topics, produce, start
from tests.support.depth import deep
from tests.support.java import needs_kafka, run_tool
from tests.support.logd_process import LogdProcess

NewName = Callable[[str], str]


def counts(name: str) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    stream = builder.stream(f"{name}-in").map(lambda key, value: (key, value))
    stream.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    return builder.build()


async def run_once(bootstrap: str, name: str, folder: Path) -> dict[str, int]:
    async with start(counts(name), bootstrap, name, folder) as streams:
        await streams.wait_until_caught_up()
        stores: Any = streams.stores("counts")
        return {key: value for store in stores for key, value in store.all()}


@pytest.fixture
def application(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> str:
    """The name of an application that has counted a twice and b once, with two records behind that."""
    name = new_name("tools")

    async def prepare() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", *((key, bytes(8)) for key in (b"a", b"a", b"b")))
        assert await run_once(logd.bootstrap, name, tmp_path) == {"a": 2, "b": 1}
        await produce(logd.bootstrap, f"{name}-in", *((key, bytes(8)) for key in (b"c", b"c")))

    asyncio.run(prepare())
    return name


def invoke(command: str, bootstrap: str, name: str, *options: str) -> Result:
    servers = ["--bootstrap-server", bootstrap] if command != "state" else []
    return CliRunner().invoke(app, [command, *servers, "--application-id", name, *options])


def internal(bootstrap: str, name: str) -> list[str]:
    async def ask() -> list[str]:
        async with Client(bootstrap) as client:
            return sorted(
                each for each in await Admin(client).list_topics() if each.startswith(f"{name}-counts")
            )

    return asyncio.run(ask())


def committed(bootstrap: str, name: str) -> int:
    async def ask() -> int:
        async with Client(bootstrap) as client:
            return (await Admin(client).list_group_offsets(name))[TopicPartition(f"{name}-in", 0)].offset

    return asyncio.run(ask())


def test_lag_by_partition(logd: LogdProcess, application: str) -> None:
    """Changelogs are no inputs, though the group has offsets of them."""
    result = invoke("lag", logd.bootstrap, application, "--format", "json")
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.output.splitlines()]
    assert [(row["topic"].removeprefix(f"{application}-"), row["lag"]) for row in rows] == [
        ("counts-repartition", 0),
        ("in", 2),
    ]
    assert rows[1] == {"topic": f"{application}-in", "partition": 0, "committed": 3, "end": 5, "lag": 2}
    table = invoke("lag", logd.bootstrap, application).output.splitlines()
    assert table[0].split() == ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"]
    assert table[2].split() == [f"{application}-in", "0", "3", "5", "2"]


def test_what_a_state_folder_holds(application: str, tmp_path: Path) -> None:
    folder = ["--override", f"state.dir={tmp_path}"]
    result = invoke("state", "", application, *folder, "--format", "json")
    assert result.exit_code == 0, result.output
    (row,) = [json.loads(line) for line in result.output.splitlines()]
    assert (row["folder"], row["task"], row["store"]) == (str(tmp_path / application), "1_0", "counts")
    assert row["keys"] == 2 and row["checkpoint"] == 2 and row["bytes"] > 0
    (tmp_path / application / "1_0" / "rocksdb" / "counts" / "CURRENT").write_text("bad")
    table = invoke("state", "", application, *folder).output
    assert "PROBLEM" in table and "RocksDB does not open" in table


def test_a_dry_run_changes_nothing(logd: LogdProcess, application: str) -> None:
    result = invoke(
        "reset",
        logd.bootstrap,
        application,
        "--input-topics",
        f"{application}-in",
        "--to-latest",
        "--dry-run",
    )
    assert result.output.splitlines() == [
        "----Dry run displays the actions which will be performed when running Streams Reset Tool----",
        f"Reset-offsets for input topics [{application}-in]",
        f"Following input topics offsets will be reset to (for consumer group {application})",
        f"Topic: {application}-in Partition: 0 Offset: 5",
        "Done.",
        f"Deleting inferred internal topics [{', '.join(internal(logd.bootstrap, application))}]",
        "Done.",
    ]
    assert committed(logd.bootstrap, application) == 3
    assert len(internal(logd.bootstrap, application)) == 2


def without_order(output: str) -> list[list[str]]:
    """Kafka's tool lists topics as a Java HashMap has them."""
    return [sorted(re.split(r"[\[\], ]+", line)) for line in output.splitlines()]


@needs_kafka
@pytest.mark.parametrize(
    "options",
    [
        ["--input-topics", "in"],
        ["--input-topics", "in,gone", "--to-offset", "4"],
        ["--input-topics", "in", "--shift-by", "-1"],
        ["--input-topics", "in", "--intermediate-topics", "out"],
        [],
    ],
    ids=" ".join,
)
def test_kafkas_tool_prints_the_same(logd: LogdProcess, application: str, options: list[str]) -> None:
    named = [f"{application}-in" if each == "in" else each for each in options]
    named = [each.replace("in,gone", f"{application}-in,gone") for each in named]
    named = [f"{application}-out" if each == "out" else each for each in named]
    ours = invoke("reset", logd.bootstrap, application, "--dry-run", *named)
    theirs = run_tool(
        "org.apache.kafka.tools.StreamsResetter",
        *("--bootstrap-server", logd.bootstrap, "--application-id", application, "--dry-run", *named),
    )
    assert without_order(ours.output) == without_order(theirs.stdout)
    assert ours.exit_code == theirs.returncode


def test_an_application_begins_anew(logd: LogdProcess, application: str, tmp_path: Path) -> None:
    result = invoke("reset", logd.bootstrap, application, "--input-topics", f"{application}-in")
    assert result.exit_code == 0, result.output
    assert internal(logd.bootstrap, application) == []
    counted = asyncio.run(run_once(logd.bootstrap, application, tmp_path))
    assert counted == {"a": 2, "b": 1, "c": 2}


def test_an_application_that_runs_is_not_reset(logd: LogdProcess, application: str, tmp_path: Path) -> None:
    messages: list[str] = []

    async def case() -> None:
        async with Client(logd.bootstrap) as client:
            async with start(counts(application), logd.bootstrap, application, tmp_path) as streams:
                await streams.wait_until_caught_up()
                with pytest.raises(
                    StreamsError, match=rf"Consumer group '{application}' is still active .*'--force'"
                ):
                    await reset_application(
                        client, Reset(application_id=application), messages.append, messages.append
                    )

    asyncio.run(case())
    assert messages == []


def test_members_that_are_left_over_are_removed(logd: LogdProcess, application: str, tmp_path: Path) -> None:
    messages: list[str] = []

    async def case() -> None:
        async with Client(logd.bootstrap) as client:
            streams = start(
                counts(application), logd.bootstrap, application, tmp_path, group_instance_id="static"
            )
            async with streams:
                await streams.wait_until_caught_up()
            # A static member stays in the group when it is closed.
            assert (await Admin(client).describe_groups([application]))[application].members
            reset = Reset(
                application_id=application, force=True, internal=[f"{application}-counts-changelog"]
            )
            assert await reset_application(client, reset, messages.append, messages.append)

    asyncio.run(case())
    assert messages[0] == f"Force deleting all active members in the group: {application}"
    assert internal(logd.bootstrap, application) == [f"{application}-counts-repartition"]


@deep
@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (["--to-latest", "--to-offset", "3"], 2, "one of --to-earliest"),
        (["--internal-topics", "other"], 2, "internal topics of the application: .*-counts-changelog"),
        (["--input-topics", "IN", "--by-duration", "1h"], 2, "P1DT2H30M"),
        (["--input-topics", "IN", "--to-datetime", "soon"], 2, "2013-01-31"),
        (
            ["--input-topics", "nowhere"],
            1,
            "Following input topics are not found, skipping them\nTopic: nowhere",
        ),
    ],
)
def test_what_cannot_be_reset_is_said(
    logd: LogdProcess, application: str, options: list[str], status: int, message: str
) -> None:
    named = [f"{application}-in" if each == "IN" else each for each in options]
    ended = invoke("reset", logd.bootstrap, application, "--dry-run", *named)
    assert ended.exit_code == status
    assert re.search(message, ended.output)


async def test_targets_lie_within_the_log(logd: LogdProcess, application: str, tmp_path: Path) -> None:
    tp = TopicPartition(f"{application}-in", 0)
    (tmp_path / "plan").write_text(f"{application}-in,0,4\n")

    async def find(target: Target) -> tuple[int, list[str]]:
        messages: list[str] = []
        async with Client(logd.bootstrap) as client:
            offsets = await target.offsets(Admin(client), [tp], application, messages.append)
        return offsets[tp], messages

    assert await find(Target()) == (0, [])
    assert await find(Target(to_latest=True)) == (5, [])
    high = "New offset (9) is higher than latest offset. Value will be set to 5"
    assert await find(Target(to_offset=9)) == (5, [high])
    low = "New offset (-1) is lower than earliest offset. Value will be set to 0"
    assert await find(Target(shift_by=-4)) == (0, [low])
    assert await find(Target(from_file=tmp_path / "plan")) == (4, [])
    assert await find(Target(to_datetime="1970-01-01T00:00:00")) == (0, [])
    offset, messages = await find(Target(by_duration="PT1S"))
    assert offset == 5 and "Falling back to latest known offset" in messages[0]


def test_times_and_plans_are_read(tmp_path: Path) -> None:
    assert timestamp_ms("2013-01-31T12:00:00.500") == 1359633600500
    assert timestamp_ms("2013-01-31T12:00:00+01:00") == 1359630000000
    assert duration_ms("P1DT2H30M") == 95_400_000
    (tmp_path / "bad").write_text("t,0,1\nt,x,1\n")
    with pytest.raises(ConfigError, match="line 2"):
        read_plan(tmp_path / "bad")
    with pytest.raises(ConfigError, match="a file that can be read"):
        read_plan(tmp_path / "gone")
