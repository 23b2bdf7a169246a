"""The loop over one instance's tasks: feed, work, send, commit; and between turns the group's assignments.

A lock keeps the loop and the group's callbacks apart: tasks change hands only between two turns of the loop.
Tasks that stay go on through a rebalance; new tasks are restored beside them (`openings`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from kafka_client import TopicPartition
from kafka_client.errors import (
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    RebalanceNeeded,
    RequestTimedOut,
    TransactionError,
)
from streams.errors import StateCorrupted, TaskLost
from streams.processors.metrics import NodeMetrics
from streams.runtime.application import Application
from streams.runtime.assignment.protocol import RUNS_HERE, Assignment, MemberState
from streams.runtime.clients import Clients
from streams.runtime.commit.commit import COMMITS_UNDER_WAY_MAX
from streams.runtime.commit.output import RECORDS_FAULT, SENDS_MAX
from streams.runtime.commit.refusals import FOR_THEIR_SIZE
from streams.runtime.commit.schedule import CommitSchedule
from streams.runtime.folder import StateFolder
from streams.runtime.opener import TaskOpener
from streams.runtime.openings import Openings
from streams.runtime.standbys import Standbys
from streams.runtime.task.idle_ends import IdleEnds
from streams.runtime.task.running import RunningTask, close_all
from streams.runtime.task.task_scheduler import TaskScheduler
from streams.runtime.task_id import TaskId
from streams.runtime.task_inputs import Polled, TaskInputs
from streams.runtime.thread_metrics import ThreadMetrics
from streams.runtime.threads.threads import Threads

log = logging.getLogger(__name__)


class TaskLoop:
    """The loop that runs the tasks assigned by the group.

    `tasks` are the tasks that run now; `progress` is set after every turn. After a retriable error the tasks
    are dropped and the member joins the group again, which restores them.
    """

    def __init__(
        self,
        application: Application,
        clients: Clients,
        threads: Threads,
        *,
        opener: TaskOpener,
        standbys: Standbys,
        inputs: TaskInputs,
        commits: CommitSchedule,
        idle_ends: IdleEnds,
    ) -> None:
        self.tasks = commits.tasks
        self.inputs = inputs
        self.commits = commits
        self.progress = asyncio.Event()
        self.totals: dict[str, NodeMetrics] = {}
        """The counters of closed tasks, by node."""
        self.thread_metrics = ThreadMetrics(application.clock(), commits.durations)
        self._clock = application.clock
        self._config = application.config
        self._member = clients.member
        self._worker = threads.worker
        self._restorer = threads.restorer
        self._coroutines = threads.coroutines
        self._standbys = standbys
        self._openings = Openings(
            opener,
            prepare=commits.committer.recover,  # Restores would wait for the end of an open transaction.
            take=self._take,
            is_retriable=_is_retriable,
            backoff=clients.client.backoff,
            restorer=threads.restorer,
        )
        self._scheduler = TaskScheduler(inputs.buffer, turn_ms=self._config.poll_ms, clock=self._clock)
        self._idle_ends = idle_ends
        self._lock = asyncio.Lock()
        self._working = False
        self._stopping = False
        self._assigned: frozenset[TaskId] = frozenset()
        """The tasks that are to run here, as last assigned."""
        self._assigned_inputs: Mapping[TaskId, frozenset[TopicPartition]] = {}
        """The partitions that each of them reads."""
        self._pending = False
        self.on_change: Callable[[], None] = lambda: None
        """Called when a task was added or removed; `is_running` says whether all assigned tasks run."""

    # -- the loop

    async def run(self) -> None:
        """Take turns until cancelled."""
        busy = False
        while True:
            with self.thread_metrics.poll.timed():
                polled = await (self.inputs.poll(0) if busy else self._poll_beside_commit())
            self.thread_metrics.poll_records.record(polled.record_count)
            async with self._lock:
                busy = False
                async with self._dropped_on_error():
                    self._openings.check()
                    self.inputs.feed(polled)
                    busy = self._working and not self._waits_for_generation and await self._turn() > 0
            self.progress.set()

    async def _poll_beside_commit(self) -> Polled:
        """Wait for records, and finish the commit under way as soon as its outcome is known.

        The wait also ends when a coroutine of an asynchronous node has a result.
        """
        timeout_ms = self.commits.wait_ms()
        outcome = self.commits.committer.outcome
        if outcome is None and not self._coroutines.is_busy:
            return await self.inputs.poll(timeout_ms)
        polling = asyncio.create_task(self.inputs.poll(timeout_ms))
        arrival = asyncio.create_task(self._coroutines.arrived.wait())
        try:
            futures: set[asyncio.Future[Any]] = (
                {polling, arrival} if outcome is None else {polling, outcome, arrival}
            )
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not polling.done() and outcome is not None and outcome.done():
                async with self._lock, self._dropped_on_error():
                    await self.commits.finish()
        finally:
            polling.cancel()
            arrival.cancel()
            await asyncio.wait([polling, arrival])
            self._coroutines.arrived.clear()  # also if there is no turn now: the tasks may be gone
        return self.inputs.nothing() if polling.cancelled() else polling.result()

    async def _turn(self) -> int:
        """Let all tasks process records, send their output, and commit if due.

        Return the number of processed records.
        """
        tasks = list(self.tasks.values())
        self._coroutines.arrived.clear()
        with self.thread_metrics.process.timed():
            count = await self._worker.run(self._scheduler.work, tasks)
        self.thread_metrics.process_records.record(count)
        await self._member.confirm()
        for running in tasks:
            await self.commits.output.send(running)
        self.inputs.resume()
        self._idle_ends.ask((running.task.id.subtopology, running.task.idle) for running in tasks)
        if self._idle_ends.take_wants_commit():
            self.commits.request()
        await self.commits.after_turn()
        return count

    @property
    def _waits_for_generation(self) -> bool:
        """True if only a commit makes room for more records, and the rebalance under way forbids it."""
        return self._member.is_joining and self.commits.is_full

    def request_commit(self) -> None:
        """Commit in the next turn."""
        self.commits.request()

    @asynccontextmanager
    async def _dropped_on_error(self) -> AsyncIterator[None]:
        """Drop all tasks if the body raises.

        A task may be in the middle of a record, or of a commit of unknown outcome, and neither may be
        committed later. After a retriable error the member joins the group again, which restores the tasks;
        other errors are raised.
        """
        try:
            yield
        except Exception as error:
            oldest_call = self._coroutines.oldest_told()
            await self.drop()
            if not _is_retriable(error):
                raise
            log.warning(
                "tasks are restored: %s%s",
                error,
                f"; given up: {oldest_call} (see timeout=)" if oldest_call else "",
            )
            self._member.request_rejoin()

    # -- changes of hands

    @asynccontextmanager
    async def _cut_short(self) -> AsyncIterator[None]:
        """Enter between two turns; the turn under way ends after its current record."""
        tasks = [running.task for running in self.tasks.values()]
        for task in tasks:
            task.break_off()
        try:
            await self._lock.acquire()
        finally:
            for task in tasks:
                task.go_on()
        try:
            yield
        finally:
            self._lock.release()

    async def assigned(self, assignment: Assignment, generation: int) -> None:
        """Run exactly these tasks: commit and close others, begin to open new ones, go on with the rest."""
        async with self._cut_short():
            if self._stopping or self._member.generation != generation:
                return  # The instance closes, or the member has lost its place and joins again.
            async with self._dropped_on_error():
                # Tasks whose inputs have changed are closed, and opened with the new ones.
                before, opening = self._assigned_inputs, self._openings.ids
                changed = {id for id, tps in before.items() if assignment.inputs.get(id) != tps}
                self._assigned, self._pending = assignment.active, assignment.pending
                self._assigned_inputs = assignment.inputs
                await self._openings.cancel(opening & changed | opening - self._assigned)
                revoked = self.tasks.keys() - self._assigned
                if closed := revoked | self.tasks.keys() & changed:
                    await self.commits.commit_all()
                    await self._close([self.tasks.pop(id) for id in closed], clean=True)
                    self.inputs.assign(self.tasks.values())
                self._openings.assign(self._assigned_inputs)
                new = self._assigned - self.tasks.keys() - self._openings.ids
                stores = await self._standbys.take(new)
                self._openings.begin(sorted(new), stores)
                await self._standbys.assign(assignment.standby, assignment.warmup)
                self._working = True
                if revoked or assignment.revoked:
                    self._member.request_rejoin()  # Other members wait for the revoked tasks.
        self.on_change()

    async def _take(self, running: RunningTask) -> None:
        """Run an opened task from now on."""
        async with self._lock:
            self.thread_metrics.tasks_created += 1
            self.tasks[running.task.id] = running
            self.inputs.assign(self.tasks.values())
        self.on_change()
        self.progress.set()

    @property
    def is_running(self) -> bool:
        """True if all assigned tasks run, and the group has no more for this instance yet."""
        return self._working and not self._pending and self._assigned == self.tasks.keys()

    async def revoked(self) -> None:
        """Commit all tasks, then process nothing more; give up after `revoke_timeout_ms`.

        Tasks that could not be committed are dropped.
        """
        async with self._cut_short():
            self._working = False
            async with self._dropped_on_error():
                await self.commits.commit_all()

    async def lost(self) -> None:
        """Drop all tasks without a commit: the group has given them to other members."""
        async with self._cut_short():
            await self.drop()

    async def drop(self) -> None:
        """Close all tasks without a commit, and cancel those that are being opened. Standbys stay."""
        self._working = False
        await self._openings.cancel()
        await self.commits.committer.abandon()
        dropped = list(self.tasks.values())
        self.tasks.clear()
        self.inputs.assign(self.tasks.values())
        await self._close(dropped, clean=False)
        self.on_change()

    async def _close(self, tasks: Sequence[RunningTask], *, clean: bool) -> None:
        """Close tasks that were removed from `tasks`, in the worker: closing flushes stores to the disk."""
        for running in tasks:
            for name, metrics in running.task.metrics.items():
                self.totals.setdefault(name, NodeMetrics()).add(metrics)
        self.thread_metrics.tasks_closed += len(tasks)
        if tasks:
            await self._worker.run(close_all, tasks, clean=clean)

    @asynccontextmanager
    async def between_turns(self) -> AsyncIterator[None]:
        """Enter once the turn under way is over. Cancels restores; none begins any more."""
        self._stopping = True
        async with self._cut_short():
            await self._openings.cancel()
            yield

    async def close(self) -> None:
        """Close fetcher and tasks; commit before."""
        await self.commits.close()
        await self._idle_ends.close()
        await self.inputs.close()
        async with self._lock:
            await self.commits.committer.abandon()
            closed = list(self.tasks.values())
            self.tasks.clear()
            await self._close(closed, clean=True)
        await self._standbys.close()

    async def set_aside_idle_state(self, folder: StateFolder, idle_ms: int) -> list[TaskId]:
        """Move aside the folders of tasks that run elsewhere, and return the tasks.

        Does nothing while the assignment is unknown. Deletes no file: see `StateFolder`.
        """
        async with self._lock:
            if not self._working:
                return []
            used = self._assigned | self.tasks.keys() | self._standbys.tasks.keys()
            return await self._restorer.run(folder.set_aside, used, idle_ms, self._clock())

    def pause(self, *, paused: bool) -> None:
        """Stop or resume processing and the update of standbys. Commits go on."""
        self._scheduler.paused = self._standbys.paused = paused

    # -- what other parts read

    def member_state(self, stored: Mapping[TaskId, int]) -> MemberState:
        """Return what this instance reports to the group's leader. ``stored``: changelog offsets of state on
        the disk.
        """
        running = dict.fromkeys(self.tasks, RUNS_HERE)
        active = frozenset(self.tasks) | self._openings.ids
        offsets = {**stored, **self._standbys.offsets(), **self._openings.offsets(), **running}
        return MemberState(active, frozenset(self._standbys.tasks), offsets)

    def statistics(self) -> dict[str, float]:
        """Return the fill of each bounded queue beside its bound, and the load of the threads.

        Counted are bytes in the stores' caches, paused inputs, sends that are not acknowledged, and commits
        under way; the rest comes from the coroutines and the two workers.
        """
        return {
            "cache_bytes": self.commits.cache_bytes(),
            "cache_bytes_max": self._config.statestore_cache_max_bytes,
            "inputs_held_back": self.inputs.paused_count,
            "sends": self.commits.output.sends,
            "sends_max": SENDS_MAX,
            "commits_under_way": self.commits.committer.under_way,
            "commits_under_way_max": COMMITS_UNDER_WAY_MAX,
            **self._coroutines.statistics(),
            **self._worker.statistics(),
            **self._restorer.statistics(),
        }

    def is_committed(self) -> bool:
        """Return True if all assigned tasks run and everything they did is committed."""
        return self.is_running and self.commits.is_committed()

    def metrics(self) -> dict[str, NodeMetrics]:
        """Return counters by node, over all tasks this instance has had."""
        summed = {name: NodeMetrics() for name in self.totals}
        for name, metrics in self.totals.items():
            summed[name].add(metrics)
        for running in self.tasks.values():
            for name, metrics in running.task.metrics.items():
                summed.setdefault(name, NodeMetrics()).add(metrics)
        return summed


_FOR_GOOD = frozenset(
    (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.INVALID_TRANSACTION_TIMEOUT,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_GROUP_ID,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        *FOR_THEIR_SIZE,
        *RECORDS_FAULT,
    )
)
"""Errors of a transaction that would fail again if it were retried."""


def _is_retriable(error: Exception) -> bool:
    """Return True if the operation may succeed when it is retried."""
    if isinstance(error, TransactionError):
        return error.code not in _FOR_GOOD
    if isinstance(error, KafkaError):
        return error.retriable or isinstance(error, RebalanceNeeded)
    return isinstance(error, TaskLost | StateCorrupted | ConnectionClosed | RequestTimedOut)
