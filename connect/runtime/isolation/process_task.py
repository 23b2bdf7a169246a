"""ProcessTask: a task in a process of its own, as its worker sees it.

The process runs the same `WorkerTask` as a thread would, and reports its state and counts; here they are
shown. What ends the process ends this task: its exit code or signal is in the status.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any

from connect.errors import ConnectError
from connect.runtime.calls import PluginCalls
from connect.runtime.isolation.child_process import ChildProcess, unstartable
from connect.runtime.isolation.messages import (
    ForgetTopics,
    FromTask,
    LogLine,
    OffsetsPut,
    Pause,
    PluginPlace,
    PutOffsets,
    RateLimits,
    ReadOffsets,
    Report,
    RequestCommit,
    Resume,
    Stop,
    StoredOffsets,
    TaskSpec,
    TopicUsed,
    TransactionRequest,
)
from connect.runtime.isolation.remote_offsets import parts
from connect.runtime.isolation.remote_rate import RemoteRate
from connect.runtime.isolation.transaction_answers import TransactionAnswers
from connect.runtime.plugins import ConnectorClass, place_of
from connect.runtime.states import State
from connect.runtime.task import TaskSetting, WorkerTask
from connect.stores import OffsetStore
from connect.stores.offset_keys import read_key
from kafka_client.metrics.metrics import Values

_log = logging.getLogger(__name__)
_KILL_SECONDS = 1.0
"""How long a process may take to end after its task's own grace."""
_REQUESTS_MAX = 8
"""Requests about offsets that are answered at one time. A task has two at most."""
_WORKER_ALONE = frozenset(("config.providers", "exactly.once.source.support"))
"""Keys of the worker's config that the process must not read: `TaskSpec.transactions` says what it needs."""


class ProcessTask(WorkerTask):
    """A task whose plugin runs in a process of its own. `place`: see `TaskSpec.plugin`.

    `transactions` answers an exactly-once source's task; None without exactly-once sources.
    """

    def __init__(
        self,
        setting: TaskSetting,
        store: OffsetStore,
        *,
        place: PluginPlace | None = None,
        transactions: TransactionAnswers | None = None,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(setting, on_change=on_change)
        self._store = store
        self._place = place
        self._transactions = transactions
        self._child: ChildProcess | None = None
        self._last: Report | None = None
        self._starts = (0, 0)
        self._requests: set[asyncio.Task[None]] = set()
        self._reported_calls = self._calls = _ReportedCalls(self.name)
        self._reported_rate = self.rate = RemoteRate(self._send_limits)

    @property
    def pid(self) -> int | None:
        """The process id, None before the start and after the end."""
        return None if self._child is None else self._child.pid

    @property
    def version(self) -> str | None:
        """The version of the plugin that runs, None until the process has told it."""
        return (self._last.version or None) if self._last is not None else None

    def statistics(self) -> dict[str, Any]:
        """Return the last counts that the process has reported, with its id."""
        process = {} if self._child is None else {"pid": self._child.pid}
        return {**(self._last.statistics if self._last is not None else {}), **process}

    def values(self) -> Mapping[str, Values]:
        """Return the last metrics that the process has reported, by type."""
        return self._last.values if self._last is not None else {}

    def queued(self) -> Values:
        """Return the last sizes of queues that the process has reported."""
        return self._last.queued if self._last is not None and self._child is not None else {}

    def plugin_values(self) -> Values:
        """Return the last statistics of the plugin that the process has reported."""
        return self._last.plugin_values if self._last is not None else {}

    def pause(self) -> None:
        """Stop taking records, keeping resources."""
        if self._unpaused.is_set() and self._child is not None:
            self._child.send(Pause())
        super().pause()

    def resume(self) -> None:
        """Resume the task after a pause."""
        if not self._unpaused.is_set() and self._child is not None:
            self._child.send(Resume())
        super().resume()

    def forget_topics(self) -> None:
        """Report again each topic that the task uses from now on."""
        if self._child is not None:
            self._child.send(ForgetTopics())
        super().forget_topics()

    def _send_limits(self, limits: RateLimits) -> None:
        if self._child is not None:
            self._child.send(limits)

    def request_commit(self) -> None:
        """Have a sink commit soon rather than at the next interval."""
        if self._child is not None:
            self._child.send(RequestCommit())

    async def stop(self) -> None:
        """Stop the task and its process. One that takes too long is killed."""
        self._ending.set()
        if self._life is None:
            return
        if self._child is not None:
            self._child.send(Stop())
        worker = self.setting.worker
        grace = (worker.task_shutdown_graceful_timeout_ms + worker.offset_flush_timeout_ms) / 1000
        _, late = await asyncio.wait({self._life}, timeout=grace + _KILL_SECONDS)
        if late:
            _log.warning("task %s does not stop; its process is killed", self.name)
            self._failure = ConnectError(f"did not stop within {grace:g} s, and its process was killed")
            if self._child is not None:
                self._child.kill()
            await asyncio.wait(late, timeout=_KILL_SECONDS)

    async def _live(self) -> None:
        try:
            await self._run()
        except Exception as e:
            self._failure = self._failure or e
        finally:
            for request in self._requests:
                request.cancel()
            self._calls.close()
        if self._failure is not None:
            if self._starts == (0, 0):
                self.setting.startups.failed += 1
            _log.error("%s failed: %r", self.name, self._failure)
            self.status.fail(self._failure)

    async def _run(self) -> None:
        try:
            child = await ChildProcess.start(self.name)
        except OSError as e:
            raise unstartable(self.name, e) from e
        try:
            self._child = child
            await child.send_patiently(self._spec())
            if self._reported_rate.limits is not None:
                child.send(self._reported_rate.limits)
            if self._ending.is_set():
                child.send(Stop())
            async with aclosing(child.messages()) as messages:
                async for message in messages:
                    self._take(child, message)
                    if self._last is not None and self._last.is_last:
                        break
            how = await child.ended()
            if self._last is None or not self._last.is_last:
                raise ConnectError(f"The process of task {self.name} {how}")
            if self.status.state is State.UNASSIGNED and not (self.is_done or self._ending.is_set()):
                raise ConnectError(f"The process of task {self.name} was stopped by a signal (SIGTERM)")
        finally:
            self._child = None
            self._reported_calls.values = {}
            await child.close()

    def _spec(self) -> TaskSpec:
        setting = self.setting
        loggers = {"": logging.root, **logging.root.manager.loggerDict}
        return TaskSpec(
            connector=setting.connector,
            task_id=setting.task_id,
            config=setting.config,
            connector_config=setting.connector_config,
            # Their variables have been replaced, and what they have become is not to be replaced again.
            worker={k: v for k, v in setting.worker.raw.items() if k not in _WORKER_ALONE},
            is_paused=not self._unpaused.is_set(),
            parent=os.getpid(),
            import_path=list(sys.path),
            log_levels={n: x.level for n, x in loggers.items() if isinstance(x, logging.Logger) and x.level},
            plugin=self._place,
            transactions=None if self._transactions is None else self._transactions.spec(),
        )

    def _take(self, child: ChildProcess, message: FromTask) -> None:
        match message:
            case Report():
                self._show(message)
            case TopicUsed(topic):
                self._note_topic(topic)
            case LogLine():
                _handle(message)
            case ReadOffsets(request):
                self._answer(self._send_offsets(child, request))
            case PutOffsets(request, offsets):
                self._answer(self._put_offsets(child, request, offsets))
            case _:
                self._answer(self._answer_transaction(child, message))

    def _show(self, report: Report) -> None:
        is_newly_done = report.is_done and not self.is_done
        self._last = report
        self._reported_calls.values = report.calls
        self._reported_calls.cpu_seconds = report.cpu_seconds
        self._reported_rate.reported = report.rate
        self._reported_rate.byte_count = report.byte_count
        self.is_done = report.is_done
        startups = self.setting.startups
        startups.succeeded += report.starts[0] - self._starts[0]
        startups.failed += report.starts[1] - self._starts[1]
        self._starts = report.starts
        self.status.take(State(report.state), report.trace)
        if is_newly_done:
            self.status.changed()

    def _answer(self, answer: Any) -> None:
        if len(self._requests) >= _REQUESTS_MAX:
            answer.close()
            raise ConnectError(
                f"the process of task {self.name} asks for offsets without waiting for answers"
            )
        task = asyncio.create_task(answer)
        self._requests.add(task)
        task.add_done_callback(self._requests.discard)

    async def _send_offsets(self, child: ChildProcess, request: int) -> None:
        """Send the connector's offsets; a broker that is away is waited for."""
        try:
            await self._patiently(self._store.refresh)
            offsets: dict[bytes, bytes | None] = {}
            for key in self._store.keys():  # noqa: SIM118
                own = read_key(key)
                if own is not None and own[0] == self.setting.connector:
                    offsets[key] = self._store.get(key)
            for part in parts(offsets):
                stored = {key: value for key, value in part.items() if value is not None}
                await child.send_patiently(StoredOffsets(request, stored, is_last=False))
            await child.send_patiently(StoredOffsets(request, {}, is_last=True))
        except Exception as e:
            await child.send_patiently(OffsetsPut(request, f"source offsets cannot be read: {e!r}"))

    async def _put_offsets(
        self, child: ChildProcess, request: int, offsets: Mapping[bytes, bytes | None]
    ) -> None:
        error = None
        try:
            await self._store.put(offsets)
        except Exception as e:
            error = f"source offsets cannot be stored: {e}"
        await child.send_patiently(OffsetsPut(request, error))

    async def _answer_transaction(self, child: ChildProcess, message: TransactionRequest) -> None:
        assert self._transactions is not None, f"task {self.name} has no transactions"
        await child.send_patiently(await self._transactions.to(message))

    async def _start(self) -> None:
        """Do nothing: the process starts the plugin's task, and `_live` the process."""

    async def _work(self) -> None:
        """Do nothing: the process works."""

    async def _finish(self) -> None:
        """Do nothing: the process flushes and commits."""

    async def _stop(self) -> None:
        """Do nothing: the process stops the plugin's task."""


class _ReportedCalls(PluginCalls):
    """The plugin calls of another process; none once it has ended."""

    values: Values = {}

    def statistics(self) -> dict[str, float]:
        """Return the last statistics that the process has reported."""
        return dict(self.values) or super().statistics()


def _handle(line: LogLine) -> None:
    logger = logging.getLogger(line.logger)
    if not logger.isEnabledFor(line.level):
        return
    record = logger.makeRecord(line.logger, line.level, "", 0, "%s", (line.text,), None)
    if line.created:
        record.created = line.created
    logger.handle(record)


def process_place(plugin: ConnectorClass) -> PluginPlace | None:
    """Return where a task's process finds the plugin; None for one that is installed."""
    offer = place_of(plugin)
    if offer is None:
        return None
    folder = offer.plugin
    return PluginPlace(
        folder=str(folder.folder),
        modules=sorted(folder.modules),
        location=str(folder.location),
        version=folder.version,
        reference=offer.reference,
    )
