"""A dry run tries each step of a start and reports what would fail; nothing is written."""

import asyncio
import json

import pytest
from typer.testing import CliRunner

from connect.api import Config, ConnectError, SinkConnector, SinkTask, SourceConnector, SourceTask, setting
from connect.authoring.commands import app
from kafka_client import Admin, Client, NewTopic
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port


class TargetConfig(Config):
    """A target."""

    password: str = setting("The password.", default="right")


class _Checked:
    CONFIG = TargetConfig

    async def check_target(self, config):
        if TargetConfig.parse(config).password != "right":
            raise ConnectError("the target refuses the password of user me")


class CheckedSink(_Checked, SinkConnector):
    task_class = SinkTask


class CheckedSource(_Checked, SourceConnector):
    task_class = SourceTask


class SilentSink(SinkConnector):
    task_class = SinkTask


class HangingSink(SinkConnector):
    task_class = SinkTask

    async def check_target(self, config):
        await asyncio.Event().wait()


@pytest.fixture(scope="module")
def logd(tmp_path_factory):
    with LogdProcess(tmp_path_factory.mktemp("logd"), {}) as process:
        yield process


def run(tmp_path, bootstrap, connector, **config):
    """Return the exit status, and each finding's state and text by its subject."""
    (tmp_path / "worker.properties").write_text(f"bootstrap.servers={bootstrap}\n")
    settings = {"name": "c", "connector.class": f"{__name__}:{connector}"}
    settings |= {key.replace("_", "."): value for key, value in config.items()}
    (tmp_path / "c.json").write_text(json.dumps(settings))
    files = [str(tmp_path / "worker.properties"), str(tmp_path / "c.json")]
    result = CliRunner().invoke(app, ["dry-run", *files, "--timeout", "3"])
    findings = {}
    for line in result.output.splitlines():
        state, _, rest = line.partition(" ")
        subject, _, text = rest.strip().removeprefix(f"{tmp_path}/c.json: ").partition(": ")
        findings[subject] = (state, text)
    return result.exit_code, findings


async def topics_of(bootstrap):
    # Without the topic of offsets: the broker makes it once anybody asks for a group's coordinator.
    async with Client(bootstrap) as client:
        return set(await Admin(client).list_topics()) - {"__consumer_offsets"}


async def test_everything_is_there(tmp_path, logd):
    async with Client(logd.bootstrap) as client:
        await Admin(client).create_topics([NewTopic("orders", 3, 1)])
    before = await topics_of(logd.bootstrap)
    code, findings = await asyncio.to_thread(run, tmp_path, logd.bootstrap, "CheckedSink", topics="orders")
    assert code == 0
    assert [state for state, _ in findings.values()] == ["ok"] * 5, findings
    assert findings["topics"] == ("ok", "orders, 3 partitions")
    assert findings["group"] == ("ok", "connect-c, no offsets yet")
    assert await topics_of(logd.bootstrap) == before
    code, findings = await asyncio.to_thread(run, tmp_path, logd.bootstrap, "CheckedSource")
    assert (code, findings["system"]) == (0, ("ok", "CheckedSource reaches it"))
    assert await topics_of(logd.bootstrap) == before


def test_each_failing_step_is_reported(tmp_path, logd):
    code, findings = run(tmp_path, logd.bootstrap, "CheckedSink", topics="absent", password="wrong")
    assert code == 1
    assert findings["topics"] == ("failed", "there is no topic absent")
    assert findings["system"] == ("failed", "the target refuses the password of user me")


def test_a_pattern_without_topics(tmp_path, logd):
    code, findings = run(tmp_path, logd.bootstrap, "CheckedSink", topics_regex="none.*")
    assert (code, findings["topics"]) == (1, ("failed", "no topic matches topics.regex=none.*"))


def test_brokers_that_do_not_answer(tmp_path):
    code, findings = run(tmp_path, f"127.0.0.1:{free_port()}", "CheckedSink", topics="t")
    assert (code, findings["brokers"][0], findings["system"][0]) == (1, "failed", "ok")


def test_an_invalid_config_ends_the_run(tmp_path):
    code, findings = run(tmp_path, "127.0.0.1:1", "CheckedSink", topics="t", tasks_max="many")
    assert (code, list(findings)) == (1, ["config"])
    assert "tasks.max=many" in findings["config"][1]


def test_a_plugin_without_a_check_says_so(tmp_path, logd):
    _, findings = run(tmp_path, logd.bootstrap, "SilentSink", topics="absent")
    assert findings["system"] == (
        "unchecked",
        "SilentSink has no check of the system that it connects to",
    )


def test_a_check_that_hangs_is_given_up(tmp_path, logd):
    code, findings = run(tmp_path, logd.bootstrap, "HangingSink", topics="absent")
    assert (code, findings["system"]) == (1, ("failed", "HangingSink did not reach the system within 3 s"))
