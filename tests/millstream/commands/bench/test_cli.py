"""`millstream bench` against a broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from millstream.commands.bench.cli import app
from millstream.terminal.status import Status
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.millstream_command import run as run_process
from tests.support.topics import create_topic


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


def run(logd: LogdProcess, *arguments: object) -> Result:
    return CliRunner().invoke(app, [*map(str, arguments), "-b", logd.bootstrap])


def test_what_is_written_is_measured_and_what_is_read(logd: LogdProcess) -> None:
    topic = create_topic(logd, "bench", partitions=2)
    options = ("--num-records", 5_000, "--record-size", 100, "-o", "json")
    written = json.loads(run(logd, "produce", topic, *options).stdout)
    assert written["records"] == 5_000
    megabytes = 500_000 / 1024 / 1024
    assert written["records_per_second"] == pytest.approx(5_000 / written["seconds"], rel=0.01)
    assert written["mb_per_second"] == pytest.approx(megabytes / written["seconds"], rel=0.05, abs=0.01)
    latencies = [written[f"latency_{name}_ms"] for name in ("50th", "95th", "99th", "99_9th", "max")]
    assert latencies == sorted(latencies)
    for group in ((), ("-g", "readers")):
        read = json.loads(run(logd, "consume", topic, "-n", 5_000, "-o", "json", *group).stdout)
        assert (read["records"], read["mb"]) == (5_000, pytest.approx(megabytes, abs=0.001))
        assert read["rebalance_time_ms"] >= 0


@deep
def test_a_limit_of_throughput_and_payloads_of_a_file(logd: LogdProcess, tmp_path: Path) -> None:
    topic = create_topic(logd, "limited")
    file = tmp_path / "payloads"
    file.write_text("one;two;")
    payload = ("--payload-file", file, "--payload-delimiter", ";")
    row = json.loads(
        run(logd, "produce", topic, "-n", 101, "--throughput", 500, *payload, "-o", "json").stdout
    )
    assert row["seconds"] >= 0.19
    assert row["records"] == 101
    lines = run_process("consume", topic, "-e", "-b", logd.bootstrap).stdout.splitlines()
    assert lines == [b"one", b"two"] * 50 + [b"one"]


@deep
def test_what_cannot_be_measured(logd: LogdProcess) -> None:
    topic = create_topic(logd, "nothing")
    assert run(logd, "produce", topic, "-n", 1).exit_code == Status.USAGE
    assert run(logd, "produce", "nowhere", "-n", 1, "--record-size", 1).exit_code == Status.NOT_FOUND
    none = run(logd, "consume", topic, "-n", 1, "--timeout", 300)
    assert (none.exit_code, "no record came within 300 ms" in none.stderr) == (Status.UNREACHABLE, True)
    run(logd, "produce", topic, "-n", 3, "--record-size", 1)
    some = run(logd, "consume", topic, "-n", 9, "--timeout", 300)
    assert (some.exit_code, "3 of 9 records came" in some.stderr) == (Status.PARTLY, True)
