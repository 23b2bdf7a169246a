"""WorkerConnector: what a worker runs of one connector, brought step by step to what should run.

`reconcile` says what should run (`connect.herder.Runs`). One asyncio task compares it with what runs, and
takes one step after the other until nothing differs:

    stop the tasks that are not to run as they do -> stop the plugin's connector -> start it -> plan its tasks
    -> start tasks -> set the tasks' target states

A step begins only when the last has ended, so a task never starts before the one that it replaces has
committed. What should run may change at any moment; the next step follows it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from connect.herder import ConnectorRun, Runs, TargetState, TaskRun
from connect.herder.config_state import Properties
from connect.runtime import abandoned
from connect.runtime.abandoned import AbandonedCalls
from connect.runtime.auto_restart import AutoRestart, RestartPolicy
from connect.runtime.calls import PluginCalls
from connect.runtime.connector_check import CheckedConfig
from connect.runtime.connector_runner import ConnectorRunner
from connect.runtime.expiries import CONNECTOR, Expiries
from connect.runtime.stage import Stage
from connect.runtime.states import State, Status
from connect.runtime.task import WorkerTask
from connect.runtime.task_maker import TaskMaker
from connect.runtime.worker_parts import WorkerParts
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(slots=True)
class _RunningTask:
    run: TaskRun
    task: WorkerTask
    is_stopped: bool = False


class _Superseded(Exception):
    """A signal that a plugin's call was abandoned, because something else should run by now."""


class WorkerConnector:
    """A connector and its tasks in a worker. Call `reconcile` whenever something else should run."""

    def __init__(self, parts: WorkerParts, checked: CheckedConfig) -> None:
        self.checked = checked
        self.status = Status(parts.on_change)
        """The state of the connector itself."""
        self._parts = parts
        self._abandoned = AbandonedCalls(checked.name)
        self._runs = Runs()
        self._may_start = True
        self._runner: ConnectorRunner | None = None
        self._failed_run: ConnectorRun | None = None
        """The run that failed to start; it is not started again."""
        self._tasks: dict[int, _RunningTask] = {}
        self._restarts: dict[int, AutoRestart] = {}
        self._is_plan_due = False
        self._planned_with: Properties | None = None
        """The connector's config at the last plan."""
        self._changed = asyncio.Event()
        self._expiries = Expiries(checked.name, self._changed.set)
        self._settled = asyncio.Event()
        self._stepped = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._stage: Stage | None = None

    @property
    def stage(self) -> Stage | None:
        """The step that is being taken; None if everything is settled."""
        return self._stage

    @property
    def name(self) -> str:
        """The connector's name."""
        return self.checked.name

    @property
    def type(self) -> str:
        """`source` or `sink`."""
        return self.checked.type

    @property
    def version(self) -> str:
        """The version of the plugin that runs, or that is to be started next."""
        return self._runner.version if self._runner is not None else self.checked.plugin.VERSION

    @property
    def tasks(self) -> list[WorkerTask]:
        """The tasks that run here, by their numbers; after `close`, those that ran last."""
        return [self._tasks[number].task for number in sorted(self._tasks)]

    def forget_topics(self) -> None:
        """Have the tasks report again each topic that they use from now on."""
        for task in self.tasks:
            task.forget_topics()

    def reconcile(self, checked: CheckedConfig | None, runs: Runs) -> None:
        """Bring what runs to `runs`, in the background.

        `checked` is None while the connector's config is being checked: nothing is started until the next
        call, and what should not run as it does is stopped.
        """
        self._may_start = checked is not None
        self.checked = checked or self.checked
        self._runs = runs
        self._wake()
        if self._life is None or self._life.done():
            self._life = asyncio.create_task(self._live(), name=f"connector {self.name}")

    @property
    def is_over(self) -> bool:
        """True if nothing should run here, and nothing does."""
        return self._runs.is_empty and (self._life is None or self._life.done())

    async def settled(self) -> None:
        """Wait until everything runs as it should, or has failed."""
        await self._settled.wait()

    async def freed(self) -> None:
        """Wait until everything has stopped that should not run as it does."""
        while self._is_to_stop():
            self._stepped.clear()
            await self._stepped.wait()

    async def close(self) -> None:
        """Stop the tasks, then the connector. May be called twice."""
        self.reconcile(self.checked, Runs())
        assert self._life is not None
        await self._life

    def check_abandoned(self) -> None:
        """Raise ConnectError if too many calls of earlier runs have not returned."""
        self._abandoned.check()

    def calls(self) -> Values:
        """Return the plugin's `PluginCalls.statistics` and how many earlier runs have unreturned calls."""
        calls = self._runner.calls if self._runner is not None else PluginCalls(self.name)
        return {
            **calls.statistics(),
            "abandoned": self._abandoned.count,
            "abandoned_max": abandoned.ABANDONED_MAX,
        }

    def report(self) -> dict[str, Any]:
        """Return the response of GET /connectors/{c}/status, with counts beside each task's state."""
        worker_id, version = self._parts.worker_id, self.version
        tasks = [
            {
                "id": task.setting.task_id,
                **task.status.report(worker_id, task.version or version),
                "done": task.is_done,
                **task.statistics(),
                **self._restart_report(task.setting.task_id),
            }
            for task in self.tasks
        ]
        connector = self.status.report(worker_id, version)
        return {"name": self.name, "connector": connector, "tasks": tasks, "type": self.type}

    def _restart_report(self, number: int) -> dict[str, Any]:
        restart = self._restarts.get(number)
        return {} if restart is None else restart.report()

    def _wake(self) -> None:
        self._settled.clear()
        self._changed.set()

    async def _live(self) -> None:
        """Take steps until nothing should run; wait for changes in between."""
        while True:
            self._changed.clear()
            step = self._next_step()
            if step is not None:
                try:
                    await step
                    continue
                except _Superseded:
                    continue
                except Exception as e:
                    self._fail(e)
                finally:
                    self._stage = None
                    self._stepped.set()
            self._settled.set()
            if self._runs.is_empty:
                self._expiries.close()
                return
            # Not earlier: a plan that takes longer than a value is valid would keep tasks from starting.
            for number in self._expiries.take_due():
                self._parts.on_expired(self.name, number)
            await self._changed.wait()

    def _next_step(self) -> Coroutine[Any, Any, None] | None:
        """Return the next step towards what should run, or None if nothing differs any more."""
        runs, connector = self._runs, self._runs.connector
        if ended := self._tasks_to_stop():
            return self._stop_tasks(ended)
        if self._runner is not None and not _is_to_run(self._runner.run, connector):
            return self._stop_connector(self._runner)
        if self._runner is None and connector is not None:
            if connector.target is not TargetState.STARTED:
                self._suspend(connector.target)
            elif self._may_start and not connector.continues(self._failed_run):
                return self._start_connector(connector)
        # A change of live keys alone restarts nothing, but the tasks have to be committed with it.
        is_due = connector is not None and (self._is_plan_due or self._planned_with != connector.config)
        if is_due and self._may_start and self._runner is not None and connector is not None:
            return self._plan(self._runner, connector.config)
        new: dict[int, TaskRun] = {}
        for number, run in runs.tasks.items():
            running = self._tasks.get(number)
            if running is None or running.is_stopped:
                new[number] = run
            else:
                self._set_target(running, run)
        if not self._may_start:
            return None
        if new:
            return self._start_tasks(new)
        return self._restart_failed(due) if (due := self._tasks_to_restart()) else None

    def _tasks_to_restart(self) -> list[int]:
        return [
            number
            for number, each in self._tasks.items()
            if not each.is_stopped
            and each.run.target is TargetState.STARTED
            and each.task.status.state is State.FAILED
            and self._restarts[number].is_due
        ]

    async def _restart_failed(self, numbers: Sequence[int]) -> None:
        """Stop failed tasks whose restarts are due; the next step starts them."""
        await self._stop_tasks(numbers)
        for number in numbers:
            self._restarts[number].restarted()

    def _task_changed(self) -> None:
        """Have the restarts of failed tasks come when they are due."""
        self._parts.on_change()
        for number, each in self._tasks.items():
            if not each.is_stopped and each.task.status.state is State.FAILED:
                delay = self._restarts[number].note_failure()
                if delay is not None:
                    asyncio.get_running_loop().call_later(delay, self._changed.set)

    def _is_to_stop(self) -> bool:
        if self._life is None or self._life.done():
            return False
        runner = self._runner
        return bool(self._tasks_to_stop()) or (
            runner is not None and not _is_to_run(runner.run, self._runs.connector)
        )

    def _tasks_to_stop(self) -> list[int]:
        return [
            number
            for number, each in self._tasks.items()
            if not each.is_stopped and not each.run.continues(self._runs.tasks.get(number))
        ]

    async def _stop_tasks(self, numbers: Sequence[int]) -> None:
        """Stop tasks, all at the same time. At the connector's end they are kept for the last report."""
        self._stage = Stage(f"stopping {len(numbers)} tasks for connector {self.name}")
        self._expiries.forget(numbers)
        await asyncio.gather(*(self._tasks[number].task.stop() for number in numbers))
        self._abandoned.add(self._tasks[number].task.calls for number in numbers)
        for number in numbers:
            self._tasks[number].is_stopped = True
            if not self._tasks[number].run.continues(self._runs.tasks.get(number)):
                self._restarts.pop(number, None)  # another run of the task has all its restarts
        if not self._runs.is_empty:
            self._tasks = {n: each for n, each in self._tasks.items() if not each.is_stopped}

    async def _stop_connector(self, runner: ConnectorRunner) -> None:
        self._stage = Stage(f"stopping connector {self.name}")
        self._expiries.forget([CONNECTOR])
        await runner.stop(self._grace_seconds)
        self._abandoned.add([runner.calls])
        self._runner = None
        connector = self._runs.connector
        if connector is not None and connector.target is TargetState.STARTED:
            self.status.become(State.RESTARTING)
        elif connector is None and self.status.state is not State.FAILED:
            self.status.become(State.UNASSIGNED)

    async def _start_connector(self, run: ConnectorRun) -> None:
        """Start the plugin's connector. An error is not raised: it fails `status`."""
        self._failed_run = None
        self._stage = Stage("starting the connector")
        if self.status.state is State.FAILED:
            self.status.become(
                State.RESTARTING
            )  # so that another failure is a change, with a trace of its own
        runner = ConnectorRunner(self.checked, run, self._wake_for_plan, self._parts.config.providers)
        startups = self._parts.startings.connectors
        try:
            self.check_abandoned()
            await self._call_while(lambda: _is_to_run(run, self._runs.connector), runner.start())
        except _Superseded:
            self._abandoned.add([runner.calls])
            runner.calls.close()
            raise
        except Exception as e:
            startups.failed += 1
            self._fail(e)
            runner.calls.close()
            return
        finally:
            self._expiries.note_values(CONNECTOR, run.config, runner.ttl)
        startups.succeeded += 1
        self._runner = runner
        self._is_plan_due = True
        self.status.become(State.RUNNING)

    async def _plan(self, runner: ConnectorRunner, config: Properties) -> None:
        """Have the tasks planned. An error is not raised: it fails `status`, and the tasks stay."""
        self._stage = Stage(f"generating task configs for connector {self.name}")
        self._is_plan_due = False
        self._planned_with = config
        try:
            configs = await self._call_while(
                lambda: _is_to_run(runner.run, self._runs.connector), runner.plan()
            )
            self._parts.on_plan(self.name, configs)
        except _Superseded:
            raise
        except Exception as e:
            self._fail(e)

    async def _call_while(self, is_wanted: Callable[[], bool], call: Awaitable[T]) -> T:
        """Return the result of a plugin's call.

        Raises _Superseded if the call has not returned some time after `is_wanted` returned False.
        """
        calling = asyncio.ensure_future(call)
        try:
            while is_wanted():
                changed = asyncio.ensure_future(self._changed.wait())
                await asyncio.wait({calling, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                if calling.done():
                    return calling.result()
                self._changed.clear()
            await asyncio.wait({calling}, timeout=self._grace_seconds)
            if calling.done():
                return calling.result()
            _log.warning("%s: a call of the plugin does not return, and is abandoned", self.name)
            raise _Superseded
        finally:
            calling.cancel()

    async def _start_tasks(self, runs: Mapping[int, TaskRun]) -> None:
        """Start tasks. One whose constructor hangs keeps the others from nothing."""
        self._stage = Stage(f"starting {len(runs)} tasks for connector {self.name}")
        makers = {number: TaskMaker(self._parts, self.checked, number, self._task_changed) for number in runs}
        starting = asyncio.gather(*(self._start_task(maker, runs[n]) for n, maker in makers.items()))
        try:
            await self._call_while(
                lambda: all(run.continues(self._runs.tasks.get(n)) for n, run in runs.items()), starting
            )
        finally:
            for maker in makers.values():
                maker.calls.close()
            self._abandoned.add(maker.calls for maker in makers.values())

    async def _start_task(self, maker: TaskMaker, run: TaskRun) -> None:
        number = maker.number
        if number not in self._restarts:
            self._restarts[number] = AutoRestart(RestartPolicy.of(run.connector_config))
        task = await maker.make(run, self.check_abandoned)
        self._tasks[number] = _RunningTask(run, task)
        self._expiries.note_values(number, run.connector_config, maker.ttl)
        self._set_target(self._tasks[number], self._runs.tasks.get(number, run))
        task.launch()

    def _set_target(self, running: _RunningTask, run: TaskRun) -> None:
        running.run = run
        running.task.rate.follow(self.checked.config, run.task_count, self._parts.config.providers.resolve)
        if run.target is TargetState.PAUSED:
            running.task.pause()
        else:
            running.task.resume()

    def _suspend(self, target: TargetState) -> None:
        """Show the target state of a connector that does not run. A failure stays visible while paused."""
        if target is TargetState.STOPPED:
            self._failed_run = None
            self.status.become(State.STOPPED)
        elif self._failed_run is None:
            self.status.become(State.PAUSED)

    def _wake_for_plan(self) -> None:
        """Have the connector's tasks planned again; a connector that does not run plans at its start."""
        if self._runner is not None:
            self._is_plan_due = True
            self._wake()

    def _fail(self, error: Exception) -> None:
        _log.error("%s failed: %r", self.name, error)
        self._failed_run = self._runs.connector
        self.status.fail(error)

    @property
    def _grace_seconds(self) -> float:
        return self._parts.config.task_shutdown_graceful_timeout_ms / 1000


def _is_to_run(run: ConnectorRun, desired: ConnectorRun | None) -> bool:
    """Return True if the plugin's connector should run, and in this very run."""
    return desired is not None and desired.target is TargetState.STARTED and desired.continues(run)
