"""The process of one task: `python -m connect.runtime.isolation.task_process FD NAME`.

`FD` is its end of a socket pair; what it runs comes over the socket as a TaskSpec.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from connect.api.batch_source import BatchSourceTask
from connect.api.source import SourceTask
from connect.config.plugin_path import PLUGIN_PATH, Offer, PluginFolder
from connect.errors import ConnectError
from connect.runtime.clients import Clients
from connect.runtime.exactly_once_batch_task import exactly_once_task
from connect.runtime.isolation.messages import (
    ForgetTopics,
    Granted,
    OffsetsPut,
    OffsetsSpelled,
    Pause,
    RateLimits,
    Refused,
    Report,
    RequestCommit,
    Resume,
    Stop,
    StoredOffsets,
    TaskSpec,
    TopicUsed,
    ToTask,
)
from connect.runtime.isolation.remote_offsets import RemoteOffsets
from connect.runtime.isolation.remote_transactions import RemoteTransactions
from connect.runtime.isolation.worker_link import ORPHANED, LogToWorker, WorkerLink
from connect.runtime.plugin_task import make_plugin_task
from connect.runtime.plugins import ConnectorClass, connector_class, connector_type, named_version
from connect.runtime.task import TaskSetting, WorkerTask
from connect.runtime.task_metrics import Startups
from connect.runtime.unmade_task import UnmadeTask
from connect.runtime.worker_config import WorkerConfig
from kafka_client import Admin

_REPORT_SECONDS = 1.0
_TRACE_MAX = 64 << 10
_CLOSE_SECONDS = 1.0
_GC_THRESHOLD = 50_000
_PR_SET_PDEATHSIG = 1


class TaskProcess:
    """The task of this process, between its plugin and the worker."""

    def __init__(self, link: WorkerLink, spec: TaskSpec) -> None:
        self._link = link
        self._spec = spec
        self._worker = WorkerConfig.parse(spec.worker)
        PLUGIN_PATH.use(self._worker.plugin_path)
        self._clients = Clients(self._worker)
        transactions = spec.transactions
        self._store = (
            RemoteOffsets(link.send) if transactions is None else RemoteTransactions(link.send, transactions)
        )
        self._startups = Startups()
        self._changed = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._version = ""
        self._task = self._make_task()

    async def run(self) -> None:
        """Run the task to its end, and tell the worker of it."""
        loop = asyncio.get_running_loop()
        self._link.start(lambda message: _call_soon(loop, self._take, message))
        loop.add_signal_handler(signal.SIGTERM, self._stop)
        task = self._task
        if self._spec.is_paused:
            task.pause()
        task.launch()
        ended = asyncio.ensure_future(task.ended())
        while not ended.done() and (self._stopping is None or not self._stopping.done()):
            self._report(is_last=False)
            changed = asyncio.ensure_future(self._changed.wait())
            waits = {ended, changed, *filter(None, [self._stopping])}
            await asyncio.wait(waits, timeout=_REPORT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            self._changed.clear()
        with suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._clients.close()
        self._report(is_last=True)

    def _make_task(self) -> WorkerTask:
        role = "source"
        try:
            plugin = self._plugin()
            self._version, role = plugin.VERSION, connector_type(plugin)
            setting = self._setting(role)
            new_source_task = self._new_source_task if self._spec.transactions is not None else None
            return make_plugin_task(
                setting,
                plugin,
                plugin.task_class(),
                self._store,
                on_change=self._changed.set,
                new_source_task=new_source_task,
            )
        except Exception as e:
            return UnmadeTask(self._setting(role), e, on_change=self._changed.set)

    def _new_source_task(
        self, setting: TaskSetting, task: SourceTask | BatchSourceTask, on_change: Callable[[], None]
    ) -> WorkerTask:
        store = self._store
        assert isinstance(store, RemoteTransactions)
        return exactly_once_task(setting, task, store, store, on_change=on_change)

    def _plugin(self) -> ConnectorClass:
        place = self._spec.plugin
        if place is None:
            return connector_class(*named_version(self._spec.connector_config))
        sys.path.append(place.folder)  # for what the plugin imports in other ways than by a statement
        folder = PluginFolder(
            Path(place.folder),
            frozenset(place.modules),
            Path(place.location),
            str(os.getpid()),
            place.version,
        )
        plugin: ConnectorClass = Offer(place.reference, place.reference, folder).load()
        return plugin

    def _setting(self, role: str) -> TaskSetting:
        spec = self._spec
        client = self._clients.of(role, spec.connector_config)
        return TaskSetting(
            connector=spec.connector,
            task_id=spec.task_id,
            config=spec.config,
            connector_config=spec.connector_config,
            worker=self._worker,
            client=client,
            admin=Admin(self._clients.admin(spec.connector_config)),
            dead_letter_client=self._clients.dead_letters(spec.connector_config) if role == "sink" else None,
            startups=self._startups,
            note_topic=lambda topic: self._link.send(TopicUsed(topic)),
        )

    def _take(self, message: ToTask) -> None:
        match message:
            case Pause():
                self._task.pause()
            case Resume():
                self._task.resume()
            case ForgetTopics():
                self._task.forget_topics()
            case Stop():
                self._stop()
            case RequestCommit():
                request = getattr(self._task, "request_commit", None)
                if request is not None:
                    request()
            case RateLimits(config, tasks):
                self._task.rate.follow(config, tasks, dict)
            case StoredOffsets() | OffsetsPut() | OffsetsSpelled() | Granted() | Refused():
                self._store.take(message)

    def _stop(self) -> None:
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._task.stop())
            self._changed.set()

    def _report(self, *, is_last: bool) -> None:
        task, status = self._task, self._task.status
        trace = status.trace
        if trace is not None and len(trace) > _TRACE_MAX:
            trace = f"{trace[: _TRACE_MAX // 2]}\n...\n{trace[-_TRACE_MAX // 2 :]}"
        self._link.report(
            Report(
                state=status.state.value,
                trace=trace,
                version=self._version,
                is_done=task.is_done,
                is_last=is_last,
                starts=(self._startups.succeeded, self._startups.failed),
                statistics=task.statistics(),
                values=task.values(),
                queued=task.queued(),
                plugin_values=task.plugin_values() if self._startups.succeeded and not is_last else {},
                calls=task.calls.statistics(),
                rate=task.rate.values(),
                cpu_seconds=time.process_time(),
                byte_count=task.rate.byte_count,
            )
        )


def main() -> None:
    """Run the task whose spec comes over the socket. Does not return."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    link = WorkerLink(socket.socket(fileno=int(sys.argv[1])))
    try:
        spec = link.receive()
    except EOFError:
        os._exit(ORPHANED)
    if not isinstance(spec, TaskSpec):
        raise ConnectError(f"the worker sent {type(spec).__name__} before the task's spec")
    _die_with(spec.parent)
    sys.path[:] = spec.import_path
    _log_to(link, spec)
    gc.freeze()
    gc.set_threshold(_GC_THRESHOLD)
    asyncio.run(_run(link, spec))


async def _run(link: WorkerLink, spec: TaskSpec) -> None:
    await TaskProcess(link, spec).run()
    link.flush(_CLOSE_SECONDS)
    sys.stdout.flush()
    sys.stderr.flush()
    # A plugin's threads that do not end would keep the process.
    os._exit(0)


def _die_with(parent: int) -> None:
    """Have the kernel kill this process when the worker ends, even while a plugin holds the GIL."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(ORPHANED)


def _log_to(link: WorkerLink, spec: TaskSpec) -> None:
    handler = LogToWorker(link, f"[{spec.connector}|task-{spec.task_id}] ")
    handler.setFormatter(logging.Formatter("%(message)s"))
    logging.root.handlers[:] = [handler]
    for name, level in spec.log_levels.items():
        logging.getLogger(name or None).setLevel(level)


def _call_soon(loop: asyncio.AbstractEventLoop, take: Callable[[ToTask], None], message: ToTask) -> None:
    with suppress(RuntimeError):  # the loop is closed: the process ends
        loop.call_soon_threadsafe(take, message)


if __name__ == "__main__":
    main()
