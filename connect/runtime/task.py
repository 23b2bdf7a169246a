"""The base of running tasks: an asyncio task of its own, a state, and a failure that fails only this task.

UNASSIGNED -> start() -> RUNNING <-> PAUSED -> (stop requested) -> stop() -> UNASSIGNED
                 any exception -> stop() -> FAILED, with the trace; other tasks do not notice
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from connect.config import ErrorsConfig
from connect.errors import ConnectError
from connect.runtime.calls import PluginCalls
from connect.runtime.client_settings import producer_arguments
from connect.runtime.errors.dead_letters import DeadLetters
from connect.runtime.states import State, Status
from connect.runtime.task_metrics import Startups, TaskMetrics
from connect.runtime.task_rate import TaskRate
from connect.runtime.worker_config import WorkerConfig
from kafka_client import Admin, Backoff, Client
from kafka_client.errors import BROKER_AWAY
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
T = TypeVar("T")
_ABANDON_SECONDS = 1.0
BACKOFF_FIRST_SECONDS = 0.1
BACKOFF_MAX_SECONDS = 30.0
TASK_METRICS = ("connector-task-metrics", "source-task-metrics", "sink-task-metrics", "task-error-metrics")
"""The types of metrics a task may have."""


def new_backoff() -> Backoff:
    """Return a backoff for one operation that is retried."""
    return Backoff(BACKOFF_FIRST_SECONDS, BACKOFF_MAX_SECONDS)


class Stopping(Exception):
    """A signal, raised while a task waits, that the task is to stop."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSetting:
    """The environment of a task: its connector, number and config, and the worker's settings and clients."""

    connector: str
    task_id: int
    config: Mapping[str, str]
    """The task's own config: what `task_configs` returned."""
    connector_config: Mapping[str, Any]
    worker: WorkerConfig
    client: Client
    """The connector's client. A source's requests may create topics (auto.create.topics.enable)."""
    admin: Admin
    """Requests about the connector's topics and group (`admin.override.*`)."""
    dead_letter_client: Client | None = None
    """The client that sends a sink's dead letters; None: `client`."""
    startups: Startups = field(default_factory=Startups)
    """The worker's counts of successful and failed starts of tasks."""
    note_topic: Callable[[str], None] = lambda topic: None
    """Called once with each topic that the task uses, before it writes to it or puts its records."""


class WorkerTask(ABC):
    """A running task of a plugin. Call `launch()`, then `stop()`; in between, `pause()` and `resume()`."""

    _CALLS_HAVE_FLUSH_TIME: ClassVar[bool] = False
    """True if a stop waits `offset.flush.timeout.ms` longer for a plugin's call, as it is part of a flush."""

    def __init__(self, setting: TaskSetting, *, on_change: Callable[[], None] = lambda: None) -> None:
        self.setting = setting
        self.name = f"{setting.connector}-{setting.task_id}"
        self.status = Status(on_change)
        self.metrics = TaskMetrics()
        self.rate = TaskRate(measures_bytes=setting.worker.raw.get("placement") == "load")
        """The task's share of its connector's rate limits."""
        self.is_done = False
        """True for a source that has ended with everything acknowledged and committed."""
        self.plugin_version: str | None = None
        self._calls = PluginCalls(self.name)
        self._ending = asyncio.Event()
        self._failure: BaseException | None = None
        self._unpaused = asyncio.Event()
        self._unpaused.set()
        self._life: asyncio.Task[None] | None = None
        self._topics_used: set[str] = set()

    @abstractmethod
    async def _start(self) -> None:
        """Open clients and start the plugin's task."""

    @abstractmethod
    async def _work(self) -> None:
        """Work until there is no more, or until `_wait_for` or `_pause_here` raises Stopping."""

    @abstractmethod
    async def _finish(self) -> None:
        """Flush and commit at a clean end. Not called after a failure."""

    @abstractmethod
    async def _stop(self) -> None:
        """Stop the plugin's task and close the clients; called once, also after a failure."""

    @abstractmethod
    def statistics(self) -> dict[str, Any]:
        """Return counts for the status report."""

    def values(self) -> Mapping[str, Values]:
        """Return the task's metrics, by type."""
        metrics = self.metrics
        return {
            "connector-task-metrics": metrics.task_values(self.status),
            "task-error-metrics": metrics.error_values(),
        }

    def queued(self) -> Values:
        """Return the sizes of the task's queues; empty for a task without queues."""
        return {}

    @property
    def version(self) -> str | None:
        """The version of the plugin that runs; None if it is not known yet, or there is none."""
        return self.plugin_version

    @property
    def calls(self) -> PluginCalls:
        """The calls of the plugin's task."""
        return self._calls

    @abstractmethod
    def plugin_values(self) -> Values:
        """Return the statistics of the plugin's task."""

    def launch(self) -> None:
        """Start the task in the background and return at once; `status` has its state."""
        self._life = asyncio.create_task(self._live(), name=f"task {self.name}")

    async def ended(self) -> None:
        """Wait until the task has ended, whatever ended it. Raises RuntimeError before `launch`."""
        if self._life is None:
            raise RuntimeError(f"{self.name} is not launched")
        await asyncio.wait({self._life})

    async def stop(self) -> None:
        """Stop the task; it flushes and commits unless it failed. A task that takes too long is abandoned.

        The plugin's calls have `task.shutdown.graceful.timeout.ms`. The worker's own flush and commit have
        `offset.flush.timeout.ms` more.
        """
        self._ending.set()
        self._unpaused.set()
        if self._life is None:
            return
        worker = self.setting.worker
        seconds = worker.task_shutdown_graceful_timeout_ms / 1000
        _, late = await asyncio.wait({self._life}, timeout=seconds)
        if late and (self._CALLS_HAVE_FLUSH_TIME or not self._calls.statistics()["calls"]):
            more = worker.offset_flush_timeout_ms / 1000
            seconds += more
            _, late = await asyncio.wait({self._life}, timeout=more)
        if late:
            _log.warning("%s does not stop; it is abandoned", self._life.get_name())
            self._calls.close()  # no call may queue after the one that does not return
            self._life.cancel()
            await asyncio.wait(late, timeout=_ABANDON_SECONDS)
            self.status.fail(ConnectError(f"did not stop within {seconds:g} s, and was abandoned"))

    def pause(self) -> None:
        """Stop taking records, keeping resources."""
        self._unpaused.clear()
        self.rate.wake()

    def resume(self) -> None:
        """Resume the task after a pause."""
        self._unpaused.set()

    def forget_topics(self) -> None:
        """Report again each topic that the task uses from now on: the list of them was reset (KIP-558)."""
        self._topics_used.clear()

    def _note_topic(self, topic: str) -> None:
        """Tell the worker of a topic that this task uses, at the first use since a reset."""
        if topic not in self._topics_used:
            self._topics_used.add(topic)
            self.setting.note_topic(topic)

    async def _dead_letters(self, config: ErrorsConfig) -> DeadLetters | None:
        """Return the task's dead letter queue, started, or None without one. Raises Stopping."""
        if not (config.dead_letter_topic and config.tolerates_all):
            return None
        setting = self.setting
        dead_letters = DeadLetters(
            setting.connector,
            setting.task_id,
            config,
            client=setting.dead_letter_client or setting.client,
            admin=setting.admin,
            producer_arguments=producer_arguments(setting.worker.raw, setting.connector_config),
            metrics=self.metrics,
        )
        await self._patiently(dead_letters.start)
        return dead_letters

    def _fail(self, error: BaseException) -> None:
        """End the task with the error of a background operation."""
        if self._failure is None:
            self._failure = self._explained(error)
        self._ending.set()
        self._unpaused.set()

    def _explained(self, error: BaseException) -> BaseException:
        """Return the error that the status is to show for a failure."""
        return error

    def _be_done(self) -> None:
        self.is_done = True
        self.status.changed()

    async def _live(self) -> None:
        try:
            await self._start_work_finish()
        except Exception as e:
            self._failure = self._failure or self._explained(e)
        finally:
            try:
                await self._stop()
            except Exception as e:
                if not self._calls.is_closed:  # else it has been abandoned, and the log says so
                    _log.warning("%s did not stop cleanly: %r", self.name, e)
            self._calls.close()
        if self._failure is not None:
            _log.error("%s failed: %r", self.name, self._failure)
            self.metrics.failed(again=False)
            self.status.fail(self._failure)
        elif not self.is_done:
            self.status.become(State.UNASSIGNED)

    async def _start_work_finish(self) -> None:
        try:
            with self.setting.startups.counted(unless=Stopping):
                await self._start()
            if self._unpaused.is_set():
                self.status.become(State.RUNNING)
            await self._work()
        except Stopping:
            pass
        if self._failure is None and self.status.state is not State.UNASSIGNED:
            await self._finish()

    async def _pause_here(self) -> None:
        """Wait while the task is paused. Raises Stopping if it is to stop."""
        if not self._unpaused.is_set():
            self.status.become(State.PAUSED)
            await self._unpaused.wait()
            if not self._ending.is_set():
                self.status.become(State.RUNNING)
        if self._ending.is_set():
            raise Stopping

    async def _keep_rate(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        """Wait until the rate limits allow more work; call `meanwhile` every second, and at changes.

        Raises Stopping if the task is to stop.
        """
        while self.rate.delay() > 0:
            await self._wait_for(self.rate.wait())
            await meanwhile()

    async def _wait_for(self, awaitable: Awaitable[T], *, timeout: float | None = None) -> T:
        """Return the awaitable's result.

        Raises Stopping if the task is to stop, TimeoutError after `timeout` seconds.
        """
        waited = asyncio.ensure_future(awaitable)
        ending = asyncio.ensure_future(self._ending.wait())
        try:
            await asyncio.wait({waited, ending}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            if waited.done():
                return waited.result()
            raise Stopping if self._ending.is_set() else TimeoutError
        finally:
            ending.cancel()
            waited.cancel()

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Send a request, again after a backoff while the broker is unreachable, and return its response.

        A topic that nobody has created yet is waited for, too.

        Raises Stopping if the task is to stop. A task that is stopping already sends the request once.
        """
        backoff = new_backoff()
        while True:
            try:
                return await ask()
            except BROKER_AWAY as e:
                if self._ending.is_set():
                    raise
                seconds = backoff.next()
                _log.warning("%s waits, and asks again in %.1f s: %s", self.name, seconds, e)
            await self._rest(seconds)

    async def _rest(self, seconds: float) -> None:
        """Sleep. Raises Stopping if the task is to stop."""
        try:
            await self._wait_for(self._ending.wait(), timeout=seconds)
        except TimeoutError:
            return
        raise Stopping
