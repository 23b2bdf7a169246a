"""A worker of a group in this process, on a real broker, whose plugins and providers misbehave."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator, Mapping, Set
from pathlib import Path

import pytest

from connect.api import Config, SourceConnector, SourceRecord, SourceTask, setting
from connect.config.providers import ConfigData, ConfigProvider
from connect.distributed import DistributedConfig, DistributedService, DistributedWorker
from connect.errors import NotFound
from kafka_client.http.client import HttpClient
from tests.support.waiting import until

released = threading.Event()
"""Ends all hanging calls."""
hanging = threading.Event()
"""Set once a call hangs."""


def hang(point: str, hanging_point: str | None) -> None:
    """Hang until the end of the test, if this is the point."""
    if point == hanging_point:
        assert threading.current_thread() is not threading.main_thread(), "it would stop heartbeats and REST"
        hanging.set()
        released.wait()


class Vault(ConfigProvider):
    """Has one password; an old one is no longer valid at once."""

    password = "old"

    def get(self, path: str, keys: Set[str]) -> ConfigData:
        hang("provider", path)
        return ConfigData(dict.fromkeys(keys, self.password), 0 if self.password == "old" else None)


class QuietTask(SourceTask):
    """Notes its config, and has no records."""

    def start(self, config: Mapping[str, str]) -> None:
        Quiet.started.append(("task", config["password"]))

    async def poll(self) -> list[SourceRecord] | None:
        return []


class Quiet(SourceConnector):
    """A source with one task."""

    started: list[tuple[str, str]] = []
    """Which part was started, with which password."""
    task_class = QuietTask

    def start(self, config: Mapping[str, str]) -> None:
        self.config = config
        self.started.append(("connector", config["password"]))

    def task_configs(self, max_tasks: int) -> list[dict[str, str]]:
        return [{"password": self.config["password"]}]


class HangingConfig(Config):
    """The point at which the plugin hangs."""

    point: str = setting("The point.", check=lambda point: hang("check", point))
    password: str = setting("The password.", default="")


class Hanging(Quiet):
    """A source that hangs at a point."""

    CONFIG = HangingConfig

    def __init__(self) -> None:
        hang("constructor", self.point)

    point = ""


MODULE = f"""
from {__name__} import Hanging, hang

hang("import", "import")
class Imported(Hanging):
    pass
"""


@pytest.fixture
def _released() -> Iterator[None]:
    """End the hanging calls with the test."""
    released.clear()
    hanging.clear()
    yield
    released.set()


@pytest.fixture
def worker_config(logd, topic) -> DistributedConfig:
    settings = {
        "bootstrap.servers": logd.bootstrap,
        "group.id": topic,
        "config.providers": "vault",
        "config.providers.vault.class": f"{__name__}:Vault",
        "session.timeout.ms": "2000",
        "heartbeat.interval.ms": "100",
        "task.shutdown.graceful.timeout.ms": "100",
        "offset.storage.partitions": "1",
        "status.storage.partitions": "1",
    }
    for kind in ("config", "offset", "status"):
        settings |= {f"{kind}.storage.topic": f"{topic}-{kind}", f"{kind}.storage.replication.factor": "1"}
    return DistributedConfig.parse(settings)


@pytest.fixture
async def worker(worker_config: DistributedConfig, _released: None) -> AsyncIterator[DistributedWorker]:
    """A worker that is alone in its group."""
    request = HttpClient(timeout=10).request
    url = "http://127.0.0.1:8083"
    async with DistributedWorker(worker_config, url=url, worker_id="w", request=request) as worker:
        await until(lambda: worker.group.assignment is not None)
        yield worker


async def test_a_value_that_expires_restarts_the_connector_and_its_task(
    worker: DistributedWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("connect.runtime.expiries.TTL_MIN_MS", 10)
    monkeypatch.setattr(Quiet, "started", [])
    monkeypatch.setattr(Vault, "password", "old")
    service = DistributedService(worker)
    config = {"connector.class": f"{__name__}:Quiet", "password": "${vault:secret:key}"}
    await service.create_connector("quiet", config)
    await until(lambda: Quiet.started.count(("task", "old")) >= 2)
    assert Quiet.started.count(("connector", "old")) >= 2
    Vault.password = "new"
    await until(lambda: {("task", "new"), ("connector", "new")} <= set(Quiet.started))
    await until(lambda: service.connector_status("quiet")["tasks"][0]["state"] == "RUNNING")
    assert service.task_configs("quiet")[0]["config"]["password"] == "${vault:secret:key}"


@pytest.mark.parametrize("point", ["import", "check", "provider", "constructor"])
async def test_a_plugin_that_hangs_before_its_start_stops_neither_rest_nor_the_group(
    worker: DistributedWorker, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, point: str
) -> None:
    """The config comes from the topic, as that of another worker, on which nothing hangs."""
    monkeypatch.setattr("connect.distributed.config_checks.SLOW_SECONDS", 0.05)
    monkeypatch.setattr("connect.runtime.connector_types.WAIT_SECONDS", 0.05)
    monkeypatch.setattr(Hanging, "point", point)
    (tmp_path / "hanging_import.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    service = DistributedService(worker)
    plugin = "hanging_import:Imported" if point == "import" else f"{__name__}:Hanging"
    config = {"name": "h", "connector.class": plugin, "point": point, "password": f"${{vault:{point}:key}}"}
    await worker.change(lambda: worker.herder.put_connector("h", config))
    await until(hanging.is_set)
    generation = worker.group.generation
    quiet = {"connector.class": f"{__name__}:Quiet", "password": "a"}
    await service.create_connector("quiet", quiet)
    await until(lambda: [row["state"] for row in rows(service, "quiet")] == ["RUNNING", "RUNNING"])
    assert worker.group.generation > generation
    assert worker.group.is_current
    assert service.health()[0] == "healthy"
    if point != "constructor":
        await until(lambda: rows(service, "h"))
        (row,) = rows(service, "h")
        assert (row["state"], "has not returned for 0.05 s" in row["trace"]) == ("UNASSIGNED", True)
    await service.learn_types(["h", "quiet"])
    assert service.connector_info("quiet")["type"] == "source"
    assert service.connector_info("h")["type"] == ("unknown" if point == "import" else "source")
    released.set()
    await until(lambda: [row["state"] for row in rows(service, "h")] == ["RUNNING", "RUNNING"])
    assert all("trace" not in row for row in rows(service, "h"))


def rows(service: DistributedService, name: str) -> list[dict[str, str]]:
    """Return the statuses of a connector and its tasks; none if none is stored."""
    try:
        status = service.connector_status(name)
    except NotFound:
        return []
    return [status["connector"], *status["tasks"]]
