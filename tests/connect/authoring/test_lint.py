"""Lint tells all errors of a config at once, and keys without effect, without any broker."""

import json

import pytest
from typer.testing import CliRunner

from connect.authoring.commands import app

VALID = {"name": "c", "connector.class": "FileStreamSink", "topics": "t", "file": "out.txt"}


@pytest.fixture
def lint(tmp_path):
    def run(*options, **changes):
        config = {**VALID, **{key.replace("_", "."): value for key, value in changes.items()}}
        (tmp_path / "c.json").write_text(json.dumps({k: v for k, v in config.items() if v is not None}))
        result = CliRunner().invoke(app, ["lint", str(tmp_path / "c.json"), *options])
        return result.exit_code, result.stdout.replace(str(tmp_path), "F")

    return run


def test_a_valid_config(lint):
    assert lint() == (0, "ok     F/c.json\n")


def test_all_errors_are_told_at_once(lint):
    code, output = lint(tasks_max="many", topics=None, errors_tolerance="some")
    assert code == 1
    assert output.startswith("FAILED F/c.json\n")
    assert all(key in output for key in ("tasks.max", "topics", "errors.tolerance")), output


def test_keys_without_effect_are_warnings(lint, caplog):
    assert lint(task_max="3")[0] == 0
    assert "c: not known, and without effect: task.max (tasks.max?)" in caplog.text


def test_a_plugin_that_there_is_not(lint):
    code, output = lint(connector_class="Nothing")
    assert (code, "Nothing" in output) == (1, True)


def test_the_workers_policy_counts(lint, tmp_path):
    (tmp_path / "worker.properties").write_text("connector.client.config.override.policy=None\n")
    override = {"consumer.override.fetch.min.bytes": "1"}
    assert lint(**override)[0] == 0
    code, output = lint("--worker", str(tmp_path / "worker.properties"), **override)
    assert (code, "fetch.min.bytes" in output) == (1, True)


def test_a_file_that_cannot_be_read(tmp_path):
    (tmp_path / "c.json").write_text("{")
    assert CliRunner().invoke(app, ["lint", str(tmp_path / "c.json")]).exit_code == 2
