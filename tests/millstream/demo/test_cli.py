from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from millstream.demo import cli
from millstream.demo.checks import Check
from millstream.demo.counts import Counts
from millstream.demo.layout import Layout
from millstream.demo.process import PartFailed
from millstream.demo.run import Demo, Outcome

YES, NO = Check("a", True, ""), Check("b", False, "")


@pytest.mark.parametrize(("checks", "holds"), [([YES], True), ([YES, NO], False), ([], False)])
def test_everything_has_to_hold_and_something_has_to_be_checked(checks: list[Check], holds: bool) -> None:
    assert Outcome([], checks, [], 0.0).holds is holds


@pytest.mark.parametrize(("holds", "status"), [(True, 0), (False, 1)])
def test_the_exit_status_says_whether_everything_agrees(
    holds: bool, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(*arguments: object) -> bool:
        return holds

    monkeypatch.setattr(cli, "_run", run)

    assert CliRunner().invoke(cli.app, []).exit_code == status


def test_one_node_has_nobody_to_take_over() -> None:
    result = CliRunner().invoke(cli.app, ["--kill-leader"])

    assert result.exit_code == 2
    assert "--nodes=1: must be 2 or more for --kill-leader" in result.output


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()

    result = CliRunner().invoke(cli.app, ["--folder", str(tmp_path)])

    assert result.exit_code == 2
    assert "must be empty" in result.output
    assert (tmp_path / "mine").exists()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_folder_that_cannot_be_one_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").touch()

    result = CliRunner().invoke(cli.app, ["--folder", str(tmp_path / name)])

    assert result.exit_code == 2
    assert "must be a folder to write to" in result.output


@pytest.fixture
def flights(tmp_path: Path) -> Path:
    pytest.importorskip("rich")
    path = tmp_path / "flights.csv"
    path.write_text("year,month,day,dep_delay,carrier\n2013,1,1,2,UA\n")
    return path


def test_a_csv_without_flights_is_refused(flights: Path) -> None:
    flights.write_text(flights.read_text().partition("\n")[0] + "\n")

    result = CliRunner().invoke(cli.app, ["--input", str(flights)])

    assert result.exit_code == 2
    assert "at least one flight" in result.output


def test_without_java_nothing_is_started(flights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(flights.parent))

    result = CliRunner().invoke(cli.app, ["--input", str(flights)])

    assert result.exit_code == 2
    assert f"JAVA_HOME={flights.parent}: Spark needs Java 17" in result.output


async def test_a_sink_that_has_failed_ends_the_demo(tmp_path: Path) -> None:
    """Its worker goes on, for the sake of its other connectors: the demo would wait for rows for ever."""
    demo = Demo(Layout(tmp_path, tmp_path, tmp_path, (1,), 2), lambda stages: Shown())
    demo._part("connect spark", [])
    task = {"state": "FAILED", "trace": "Traceback:\n  ...\nJobFailed: Spark did not start\n"}
    connector = {"name": "spark-flights", "connector": {"state": "RUNNING"}, "tasks": [task]}
    demo._spark_said("no JSON")
    demo._spark_said(json.dumps({"event": "started", "connectors": ["spark-flights"]}))
    demo._spark_said(json.dumps({"event": "status", "connectors": [connector]}))
    with pytest.raises(PartFailed, match="spark-flights failed: JobFailed: Spark did not start; see"):
        await demo._until(Counting(), lambda counts: False)


class Counting:
    async def take(self) -> Counts:
        return Counts()


class Shown:
    def refresh(self) -> None:
        pass


def test_the_logs_of_a_part_that_failed_are_left(monkeypatch: pytest.MonkeyPatch) -> None:
    folders = []

    async def run(folder: Path, *rest: object) -> bool:
        folders.append(folder)
        raise PartFailed(f"logd dc1 ended: see {folder}/logd-dc1.log")

    monkeypatch.setattr(cli, "_run", run)

    assert CliRunner().invoke(cli.app, []).exit_code == 1
    assert folders[0].is_dir()
    folders[0].rmdir()
