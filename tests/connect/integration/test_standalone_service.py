"""The requests of the REST interface to a standalone worker."""

import asyncio
import json

import httpx
import pytest

from connect.config.rest import RestConfig
from connect.errors import AlreadyExists, BadRequest, ConfigError, NotFound
from connect.herder import TargetState
from connect.rest.app import make_app
from connect.rest.assembly import rest_parts
from connect.rest.service import WorkerService
from connect.runtime import Worker
from connect.runtime.standalone_service import StandaloneService
from kafka_client.http.client import HttpClient
from tests.connect.kafka_workers.plugins import MonitorableSource, reference
from tests.support.ports import free_port
from tests.support.waiting import until

HANGING = (
    ("Connector::start", "starting the connector", "UNASSIGNED"),
    ("Connector::taskConfigs", "generating task configs for connector c", "RUNNING"),
)


def test_a_connector_is_made_changed_stopped_and_deleted(kit, rows, topic):
    config = kit.source(rows(10), topic)
    name = config["name"]

    async def run():
        async with Worker(kit.config()) as worker:
            service: WorkerService = StandaloneService(worker)
            assert service.health()[0] == "healthy"
            assert service.server_info()["kafka_cluster_id"]
            info = await service.create_connector(name, config)
            assert info["type"] == "source"
            assert info["tasks"] == [{"connector": name, "task": 0}]
            assert info == service.connector_info(name)
            assert service.task_configs(name)[0]["id"] == {"connector": name, "task": 0}
            with pytest.raises(AlreadyExists):
                await service.create_connector(name, config)
            await until(lambda: service.connector_status(name)["tasks"][0]["state"] == "RUNNING")
            assert set(service.task_status(name, 0)) == {"id", "state", "worker_id", "version"}
            assert await service.put_config(name, {**config, "batch.size": "7"}) == (
                False,
                service.connector_info(name),
            )
            assert (await service.patch_config(name, {"batch.size": None}))["config"] == {
                key: value for key, value in config.items() if key != "batch.size"
            }
            status = await service.restart_all(name, include_tasks=True, only_failed=False)
            assert [status["connector"]["state"], status["tasks"][0]["state"]] == ["RESTARTING"] * 2
            status = await service.restart_all(name, include_tasks=True, only_failed=True)
            assert "RESTARTING" not in (status["connector"]["state"], status["tasks"][0]["state"])
            await service.set_target(name, TargetState.STOPPED)
            assert service.connector_status(name)["connector"]["state"] == "STOPPED"
            assert service.connector_status(name)["tasks"] == []
            await service.delete_connector(name)
            assert service.connectors() == []
            for request in (service.connector_info, service.connector_status, service.task_configs):
                with pytest.raises(NotFound):
                    request(name)

    asyncio.run(run())


def test_a_new_connector_may_begin_stopped_and_a_bad_one_leaves_nothing(kit, rows, topic):
    config = kit.source(rows(10), topic)

    async def run():
        async with Worker(kit.config()) as worker:
            service = StandaloneService(worker)
            with pytest.raises((ConfigError, NotFound)):
                await service.create_connector("bad", {"connector.class": "none"})
            with pytest.raises(BadRequest):
                await service.put_logger_level("connect", "LOUD")
            assert service.connectors() == []
            await service.create_connector("s", config, TargetState.STOPPED)
            assert service.connector_status("s")["connector"]["state"] == "STOPPED"
            assert service.task_configs("s") == []
            await service.set_target("s", TargetState.STARTED)
            await until(lambda: len(service.task_configs("s")) == 1)

    asyncio.run(run())


@pytest.mark.parametrize(("point", "stage", "state"), HANGING)
async def test_a_connector_that_hangs_can_be_changed_and_deleted(kit, topic, tmp_path, point, stage, state):
    config = kit.config(task_shutdown_graceful_timeout_ms="100")
    plain = {"connector.class": reference(MonitorableSource), "topic": topic, "throughput": "10"}
    plain["events"] = str(tmp_path / "events")
    async with Worker(config) as worker:

        def client(timeout_ms: int) -> httpx.AsyncClient:
            rest = RestConfig.parse({"rest.request.timeout.ms": str(timeout_ms)})
            app = make_app(rest_parts(StandaloneService(worker), config, rest))
            return httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://worker:8083", timeout=60
            )

        async with client(3000) as impatient, client(60_000) as patient:
            answer = await impatient.post(
                "/connectors", json={"name": "c", "config": plain | {"block": point}}
            )
            assert answer.status_code == 500
            text = f"Request timed out. The worker is currently {stage}, which began at "
            assert answer.json()["message"].startswith(text)
            status = (await impatient.get("/connectors/c/status")).json()
            assert (status["connector"]["state"], status["tasks"]) == (state, [])
            assert (await patient.put("/connectors/c/config", json=plain)).status_code == 200
            await until(lambda: [t["state"] for t in worker.report("c")["tasks"]] == ["RUNNING"])
            hanging = plain | {"block": "Connector::stop"}
            assert (await patient.put("/connectors/c/config", json=hanging)).status_code == 200
            assert (await patient.delete("/connectors/c")).status_code == 204
            assert (await patient.get("/connectors")).json() == []
            answer = await patient.post("/connectors", json={"name": "c", "config": plain})
            assert answer.status_code == 201


def test_a_worker_whose_connector_hangs_at_the_start_is_starting_and_can_be_ended(kit, topic, tmp_path):
    url = f"http://127.0.0.1:{free_port()}"
    kit.settings |= {"listeners": url, "task.shutdown.graceful.timeout.ms": "200"}
    source = {"connector.class": reference(MonitorableSource), "topic": topic, "throughput": "10"}
    hanging = source | {"name": "hanging", "events": str(tmp_path / "a"), "block": "Connector::start"}
    process = kit.spawn(hanging, source | {"name": "normal", "events": str(tmp_path / "b")})
    client = HttpClient(timeout=60)

    def answer(path: str) -> tuple[int, dict]:
        try:
            response = client.request("GET", url + path, None, {})
        except OSError:
            return 0, {}
        return response.status, json.loads(response.body)

    def is_running() -> bool:
        tasks = answer("/connectors/normal/status")[1].get("tasks", [])
        return [task["state"] for task in tasks] == ["RUNNING"]

    kit.wait_until(is_running, process)
    status, health = answer("/health")
    assert (status, health["status"]) == (503, "starting")
    text = "Worker is still starting up. The worker is currently starting the connector, which began at "
    assert health["message"].startswith(text)
    assert kit.terminate(process) == 0
    assert [event["event"] for event in kit.events()] == ["stopped"]
