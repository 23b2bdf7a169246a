"""`millstream connect` against a worker's REST interface: files applied, states, offsets and exit codes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from connect.cli import app
from connect.config.rest import RestConfig
from connect.rest.server import RestServer
from tests.connect.rest.conftest import CONFIG, parts_of
from tests.connect.rest.fake_service import FakeService

Run = Callable[..., Result]


@pytest.fixture
def service() -> FakeService:
    return FakeService()


@pytest.fixture
def url(service: FakeService) -> Iterator[str]:
    """Serve the service from a thread of its own, since commands block."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    server = RestServer(RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
    server.bind()
    try:
        asyncio.run_coroutine_threadsafe(server.start(parts_of(service)), loop).result(20)
        yield server.url
    finally:
        asyncio.run_coroutine_threadsafe(server.close(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(20)
        loop.close()


@pytest.fixture
def run(url: str) -> Run:
    def command(*arguments: object) -> Result:
        return CliRunner().invoke(app, [*map(str, arguments)], env={"MILLSTREAM_CONNECT_URL": url})

    return command


def _file(folder: Path, name: str, **settings: str) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "config": {**CONFIG, **settings}}))
    return path


def test_files_are_applied_once(run: Run, service: FakeService, tmp_path: Path) -> None:
    one, two = _file(tmp_path, "one"), _file(tmp_path, "two", limit="3")
    different = run("diff", one, two)
    assert (different.exit_code, different.stdout.splitlines()[0]) == (1, "one: does not exist")
    assert run("apply", one, two).stdout == "one created\ntwo created\n"
    assert run("apply", one, two).stdout == "one unchanged\ntwo unchanged\n"
    assert len(service.calls) == 2
    _file(tmp_path, "two", limit="4", password="hush")
    different = run("diff", one, two)
    assert different.stdout == "two: differs\n  - limit=3\n  + limit=4\n  + password=[hidden]\n"
    applied = run("apply", one, two, "--json")
    assert [each["result"] for each in json.loads(applied.stdout)] == ["unchanged", "changed"]
    assert run("diff", one, two).exit_code == 0


def test_a_refused_file_does_not_keep_others(run: Run, service: FakeService, tmp_path: Path) -> None:
    result = run("apply", _file(tmp_path, "bad", limit="x"), _file(tmp_path, "good"))
    assert result.exit_code == 1
    assert result.stdout == "bad refused\ngood created\n"
    assert "contains the following 1 error(s)" in result.stderr
    assert list(service.configs) == ["good"]


def test_files_without_a_name_or_with_the_same_are_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "none.properties"
    path.write_text("topic=t\n")
    nameless = run("apply", path)
    assert (nameless.exit_code, "does not have it" in nameless.stderr) == (2, True)
    one = _file(tmp_path, "one")
    assert "is in two files" in run("apply", one, one).stderr


def test_a_file_is_validated(run: Run, service: FakeService, tmp_path: Path) -> None:
    valid = run("validate", _file(tmp_path, "a"))
    assert (valid.exit_code, valid.stdout) == (0, "no errors\n")
    invalid = run("validate", _file(tmp_path, "a", limit="x"))
    assert invalid.exit_code == 1
    assert "Invalid value for configuration limit" in invalid.stdout
    assert json.loads(run("validate", _file(tmp_path, "a"), "--json").stdout)["error_count"] == 0
    assert service.configs == {}


def test_states(run: Run, service: FakeService) -> None:
    service.configs |= {"b": dict(CONFIG), "a": dict(CONFIG)}
    assert run("list").stdout == "a\nb\n"
    assert run("status").stdout.count("RUNNING") == 4
    assert json.loads(run("status", "a", "--json").stdout)["name"] == "a"
    assert run("pause", "a", "b").stdout == "a paused\nb paused\n"
    partly = run("stop", "no", "b")
    assert (partly.exit_code, partly.stdout) == (1, "b stopped\n")
    assert "no: Connector no not found (HTTP 404)" in partly.stderr
    assert run("resume", "a").exit_code == 0
    assert run("restart", "a").exit_code == 0
    assert run("restart", "a", "--include-tasks", "--only-failed").exit_code == 0
    assert run("restart", "a", "--task", "0").stdout == "a task 0 restarted\n"
    assert run("restart", "a", "--task", "0", "--only-failed").exit_code == 2
    assert run("delete", "a").stdout == "a deleted\n"
    assert service.calls[-4:] == [
        ("restart", "a"),
        ("restart_all", "a", True, True),
        ("restart_task", "a", 0),
        ("delete", "a"),
    ]


def test_offsets(run: Run, service: FakeService, tmp_path: Path) -> None:
    service.configs["a"] = dict(CONFIG)
    refused = run("offsets", "a", "--set", "t:3=42")
    assert (refused.exit_code, "STOPPED" in refused.stderr) == (1, True)
    run("stop", "a")
    assert "altered" in run("offsets", "a", "--set", "t:3=42", "--set", '{"partition": {"p": 1}}').stdout
    pairs = [({"kafka_topic": "t", "kafka_partition": 3}, {"kafka_offset": 42}), ({"p": 1}, None)]
    assert service.calls[-1] == ("alter", "a", pairs)
    shown = run("offsets", "a", "--json").stdout
    (tmp_path / "saved.json").write_text(shown)
    assert run("offsets", "a", "--set-from", tmp_path / "saved.json").exit_code == 0
    assert service.calls[-1] == ("alter", "a", pairs[:1])
    assert '"kafka_offset": 42' in run("offsets", "a").stdout
    assert "reset" in run("offsets", "a", "--reset").stdout
    assert run("offsets", "a", "--reset", "--set", "t:3=42").exit_code == 2
    assert run("offsets", "a", "--set", "nonsense").exit_code == 2


def test_plugins_of_a_worker(run: Run, url: str) -> None:
    assert "Counting" in run("plugins", "--url", url).stdout
    assert len(json.loads(run("plugins", "--url", url, "--all", "--json").stdout)) == 2


def test_no_worker_is_told_with_the_remedy(run: Run) -> None:
    result = run("list", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert "no worker answers at http://127.0.0.1:1" in result.stderr
    assert run("list", "--url", "nonsense").exit_code == 2
