"""A running connector: its plan and its end."""

import asyncio
import threading

import pytest

from connect.api import SourceConnector, SourceRecord, SourceTask
from connect.config.providers import ConfigData, ConfigProvider
from connect.errors import ConfigError
from connect.herder import Herder, TargetState
from connect.runtime.connector import WorkerConnector
from connect.runtime.connector_check import check_config
from connect.runtime.worker_parts import WorkerParts


class Replanning(SourceConnector):
    """Its second plan never comes."""

    released = threading.Event()
    planning = threading.Event()
    plans = 0

    class Task(SourceTask):
        def poll(self):
            return [SourceRecord("t", 1)]

    task_class = Task

    def start(self, config):
        super().start(config)
        Replanning.last = self

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

    def start(self, config):
        super().start(config)
        Growing.last = self

    def task_configs(self, max_tasks):
        self.plans += 1
        return [{**self.config, "table": table} for table in self.tables]


class HangingAtFirst(SourceConnector):
    """Its first start does not return before it is released."""

    starting, released = threading.Event(), threading.Event()
    starts = 0
    task_class = Replanning.Task

    def start(self, config):
        super().start(config)
        type(self).starts += 1
        if self.starts == 1:
            self.starting.set()
            self.released.wait()


class HangingInConstructor(SourceConnector):
    """Its first object, and the first of its task, are made only once they are released."""

    making, released = threading.Event(), threading.Event()
    places: tuple[str, ...] = ()

    class Task(Replanning.Task):
        def __init__(self):
            HangingInConstructor.hang("task")

    task_class = Task

    def __init__(self):
        self.hang("connector")

    @classmethod
    def hang(cls, place):
        if place in cls.places:
            cls.places = ()
            cls.making.set()
            assert threading.current_thread() is not threading.main_thread(), "it would stop the event loop"
            cls.released.wait()


class Failing(SourceConnector):
    """Does not start while it is broken."""

    broken = True
    task_class = Replanning.Task

    def start(self, config):
        super().start(config)
        if self.broken:
            raise RuntimeError("cannot start")


class Unmakeable(SourceTask):
    """Raises when it is made."""

    def __init__(self):
        raise RuntimeError("no task today")


class FakeClients:
    def __init__(self, client):
        self._client = client

    def of(self, type, connector):
        return self._client

    def admin(self, connector):
        return self._client

    def dead_letters(self, connector):
        return self._client


def parts(harness, herder) -> WorkerParts:
    setting = harness.setting()
    return WorkerParts(
        worker_id="w",
        config=setting.worker,
        clients=FakeClients(harness.client),
        store=harness.store,
        on_change=lambda: None,
        on_plan=herder.take_plan,
        on_expired=herder.restart_expired,
    )


class Standalone:
    """A connector with the herder that says what should run of it."""

    def __init__(self, harness, plugin, monkeypatch, **raw) -> None:
        monkeypatch.setattr("connect.runtime.connector_check.connector_class", lambda name: plugin)
        self.herder = Herder()
        self.expired = []
        self._parts = parts(harness, self)
        self.checked = check_config(self._parts.config, {"name": "c", "connector.class": "x", **raw})
        self.connector = WorkerConnector(self._parts, self.checked)

    def take_plan(self, name, configs) -> None:
        self.write(self.herder.put_plan(name, configs))

    def restart_expired(self, name, number) -> None:
        self.expired.append(number)
        self.herder.restart(name, [] if number < 0 else [number], connector=number < 0)
        self.reconcile()

    def write(self, records) -> None:
        if self.herder.read(records):
            self.reconcile()

    def reconcile(self) -> None:
        self.connector.reconcile(self.checked, self.herder.runs("c"))

    async def start(self) -> None:
        self.write(self.herder.put_connector("c", self.checked.config))
        await self.connector.settled()

    async def target(self, target) -> None:
        self.write(self.herder.set_target("c", target))
        await self.connector.settled()

    async def restart(self, *tasks, connector=False) -> None:
        self.herder.restart("c", tasks, connector=connector)
        self.reconcile()
        await self.connector.settled()

    @property
    def states(self):
        return [self.connector.status.state, *(task.status.state for task in self.connector.tasks)]


async def test_a_plan_that_hangs_does_not_keep_the_worker_from_ending(harness, fake_producer, monkeypatch):
    harness.worker |= {"task.shutdown.graceful.timeout.ms": "50", "offset.flush.timeout.ms": "50"}
    alone = Standalone(harness, Replanning, monkeypatch)
    try:
        await alone.start()
        Replanning.last.context.request_task_reconfiguration()
        await harness.until(Replanning.planning.is_set)
        await asyncio.wait_for(alone.connector.close(), 60)
        assert alone.connector.calls()["abandoned"] == 1
    finally:
        Replanning.released.set()


async def test_a_start_that_hangs_is_abandoned_when_the_connector_is_paused(
    harness, fake_producer, monkeypatch
):
    harness.worker |= {"task.shutdown.graceful.timeout.ms": "50"}
    alone = Standalone(harness, HangingAtFirst, monkeypatch)
    alone.write(alone.herder.put_connector("c", alone.checked.config))
    try:
        await harness.until(HangingAtFirst.starting.is_set)
        await alone.target(TargetState.PAUSED)
        assert alone.states == ["PAUSED"]
        await alone.target(TargetState.STARTED)
        assert alone.connector.status.state == "RUNNING"
    finally:
        HangingAtFirst.released.set()
        await alone.connector.close()


@pytest.mark.parametrize("place", ["connector", "task"])
async def test_a_constructor_that_hangs_is_abandoned_when_the_connector_is_restarted(
    harness, fake_producer, monkeypatch, place
):
    harness.worker |= {"task.shutdown.graceful.timeout.ms": "50"}
    alone = Standalone(harness, HangingInConstructor, monkeypatch)
    HangingInConstructor.making.clear()
    HangingInConstructor.released.clear()
    monkeypatch.setattr(HangingInConstructor, "places", (place,))
    alone.write(alone.herder.put_connector("c", alone.checked.config))
    try:
        await harness.until(HangingInConstructor.making.is_set)
        stage = "starting the connector" if place == "connector" else "starting 1 tasks for connector c"
        assert alone.connector.stage.description == stage
        assert alone.states == ["UNASSIGNED" if place == "connector" else "RUNNING"]
        await alone.restart(*([0] if place == "task" else []), connector=place == "connector")
        await harness.until(lambda: alone.states == ["RUNNING", "RUNNING"])
        assert alone.connector.calls()["abandoned"] == 1
        HangingInConstructor.released.set()
        await harness.until(lambda: alone.connector.calls()["abandoned"] == 0)
        assert alone.states == ["RUNNING", "RUNNING"]
    finally:
        HangingInConstructor.released.set()
        await alone.connector.close()


async def test_a_plan_that_differs_replaces_the_tasks_and_an_equal_one_does_not(
    harness, fake_producer, monkeypatch
):
    alone = Standalone(harness, Growing, monkeypatch, **{"tasks.max": "2"})
    connector = alone.connector
    await alone.start()
    (first,) = connector.tasks
    plugin = Growing.last
    plugin.context.request_task_reconfiguration()
    await harness.until(lambda: plugin.plans == 2)
    await connector.settled()
    assert connector.tasks == [first]
    monkeypatch.setattr(Growing, "tables", ("a", "b"))
    await asyncio.to_thread(plugin.context.request_task_reconfiguration)
    await harness.until(lambda: len(connector.tasks) == 2)
    assert connector.tasks[0] is first, "its config is the same"
    monkeypatch.setattr(Growing, "tables", ("c", "b"))
    await asyncio.to_thread(plugin.context.request_task_reconfiguration)
    await harness.until(lambda: connector.tasks[0] is not first)
    assert first.status.state == "UNASSIGNED"
    await connector.close()


async def test_plans_that_are_asked_for_in_a_row_become_one(harness, fake_producer, monkeypatch):
    alone = Standalone(harness, Growing, monkeypatch)
    await alone.start()
    for _ in range(2):
        plugin = Growing.last
        before = plugin.plans
        for _ in range(100):
            plugin.context.request_task_reconfiguration()
        await harness.until(lambda plugin=plugin, before=before: plugin.plans > before)
        await alone.connector.settled()
        assert plugin.plans == before + 1
        await alone.restart(connector=True)
    assert Growing.last is not plugin, "a restart makes another plugin object"
    await alone.connector.close()


async def test_a_pause_outlives_restarts_and_a_plan_waits_for_the_resume(harness, fake_producer, monkeypatch):
    alone = Standalone(harness, Growing, monkeypatch, **{"tasks.max": "2"})
    await alone.start()
    await alone.target(TargetState.PAUSED)
    await harness.until(lambda: alone.states == ["PAUSED", "PAUSED"])
    await alone.restart(0, connector=True)
    await harness.until(lambda: alone.states == ["PAUSED", "PAUSED"])
    monkeypatch.setattr(Growing, "tables", ("a", "b"))
    Growing.last.context.request_task_reconfiguration()
    await alone.connector.settled()
    assert len(alone.connector.tasks) == 1
    await alone.target(TargetState.STARTED)
    await harness.until(lambda: alone.states == ["RUNNING", "RUNNING", "RUNNING"])
    await alone.target(TargetState.STOPPED)
    assert alone.states == ["STOPPED"]
    await alone.target(TargetState.STARTED)
    await harness.until(lambda: alone.states == ["RUNNING", "RUNNING", "RUNNING"])
    await alone.connector.close()


async def test_a_connector_that_fails_to_start_stays_failed_until_it_is_restarted(
    harness, fake_producer, monkeypatch
):
    monkeypatch.setattr(Failing, "broken", True)
    alone = Standalone(harness, Failing, monkeypatch)
    await alone.start()
    assert alone.states == ["FAILED"]
    assert "cannot start" in alone.connector.status.trace
    await alone.target(TargetState.PAUSED)
    assert alone.states == ["FAILED"]
    await alone.target(TargetState.STARTED)
    assert alone.states == ["FAILED"]
    monkeypatch.setattr(Failing, "broken", False)
    await alone.restart(connector=True)
    await harness.until(lambda: alone.states == ["RUNNING", "RUNNING"])
    await alone.connector.close()


async def test_a_task_that_cannot_be_made_fails_alone(harness, fake_producer, monkeypatch):
    monkeypatch.setattr(Growing, "task_class", Unmakeable)
    alone = Standalone(harness, Growing, monkeypatch)
    await alone.start()
    await harness.until(lambda: alone.states == ["RUNNING", "FAILED"])
    assert "no task today" in alone.connector.tasks[0].status.trace
    await alone.connector.close()


def test_keys_without_effect_are_told(harness, monkeypatch, caplog):
    """Whatever began like one of Kafka's keys was passed over: `errors.tolerence`, a rule of no group."""
    monkeypatch.setattr("connect.runtime.connector_check.connector_class", lambda name: Growing)
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
    check_config(harness.setting().worker, keys)
    assert [record.getMessage() for record in caplog.records] == [
        "c: not known, and without effect: task.max (tasks.max?), errors.tolerence (errors.tolerance?), "
        "exactly.once.suport (exactly.once.support?), topic.creation.tabels.cleanup.policy",
        "c: without effect here: consumer.override.fetch.min.bytes, producer.linger.ms",
    ]


class Recovering(SourceConnector):
    """Its task fails as often as `failures` says, in each case at its first poll."""

    failures = 0

    class Task(SourceTask):
        def poll(self):
            if Recovering.failures:
                Recovering.failures -= 1
                raise RuntimeError("not yet")
            return None

    task_class = Task


QUICK = {"errors.restart.backoff.ms": "1"}


async def test_a_failed_task_is_started_again_by_itself(harness, fake_producer, monkeypatch):
    Recovering.failures = 2
    alone = Standalone(harness, Recovering, monkeypatch, **QUICK)
    await alone.start()

    def restarts():
        return [task.get("auto_restart", {}).get("restarts") for task in alone.connector.report()["tasks"]]

    await harness.until(lambda: restarts() == [2] and alone.states == ["RUNNING", "RUNNING"])
    assert not Recovering.failures
    await alone.connector.close()


async def test_restarts_have_an_end_and_a_restart_by_hand_begins_anew(harness, fake_producer, monkeypatch):
    Recovering.failures = 1 << 30
    alone = Standalone(harness, Recovering, monkeypatch, **QUICK)
    await alone.start()

    def restarts():
        (task,) = alone.connector.report()["tasks"] or [{}]
        shown = task.get("auto_restart", {})
        return None if "next_restart_ms" in shown or task.get("state") != "FAILED" else shown.get("restarts")

    await harness.until(lambda: restarts() == 3)
    assert Recovering.failures == (1 << 30) - 4
    assert "not yet" in alone.connector.report()["tasks"][0]["trace"]
    await alone.restart(0)
    await harness.until(lambda: Recovering.failures == (1 << 30) - 8 and restarts() == 3)
    await alone.connector.close()


async def test_a_failed_task_of_a_paused_connector_waits_for_its_resume(harness, fake_producer, monkeypatch):
    Recovering.failures = 1
    alone = Standalone(harness, Recovering, monkeypatch, **{"errors.restart.backoff.ms": "600000"})
    await alone.start()
    await harness.until(lambda: alone.states == ["RUNNING", "FAILED"])
    assert 0 < alone.connector.report()["tasks"][0]["auto_restart"]["next_restart_ms"] <= 600_000
    await alone.target(TargetState.PAUSED)
    monkeypatch.setattr("connect.runtime.auto_restart.AutoRestart.is_due", True)
    alone.connector.reconcile(alone.checked, alone.herder.runs("c"))
    await alone.connector.settled()
    assert alone.states == ["PAUSED", "FAILED"]
    await alone.target(TargetState.STARTED)
    await harness.until(lambda: alone.states == ["RUNNING", "RUNNING"])
    await alone.connector.close()


async def test_variables_are_looked_up_at_each_start_and_kept_in_what_is_stored(
    harness, fake_producer, monkeypatch, tmp_path
):
    """Neither the connector's config nor the plan of its tasks holds a secret."""
    secrets = tmp_path / "secrets"
    secrets.write_text("password=opensesame\n")
    harness.worker |= {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    variable = f"${{file:{secrets}:password}}"
    alone = Standalone(harness, Growing, monkeypatch, password=variable)
    await alone.start()
    assert alone.checked.config["password"] == variable
    assert Growing.last.config["password"] == "opensesame"
    (run,) = alone.herder.runs("c").tasks.values()
    assert run.config["password"] == variable
    (task,) = alone.connector.tasks
    assert task.setting.config["password"] == "opensesame"
    assert task.setting.connector_config["password"] == "opensesame"
    secrets.write_text("password=changed\n")
    await alone.restart(0)
    assert alone.connector.tasks[0].setting.config["password"] == "changed"
    secrets.unlink()
    await alone.restart(0)
    (task,) = alone.connector.tasks
    await harness.until(lambda: task.status.state == "FAILED")
    assert f"password={variable}: {secrets} cannot be read" in task.status.trace
    with pytest.raises(ConfigError) as caught:
        check_config(alone._parts.config, {"name": "c", "connector.class": "x", "password": variable})
    assert caught.value.key == "password"
    await alone.connector.close()


class Vault(ConfigProvider):
    """Has one password, which expires at once until it is changed."""

    password, ttl = "old", 0

    def get(self, path, keys):
        return ConfigData(dict.fromkeys(keys, self.password), self.ttl)


@pytest.mark.parametrize("action", [None, "restart", "none"])
async def test_a_value_that_expires_restarts_the_connector_and_its_tasks_unless_told_otherwise(
    harness, fake_producer, monkeypatch, action
):
    monkeypatch.setattr("connect.runtime.expiries.TTL_MIN_MS", 0)
    monkeypatch.setattr(Vault, "password", "old")
    monkeypatch.setattr(Vault, "ttl", 0)
    harness.worker |= {"config.providers": "v", "config.providers.v.class": f"{__name__}:Vault"}
    keys = {} if action is None else {"config.action.reload": action}
    alone = Standalone(harness, Growing, monkeypatch, password="${v:secret:key}", **keys)
    await alone.start()
    if action == "none":
        await alone.restart(0, connector=True)
        assert alone.expired == []
    else:
        await harness.until(lambda: {-1, 0} <= set(alone.expired))
        monkeypatch.setattr(Vault, "password", "new")
        monkeypatch.setattr(Vault, "ttl", None)
        tasks = alone.connector
        await harness.until(
            lambda: (
                Growing.last.config["password"] == "new"
                and [task.setting.config["password"] for task in tasks.tasks] == ["new"]
            )
        )
    await alone.connector.close()


def test_a_secret_that_makes_a_config_invalid_is_not_shown(harness, monkeypatch):
    monkeypatch.setenv("TASKS", "opensesame")
    monkeypatch.setattr("connect.runtime.connector_check.connector_class", lambda name: Growing)
    harness.worker |= {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}
    worker = harness.setting().worker
    with pytest.raises(ConfigError, match=r"tasks\.max=\$\{env:TASKS\}: ") as caught:
        check_config(worker, {"name": "c", "connector.class": "x", "tasks.max": "${env:TASKS}"})
    assert "opensesame" not in f"{caught.value} {caught.value.__context__!s}{caught.value.__cause__!s}"
