"""Kafka's ConnectWorkerIntegrationTest against our worker: what a change of a connector's config does.

| Kafka's method | our test |
|---|---|
| testRestartFailedTask | test_a_task_that_failed_by_its_config_runs_with_another |
| testTaskStatuses | test_the_statuses_follow_tasks_max |
| testPatchConnectorConfig | test_a_patch_changes_adds_and_removes_keys |
| testTasksMaxEnforcement | test_more_tasks_than_tasks_max_fail_where_it_is_enforced |
| testReconfigureConnectorWithFailingTaskConfigs | test_a_config_whose_secrets_are_gone_is_replaced |
| testRuntimePropertyReconfiguration | test_a_change_of_converters_alone_restarts_tasks |
| testReconfigureConverter (of older versions) | test_a_change_of_converters_alone_restarts_tasks |
| testPluginAliases | test_plugins_are_named_by_their_aliases |

Beside them: a config put a second time without a change restarts nothing.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_client import Admin, Client, NewTopic, Producer
from tests.connect.kafka_workers.plugins import EmptyConfigsSink
from tests.connect.kafka_workers.worker_script import STRING, WorkerScript

JSON = "org.apache.kafka.connect.json.JsonConverter"


def starts(worker: WorkerScript, name: str) -> list[int | None]:
    """Return what has started so far: the numbers of tasks, None for the connector."""
    return [event["task"] for event in worker.events(name, "start")]


def test_a_task_that_failed_by_its_config_runs_with_another(worker, topic, name):
    config = worker.source(name, topic)
    bad = {"producer.override.bootstrap.servers": "nobrokerrunningatthisaddress"}
    worker.put(name, config | bad)
    worker.wait_state(name, "RUNNING", "FAILED")
    worker.put(name, config)
    worker.do("POST", f"/connectors/{name}/tasks/0/restart")
    worker.wait_running(name)


def test_the_statuses_follow_tasks_max(worker, topic, name):
    for count in (1, 5, 3):
        worker.put(name, worker.source(name, topic, tasks_max=str(count)))
        worker.wait_running(name, count)
        shown = worker.do("GET", "/connectors?expand=status&expand=info")[name]
        assert [task["id"] for task in shown["status"]["tasks"]] == list(range(count))
        assert [task["task"] for task in shown["info"]["tasks"]] == list(range(count))


def test_a_config_put_again_restarts_nothing(worker, topic, name):
    config = worker.source(name, topic, tasks_max="2")
    worker.put(name, config)
    worker.wait_running(name, 2)
    first, *tasks = starts(worker, name)
    assert first is None and sorted(tasks) == [0, 1]  # tasks start in any order
    worker.put(name, config)
    worker.put(name, config | {"tasks.max": "3"})
    worker.wait_running(name, 3)
    assert starts(worker, name).count(None) == 2


def test_a_patch_changes_adds_and_removes_keys(worker, topic, name):
    keys = {"unaffected-key": "unaffected-value", "to-be-deleted-key": "value"}
    config = worker.sink(name, topic, tasks_max="2") | keys
    worker.put(name, config)
    worker.wait_running(name, 2)
    patch = {"tasks.max": "3", "to-be-added-key": "value", "to-be-deleted-key": None}
    worker.do("PATCH", f"/connectors/{name}/config", patch)
    worker.wait_running(name, 3)
    del config["to-be-deleted-key"]
    expected = {**config, "name": name, "to-be-added-key": "value", "tasks.max": "3"}
    assert worker.do("GET", f"/connectors/{name}")["config"] == expected


@pytest.fixture
def own_worker(logd, tmp_path):
    """Yield a group of one test, whose workers may be ended and started."""
    script = WorkerScript(logd.bootstrap, tmp_path)
    try:
        yield script.start()
    finally:
        script.close()


async def test_more_tasks_than_tasks_max_fail_where_it_is_enforced(own_worker, logd, topic):
    worker, name = own_worker, "excessive"
    config = worker.source(name, topic, num_tasks="2")
    worker.put(name, config)
    worker.wait_state(name, "FAILED")
    text = f"The connector {name} has generated 2 tasks, which is greater than 1, "
    text += "the maximum number of tasks it is configured to create. "
    assert text in worker.status(name)["connector"]["trace"]
    (url,) = worker.urls
    worker.group.end(url)
    await plan_behind_the_worker(worker, logd.bootstrap, name, config)
    worker.start()
    worker.wait_state(name, "FAILED", "FAILED", "FAILED")
    assert text in worker.status(name)["tasks"][1]["trace"]
    config["tasks.max.enforce"] = "false"
    for count in (2, 3):
        worker.put(name, config | {"num.tasks": str(count)})
        worker.wait_running(name, count)
    config["tasks.max.enforce"] = "true"
    worker.put(name, config | {"num.tasks": "1"})
    worker.wait_running(name, 1)
    worker.put(name, config)
    worker.wait_state(name, "FAILED", "RUNNING")
    worker.do("POST", f"/connectors/{name}/tasks/0/restart")
    worker.wait_state(name, "FAILED", "RUNNING")


async def plan_behind_the_worker(
    worker: WorkerScript, bootstrap: str, name: str, config: dict[str, str]
) -> None:
    """Write two task configs to the config topic, as a worker without `tasks.max.enforce` did."""
    records = {f"task-{name}-{n}": {"properties": config | {"id": str(n), "task.class": "x"}} for n in (0, 1)}
    records[f"commit-{name}"] = {"tasks": 2}
    async with Client(bootstrap) as client, Producer(client) as producer:
        for key, value in records.items():
            config_topic = worker.group.settings["config.storage.topic"]
            await producer.send_and_wait(config_topic, json.dumps(value).encode(), key=key.encode())


def test_a_config_whose_secrets_are_gone_is_replaced(logd, topic, tmp_path: Path):
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("throughput=10\n")
    worker, name = WorkerScript(logd.bootstrap, tmp_path, config_providers="file"), "secretive"
    worker.group.settings["config.providers.file.class"] = (
        "org.apache.kafka.common.config.provider.FileConfigProvider"
    )
    try:
        worker.start()
        config = worker.source(name, topic, tasks_max="2")
        worker.put(name, config | {"throughput": f"${{file:{secrets}:throughput}}"})
        worker.wait_running(name, 2)
        secrets.unlink()
        before = len(starts(worker, name))
        worker.put(name, config | {"topic": f"{topic}-second"})
        worker.wait_until(lambda: sorted(map(str, starts(worker, name)[before:])) == ["0", "1", "None"])
        worker.wait_until(
            lambda: f"{topic}-second" in worker.do("GET", f"/connectors/{name}/topics")[name]["topics"]
        )
        worker.wait_running(name, 2)
    finally:
        worker.close()


async def test_a_change_of_converters_alone_restarts_tasks(worker, kit, topic, name):
    async with Client(kit.bootstrap) as client, Producer(client) as producer:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        await producer.send_and_wait(topic, b"non-json-value")
    config = worker.sink(name, topic, EmptyConfigsSink)
    worker.put(name, config | {"value.converter": JSON, "value.converter.schemas.enable": "false"})
    worker.wait_state(name, "RUNNING", "FAILED")
    assert worker.do("GET", f"/connectors/{name}/offsets") == {"offsets": []}
    worker.put(name, config | {"value.converter": STRING})
    worker.wait_running(name)
    row = {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}
    worker.wait_until(lambda: worker.do("GET", f"/connectors/{name}/offsets") == {"offsets": [row]})


@pytest.mark.parametrize("alias", ["FileStreamSource", "FileStreamSourceConnector"])
def test_plugins_are_named_by_their_aliases(worker, topic, name, alias, tmp_path: Path):
    (tmp_path / "lines").write_text("one\n")
    config = {
        "tasks.max": "1",
        **{f"{part}.converter": "StringConverter" for part in ("key", "value", "header")},
        "transforms": "filter",
        "transforms.filter.type": "Filter",
        "transforms.filter.predicate": "tombstone",
        "predicates": "tombstone",
        "predicates.tombstone.type": "RecordIsTombstone",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }
    source = {"connector.class": alias, "file": str(tmp_path / "lines"), "topic": topic}
    worker.put(name, config | source)
    worker.wait_running(name)
    worker.wait_until(lambda: worker.do("GET", f"/connectors/{name}/topics")[name]["topics"] == [topic])
    worker.delete(name)
    config = {key: value for key, value in config.items() if not key.startswith("topic.creation")}
    sink = {"connector.class": alias.replace("Source", "Sink"), "file": str(tmp_path / "copy")}
    worker.put(name, config | sink | {"topics": topic})
    worker.wait_running(name)
    worker.wait_until(lambda: (tmp_path / "copy").exists() and (tmp_path / "copy").read_text() == "one\n")
