"""A running connector: its plan and its end."""

import asyncio
import threading

from connect.api import SourceConnector, SourceRecord, SourceTask
from connect.runtime.connector import WorkerConnector, WorkerParts


class Replanning(SourceConnector):
    """Its second plan never comes."""

    released = threading.Event()
    planning = threading.Event()
    plans = 0

    class Task(SourceTask):
        def poll(self):
            return [SourceRecord("t", 1)]

    task_class = Task

    def task_configs(self, max_tasks):
        type(self).plans += 1
        if self.plans > 1:
            self.planning.set()
            self.released.wait()
        return [self.config]


class Growing(SourceConnector):
    """Plans as many tasks as it is told."""

    tables = ("a",)
    plans = 0
    task_class = Replanning.Task

    def task_configs(self, max_tasks):
        self.plans += 1
        return [{**self.config, "table": table} for table in self.tables]


class FakeClients:
    def __init__(self, client):
        self._client = client

    def of(self, type, connector):
        return self._client


def parts(harness) -> WorkerParts:
    setting = harness.setting()
    return WorkerParts(
        worker_id="w",
        config=setting.worker,
        clients=FakeClients(harness.client),
        store=harness.store,
        on_change=lambda: None,
    )


def test_a_plan_that_hangs_does_not_keep_the_worker_from_ending(harness, fake_producer, monkeypatch):
    """`stop` waited behind the plan for the right to change the connector."""
    harness.worker |= {"task.shutdown.graceful.timeout.ms": "50", "offset.flush.timeout.ms": "50"}
    monkeypatch.setattr("connect.runtime.connector.connector_class", lambda name: Replanning)

    async def run():
        connector = WorkerConnector(parts(harness), {"name": "c", "connector.class": "Replanning"})
        await connector.start()
        connector._connector.context.request_task_reconfiguration()
        await harness.until(Replanning.planning.is_set)
        await asyncio.wait_for(connector.stop(), 60)

    try:
        asyncio.run(run())
    finally:
        Replanning.released.set()


def test_a_plan_that_differs_replaces_the_tasks_and_an_equal_one_does_not(
    harness, fake_producer, monkeypatch
):
    monkeypatch.setattr("connect.runtime.connector.connector_class", lambda name: Growing)

    async def run():
        raw = {"name": "c", "connector.class": "Growing", "tasks.max": "2"}
        connector = WorkerConnector(parts(harness), raw)
        await connector.start()
        (first,) = connector.tasks
        plugin = connector._connector
        replan = plugin.context.request_task_reconfiguration
        replan()
        await harness.until(lambda: plugin.plans == 2 and not connector._background)
        assert connector.tasks == [first]
        monkeypatch.setattr(Growing, "tables", ("a", "b"))
        await asyncio.to_thread(replan)
        await harness.until(lambda: len(connector.tasks) == 2)
        assert first.status.state == "UNASSIGNED"
        await connector.stop()

    asyncio.run(run())


def test_plans_that_are_asked_for_in_a_row_become_one(harness, fake_producer, monkeypatch):
    """Each was a task of its own, waiting behind the one under way."""
    monkeypatch.setattr("connect.runtime.connector.connector_class", lambda name: Growing)

    async def run():
        connector = WorkerConnector(parts(harness), {"name": "c", "connector.class": "Growing"})
        await connector.start()
        for _ in range(2):  # also once it was stopped
            plugin = connector._connector
            before = plugin.plans
            async with connector._changing:
                for _ in range(100):
                    plugin.context.request_task_reconfiguration()
                await harness.until(lambda: connector._background)
                await asyncio.sleep(0)
                assert len(connector._background) == 1
            await harness.until(lambda: not connector._background)
            assert plugin.plans == before + 1
            plugin.context.request_task_reconfiguration()
            plugin.context.request_task_reconfiguration()
            await connector.restart()
        await connector.stop()

    asyncio.run(run())


def test_keys_without_effect_are_told(harness, monkeypatch, caplog):
    """Whatever began like one of Kafka's keys was passed over: `errors.tolerence`, a rule of no group."""
    monkeypatch.setattr("connect.runtime.connector.connector_class", lambda name: Growing)
    keys = {
        "name": "c",
        "connector.class": "Growing",
        "task.max": "1",
        "errors.tolerence": "none",
        "errors.tolerance": "none",
        "errors.log.enable": "true",
        "exactly.once.suport": "requested",
        "config.action.reload": "none",
        "topic.creation.groups": "tables",
        "topic.creation.tables.include": "a",
        "topic.creation.tabels.cleanup.policy": "compact",
        "topic.creation.default.partitions": "1",
        "topic.creation.default.cleanup.policy": "compact",
        "producer.override.linger.ms": "1",
        "producer.linger.ms": "1",
        "consumer.override.fetch.min.bytes": "1",
        "value.converter": "json",
        "value.converter.schemas.enable": "false",
    }
    WorkerConnector(parts(harness), keys)
    assert [record.getMessage() for record in caplog.records] == [
        "c: task.max is not known; tasks.max?",
        "c: errors.tolerence is not known; errors.tolerance?",
        "c: exactly.once.suport is not known; exactly.once.support?",
        "c: topic.creation.tabels.cleanup.policy is not known",
        "c: without effect here: config.action.reload, consumer.override.fetch.min.bytes, errors.log.enable, "
        "producer.linger.ms",
    ]
