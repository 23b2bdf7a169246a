"""The command `mirror`: `verify`, exit statuses, `--clusters`, the line of lag, and settings of a flow."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client import Admin, Client
from millstream.terminal.status import Status
from tests.mirror.pair import Pair, numbered, produce
from tests.support.depth import deep, sample
from tests.support.logd_process import free_port
from tests.support.waiting import wait_for

NewName = Callable[[], str]
COMMAND = "import mirror.cli as cli, millstream.commands.mirror.cli; cli.REPORT_SECONDS = 0.05; cli.app()"
LINE = re.compile(
    r"^dc1->dc2: (?P<records>[\d,]+) records, [\d,.]+ MB(?P<rates>, [\d,]+ records/s, [\d,.]+ MB/s)?, "
    r"(?P<partitions>\d+) partitions, lag (?P<lag>[\d,]+) records, (?P<seconds>[\d,.]+) s$",
    re.MULTILINE,
)


def mirror(*arguments: object) -> tuple[int, str]:
    """Exit status and output of the command."""
    command = [sys.executable, "-c", COMMAND, *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    return done.returncode, done.stdout


class Running:
    """`mirror run` in a process; `output` is all it has said."""

    def __init__(self, config: Path, *options: str) -> None:
        self._output_path = config.with_suffix(".log")
        with self._output_path.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "run", str(config), *options],
                stdout=output,
                stderr=output,
            )

    @property
    def output(self) -> str:
        return self._output_path.read_text()

    def wait_for(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        """AssertionError with what it said when it ends meanwhile, or does not get there."""

        def holds() -> bool:
            assert self._process.poll() is None, self.output
            return condition()

        wait_for(holds, seconds)

    def stop(self) -> int:
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(60)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def written(folder: Path, properties: dict[str, str]) -> Path:
    config = folder / "mm2.properties"
    config.write_text("".join(f"{key} = {value}\n" for key, value in properties.items()))
    return config


@contextmanager
def running(folder: Path, properties: dict[str, str], *options: str) -> Iterator[Running]:
    process = Running(written(folder, properties), *options)
    try:
        yield process
    finally:
        process.kill()


def topics_of(bootstrap: str) -> dict[str, int]:
    """Return every topic with the number of records in its partitions."""

    async def ask() -> dict[str, int]:
        async with Client(bootstrap) as client:
            metadata = await client.metadata(None)
            tps = metadata.partitions(list(metadata.topics))
            ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
            counts = dict.fromkeys(metadata.topics, 0)
            for tp, end in ends.items():
                counts[tp.topic] += end.offset
            return counts

    return asyncio.run(ask())


def filled(bootstrap: str, *topics: str, count: int = 10, start: int = 0, **configs: str) -> None:
    """Topics there, made unless they are, with records more."""

    async def fill() -> None:
        for topic in topics:
            if start == 0:
                await Pair(bootstrap, "").create(topic, 1, **configs)
            await produce(bootstrap, topic, {0: [numbered(count, start)]})

    asyncio.run(fill())


def compared(pair: Pair, *arguments: str) -> tuple[int, str]:
    return mirror("verify", "--source", pair.dc1, "--target", pair.dc2, *arguments)


# verify


@deep
def test_verify_says_equal(pair: Pair, new_name: NewName) -> None:
    topic, renamed = new_name(), new_name()
    filled(pair.dc1, topic)
    for copy in (f"dc1.{topic}", topic, renamed):
        filled(pair.dc2, copy)
    for arguments, copy in (
        (("--alias", "dc1", "--topic", topic), f"dc1.{topic}"),
        (("--topic", topic), topic),
        (("--topic", f"{topic}:{renamed}"), renamed),
    ):
        status, output = compared(pair, *arguments)
        assert status == 0, output
        assert re.fullmatch(
            rf"{topic} and {copy}: equal, 10 records\n +0  [0-9a-f]{{32}}  10 records\n", output
        )


@deep
def test_verify_names_the_first_record_that_differs(pair: Pair, new_name: NewName) -> None:
    same, other = new_name(), new_name()
    filled(pair.dc1, same, other)
    filled(pair.dc2, same)
    filled(pair.dc2, other, count=4)

    async def go_on() -> None:
        await produce(pair.dc2, other, {0: [numbered(6, 4, value=b"changed")]})

    asyncio.run(go_on())
    status, output = compared(pair, "--topic", same, "--topic", other)
    assert status == Status.UNHEALTHY, output
    assert f"{same} and {same}: equal, 10 records\n" in output
    assert f"{other} and {other}: DIFFERENT, 10 records\n" in output
    assert "; record 4: value differ, source offset 4, target offset 4\n" in output


def test_verify_names_what_only_one_side_has(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    filled(pair.dc1, topic, count=12)
    filled(pair.dc2, topic, count=10)
    status, output = compared(pair, "--topic", topic)
    assert status == Status.UNHEALTHY, output
    assert "(12 records) is not" in output
    assert "record 10: only the source has it, at offset 10\n" in output


@deep
def test_verify_of_what_cannot_be_compared(pair: Pair, new_name: NewName) -> None:
    topic = new_name()
    filled(pair.dc1, topic)
    status, output = compared(pair, "--topic", topic)
    assert (status, topic in output, "Traceback" in output) == (3, True, False), output
    nobody = f"127.0.0.1:{free_port()}"
    status, output = mirror("verify", "--source", pair.dc1, "--target", nobody, "--topic", topic)
    assert (status, nobody in output, "Traceback" in output) == (4, True, False), output


# run


@sample(1)
@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({"replication.factor": "two"}, (), "replication.factor=two"),
        ({"clusters": "dc1"}, (), "clusters=dc1"),
        ({}, ("--clusters", "dc3"), "--clusters=dc3"),
    ],
)
def test_a_setting_that_cannot_be_used_ends_it_with_2(
    tmp_path: Path, changes: dict[str, str], options: tuple[str, ...], message: str
) -> None:
    properties = Pair("127.0.0.1:1", "127.0.0.1:2").properties("t") | changes
    status, output = mirror("run", written(tmp_path, properties), *options)
    assert (status, "Traceback" in output) == (2, False), output
    assert f"mirror: {message}" in output


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    status, output = mirror("run", tmp_path / "nowhere.properties")
    assert (status, "Traceback" in output) == (2, False), output
    assert "nowhere.properties" in output


@deep
def test_clusters_chooses_the_flows_into_them(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    there, back = new_name(), new_name()
    filled(pair.dc1, there)
    filled(pair.dc2, back)
    properties = pair.properties(there) | {"dc2->dc1.enabled": "true", "dc2->dc1.topics": back}
    config = written(tmp_path, properties)
    status, output = mirror("run", config, "--until-caught-up", "--clusters", "dc3, dc2")
    assert status == 0, output
    assert ("dc1->dc2: 10 records" in output, "dc2->dc1" in output) == (True, False)
    assert (topics_of(pair.dc2)[f"dc1.{there}"], f"dc2.{back}" in topics_of(pair.dc1)) == (10, False)
    status, output = mirror("run", config, "--until-caught-up", "--clusters", "dc1")
    assert (status, topics_of(pair.dc1)[f"dc2.{back}"]) == (0, 10), output


@deep
def test_the_line_of_lag(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    """Lag is printed in a line whenever something has changed, and in a last line with rates."""
    topic = new_name()
    filled(pair.dc1, topic)
    with running(tmp_path, pair.properties(topic)) as link:
        link.wait_for(lambda: "dc1->dc2: 10 records" in link.output)
        filled(pair.dc1, topic, count=5, start=10)
        link.wait_for(lambda: "dc1->dc2: 15 records" in link.output)
        assert link.stop() == 0
        lines = list(LINE.finditer(link.output))
    assert [line["rates"] is None for line in lines] == [True] * (len(lines) - 1) + [False], link.output
    last = lines[-1]
    assert (last["records"], last["partitions"], last["lag"], last["seconds"]) == ("15", "1", "0", "0.0")
    texts = [line[0] for line in lines[:-1]]
    assert len(set(texts)) == len(texts), "nothing is said twice"


# settings


def test_what_is_copied_and_how_it_is_called(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    prefix = new_name()
    filled(pair.dc1, f"{prefix}-a", f"{prefix}-b", retention_ms="-1", max_message_bytes="2000000")
    properties = pair.properties(f"{prefix}-.*") | {
        "dc1->dc2.topics.exclude": ".*-b",
        "replication.policy.separator": "_",
        # A topic of this name with "_" in place of "." cannot stand beside that of the other tests.
        "replication.policy.internal.topic.separator.enabled": "false",
        "config.properties.exclude": r"retention\..*",
    }
    status, output = mirror("run", written(tmp_path, properties), "--until-caught-up")
    assert status == 0, output
    copies = {name: count for name, count in topics_of(pair.dc2).items() if prefix in name}
    assert copies == {f"dc1_{prefix}-a": 10}
    assert configs(pair.dc2, f"dc1_{prefix}-a") == ("604800000", "2000000")


def configs(bootstrap: str, topic: str) -> tuple[str | None, str | None]:
    """Return a topic's retention.ms and max.message.bytes."""

    async def ask() -> tuple[str | None, str | None]:
        async with Client(bootstrap) as client:
            described = await Admin(client).describe_configs(topic)
            return described["retention.ms"].value, described["max.message.bytes"].value

    return asyncio.run(ask())


@deep
def test_changed_configs_are_carried_over_unless_told_otherwise(
    pair: Pair, new_name: NewName, tmp_path: Path
) -> None:
    topic = new_name()
    filled(pair.dc1, topic, retention_ms="-1")
    properties = pair.properties(topic)
    for own, expected in (({}, "-1"), ({"sync.topic.configs.enabled": "false"}, "-1"), ({}, "5000")):
        status, output = mirror("run", written(tmp_path, properties | own), "--until-caught-up")
        assert (status, configs(pair.dc2, f"dc1.{topic}")[0]) == (0, expected), output
        asyncio.run(alter(pair.dc1, topic, "5000"))


async def alter(bootstrap: str, topic: str, retention_ms: str) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).incremental_alter_configs(topic, {"retention.ms": retention_ms})


@deep
@pytest.mark.parametrize("key", ["auto.offset.reset", "consumer.auto.offset.reset"])
def test_a_copy_may_begin_at_the_end(pair: Pair, new_name: NewName, tmp_path: Path, key: str) -> None:
    topic = new_name()
    filled(pair.dc1, topic)
    with running(tmp_path, pair.properties(topic) | {key: "latest"}) as link:
        link.wait_for(lambda: "1 partitions, lag 0 records" in link.output)
        filled(pair.dc1, topic, count=3, start=10)
        link.wait_for(lambda: "dc1->dc2: 3 records" in link.output)
        assert link.stop() == 0
    assert topics_of(pair.dc2)[f"dc1.{topic}"] == 3


@deep
def test_new_topics_are_taken_up_where_they_are_looked_for(
    pair: Pair, new_name: NewName, tmp_path: Path
) -> None:
    prefix = new_name()
    filled(pair.dc1, f"{prefix}-0")
    filled(pair.dc2, f"{prefix}-0")
    properties = pair.properties(f"{prefix}-.*") | {
        "dc2->dc1.enabled": "true",
        "dc2->dc1.topics": f"{prefix}-.*",
        "refresh.topics.interval.seconds": "1",
        "dc2->dc1.refresh.topics.enabled": "false",
    }
    with running(tmp_path, properties) as link:
        link.wait_for(lambda: topics_of(pair.dc1).get(f"dc2.{prefix}-0") == 10)
        for number in (1, 2, 3):  # as often the other flow would have looked
            filled(pair.dc2, f"{prefix}-{number}")
            filled(pair.dc1, f"{prefix}-{number}")
            copy = f"dc1.{prefix}-{number}"
            link.wait_for(lambda copy=copy: topics_of(pair.dc2).get(copy) == 10)  # type: ignore[misc]
        assert link.stop() == 0
    assert [name for name in topics_of(pair.dc1) if name.startswith(f"dc2.{prefix}")] == [f"dc2.{prefix}-0"]


@deep
def test_a_copy_may_keep_its_topics_name(pair: Pair, new_name: NewName, tmp_path: Path) -> None:
    topic = new_name()
    filled(pair.dc1, topic)
    policy = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    config = written(tmp_path, pair.properties(topic) | {"replication.policy.class": policy})
    for count, start in ((10, 0), (5, 10)):
        if start:
            filled(pair.dc1, topic, count=count, start=start)
        status, output = mirror("run", config, "--until-caught-up")
        assert (status, f"dc1->dc2: {count} records" in output) == (0, True), output
    copies = {name: count for name, count in topics_of(pair.dc2).items() if topic in name}
    assert copies == {topic: 15}
    status, output = compared(pair, "--topic", topic)
    assert status == 0, output


@deep
@pytest.mark.parametrize("key", ["replication.factor", "offset-syncs.topic.replication.factor"])
def test_more_replicas_than_brokers_are_refused_by_the_settings_name(
    pair: Pair, new_name: NewName, tmp_path: Path, key: str
) -> None:
    topic, other = new_name(), f"one-{new_name()}"  # whose topic of syncs is not there yet
    filled(pair.dc1, topic)
    properties = {name.replace("dc2", other): value for name, value in pair.properties(topic).items()}
    config = written(tmp_path, properties | {"clusters": f"dc1, {other}", key: "2"})
    status, output = mirror("run", config, "--until-caught-up")
    assert (status, "Traceback" in output) == (1, False), output
    assert f"{key}=2" in output
    assert f"dc1.{topic}" not in topics_of(pair.dc2)
