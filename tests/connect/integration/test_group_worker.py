"""A worker of a group in this process, on a real broker, whose plugins and providers misbehave."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Set

import pytest

from connect.api import SourceConnector, SourceRecord, SourceTask
from connect.config.providers import ConfigData, ConfigProvider
from connect.distributed import DistributedConfig, DistributedService, DistributedWorker
from kafka_client.http.client import HttpClient
from tests.support.waiting import until


class Vault(ConfigProvider):
    """Has one password; an old one is no longer valid at once."""

    password = "old"

    def get(self, path: str, keys: Set[str]) -> ConfigData:
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
    }
    for kind in ("config", "offset", "status"):
        settings |= {f"{kind}.storage.topic": f"{topic}-{kind}", f"{kind}.storage.replication.factor": "1"}
    return DistributedConfig.parse(settings)


@pytest.fixture
async def worker(worker_config: DistributedConfig) -> AsyncIterator[DistributedWorker]:
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
