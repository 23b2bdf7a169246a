"""``millstream streams run --config FILE --workers N``: processes of one application, and their ends."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from typer.testing import CliRunner

from streams import StreamsConfig
from streams.cli import app
from streams.tools.workers import config_of
from tests.streams.support.counting import read_last
from tests.streams.support.running import make_topics, produce
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port
from tests.support.waiting import wait_for

ROOT = Path(__file__).parents[3]
PARTITIONS = 4


@pytest.fixture
def application(logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]) -> str:
    """Counts by key, `program.py` and `app.properties` in the folder; its name."""
    name = new_name("workers")
    (tmp_path / "program.py").write_text(
        "from streams import StreamsBuilder\n"
        "def topology():\n"
        "    builder = StreamsBuilder(key_serde=str, value_serde=str)\n"
        f"    counts = builder.stream('{name}-in').group_by_key().count(store='counts')\n"
        f"    counts.to_stream().map_values(str).to('{name}-out', value_serde=str)\n"
        "    return builder\n"
    )
    (tmp_path / "app.properties").write_text(
        f"application.id={name}\nbootstrap.servers={logd.bootstrap}\nnum.stream.threads=2\n"
        f"state.dir={tmp_path}/state\nmax.poll.records=100\nproducer.linger.ms=5\nmy.own=1\n"
        "default.key.serde=org.apache.kafka.common.serialization.Serdes$StringSerde\n"
        "processing.exception.handler="
        "org.apache.kafka.streams.errors.LogAndContinueProcessingExceptionHandler\n"
    )

    async def prepare() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": PARTITIONS, f"{name}-out": PARTITIONS})
        for partition in range(PARTITIONS):
            key = b"%d" % partition
            await produce(logd.bootstrap, f"{name}-in", (key, b"a"), (key, b"b"), partition=partition)

    asyncio.run(prepare())
    return name


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "millstream", "streams", "run", "program:topology"]
    return subprocess.Popen(
        [*command, "--config", "app.properties", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def lines(process: subprocess.Popen[str]) -> Iterator[dict[str, Any]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def wait_until_all_work(process: subprocess.Popen[str], workers: int) -> None:
    """Until each worker runs some of the tasks."""
    tasks: dict[int, list[str]] = {}
    for line in lines(process):
        if line["state"] == "RUNNING" and line["event"] == "status":
            tasks[line["worker"]] = line["tasks"]
        if len(tasks) == workers and all(tasks.values()):
            return
    raise AssertionError(f"they ended: {process.stderr and process.stderr.read()}")


@deep
def test_they_share_the_tasks_and_end_together(logd: LogdProcess, application: str, tmp_path: Path) -> None:
    """Two workers, as num.stream.threads says, share the tasks until SIGTERM."""
    process = start(tmp_path, "--status-interval", "0.1", "--override", "commit.interval.ms=100")
    try:
        wait_until_all_work(process, 2)
    finally:
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    stopped = [json.loads(line) for line in out.splitlines() if '"stopped"' in line]
    assert sorted(line["worker"] for line in stopped) == [0, 1]
    assert "without effect here: " in err and "my.own" in err and "producer.linger.ms" in err
    assert (tmp_path / "state" / application).is_dir()
    assert (tmp_path / "state" / "worker-1" / application).is_dir()


@deep
def test_each_serves_its_view_and_knows_the_others(application: str, tmp_path: Path) -> None:
    port = free_port()
    process = start(tmp_path, "--status-interval", "0.1", "--http", f"127.0.0.1:{port}")
    hosts = {f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"}
    try:
        wait_until_all_work(process, 2)
        for host in hosts:
            wait_for(lambda host=host: hosts_with_tasks(host) == hosts, 60)  # type: ignore[misc]
            for partition in range(PARTITIONS):
                # A worker that has just joined knows no lag yet, and reports 0.
                wait_for(lambda host=host, number=partition: count_of(host, number) == 2, 60)  # type: ignore[misc]
    finally:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err


def count_of(host: str, partition: int) -> int | None:
    """Return the count of a partition's only key, None before there is one."""
    try:
        with urlopen(f"http://{host}/stores/counts/{partition}?partition={partition}") as answer:
            count: int = json.load(answer)["value"]
            return count
    except HTTPError as error:
        if error.code == 404:
            return None
        raise


def hosts_with_tasks(host: str) -> set[str]:
    """Return the hosts with half of the tasks each, as this worker reports them, once there is no lag."""
    with urlopen(f"http://{host}/metadata") as metadata, urlopen(f"http://{host}/status") as status:
        hosts = json.load(metadata)
        if json.load(status)["lag"] != 0:
            return set()
    return {each["host"] for each in hosts if len(each["tasks"]) == PARTITIONS // 2}


@deep
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_they_end_when_caught_up(logd: LogdProcess, application: str, tmp_path: Path, guarantee: str) -> None:
    override = ["--override", f"processing.guarantee={guarantee}"]
    process = start(tmp_path, "--workers", "2", "--exit-when-caught-up", *override)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    counts = asyncio.run(read_last(logd.bootstrap, f"{application}-out", partitions=PARTITIONS))
    assert counts == {b"%d" % partition: b"2" for partition in range(PARTITIONS)}


@deep
def test_one_that_is_killed_ends_all(application: str, tmp_path: Path) -> None:
    process = start(tmp_path, "--status-interval", "0.1")
    try:
        wait_until_all_work(process, 2)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(children[1]), signal.SIGKILL)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 1
    assert "streams: worker 1 ended by SIGKILL: ending all" in err


@deep
def test_none_outlives_the_command(application: str, tmp_path: Path) -> None:
    process = start(tmp_path, "--status-interval", "0.1")
    try:
        wait_until_all_work(process, 2)
    finally:
        process.kill()
    # The workers hold the other end of stdout: it ends with the last of them.
    out, _ = process.communicate(timeout=60)
    assert out.count('"stopped"') == 2


def test_each_has_a_folder_a_client_id_and_an_instance_id_of_its_own() -> None:
    config = StreamsConfig(
        application_id="app", bootstrap_servers="b:1", state_dir="/s", group_instance_id="host"
    )
    assert config_of(config, 0) is config
    second = config_of(config, 1)
    assert (second.state_dir, second.client_id, second.group_instance_id) == (
        "/s/worker-1",
        "app-1",
        "host-1",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bootstrap.servers=b:1\n", "application.id is not known: give --application-id"),
        ("application.id=a\nbootstrap.servers=b:1\nnum.stream.threads=no\n", "num.stream.threads"),
        ("application.id=a\nbootstrap.servers=b:1\nprocessing.exception.handler=no:no\n", "module:function"),
    ],
)
def test_what_the_file_lacks_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "app.properties"
    path.write_text(text)
    ended = CliRunner().invoke(app, ["run", "program:topology", "--config", str(path)])
    assert ended.exit_code == 2
    assert message in " ".join(ended.output.replace("│", " ").split())
