"""The loop over one instance's tasks: feed, work, send, commit; and, between turns, the group's assignments.

A lock keeps the loop and the group's callbacks apart: tasks change hands only between two turns of the loop.
Those that stay go on through a rebalance; those that come are restored beside them (`openings`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from kafka_client import (
    Admin,
    BatchFetcher,
    Client,
    Fetched,
    GroupMember,
    OffsetAndMetadata,
    TopicPartition,
)
from kafka_client.errors import (
    ConnectionClosed,
    ErrorCode,
    KafkaError,
    OffsetOutOfRange,
    RebalanceNeeded,
    RequestTimedOut,
    TransactionError,
)
from streams.config import StreamsConfig
from streams.errors import StateCorrupted, TaskLost
from streams.processors.metrics import NodeMetrics
from streams.runtime.assignment.protocol import RUNS_HERE, Assignment, MemberState
from streams.runtime.commit.commit import COMMITS_UNDER_WAY_MAX, Committer, late
from streams.runtime.commit.output import RECORDS_FAULT, SENDS_MAX, Output
from streams.runtime.commit.purge import Purge, RepartitionPurge
from streams.runtime.commit.refusals import FOR_THEIR_SIZE
from streams.runtime.folder import StateFolder
from streams.runtime.opener import TaskOpener
from streams.runtime.openings import Openings
from streams.runtime.standbys import Standbys
from streams.runtime.task.idle_ends import IdleEnds
from streams.runtime.task.input_buffer import InputBuffer
from streams.runtime.task.queue import InputQueue
from streams.runtime.task.resets import position_after_loss
from streams.runtime.task.running import RunningTask, close_all
from streams.runtime.task.task import Clock
from streams.runtime.task.task_scheduler import TaskScheduler
from streams.runtime.task_id import TaskId
from streams.runtime.thread_metrics import ThreadMetrics
from streams.runtime.threads.coroutines import LoopCoroutines
from streams.runtime.threads.worker import Worker

log = logging.getLogger(__name__)


class _Polled(NamedTuple):
    """What a fetch gave, or that an input's next offset is gone, in which epoch of the assignment."""

    fetched: list[Fetched]
    lost: OffsetOutOfRange | None
    epoch: int


class TaskLoop:
    """Runs the tasks the group gives it.

    `tasks`: those held now. `progress`: set after every turn. After a retriable error the tasks are
    dropped and the member joins the group again, which restores them.
    """

    def __init__(
        self,
        client: Client,
        member: GroupMember,
        *,
        opener: TaskOpener,
        standbys: Standbys,
        restorer: Worker,
        committer: Committer,
        output: Output,
        purge: RepartitionPurge,
        changelog_purge: Purge,
        worker: Worker,
        coroutines: LoopCoroutines,
        buffer: InputBuffer,
        config: StreamsConfig,
        clock: Clock,
        idle_ends: IdleEnds,
    ) -> None:
        self.tasks: dict[TaskId, RunningTask] = {}
        self.progress = asyncio.Event()
        self.totals: dict[str, NodeMetrics] = {}
        """Counters of tasks that are gone."""
        self.told = ThreadMetrics(clock())
        self._client = client
        self._member = member
        self._standbys = standbys
        self._restorer = restorer
        self._openings = Openings(
            opener,
            prepare=committer.recover,  # Restores would wait for the end of what is left open.
            take=self._take,
            is_retriable=_is_retriable,
            backoff=client.backoff,
            restorer=restorer,
        )
        self._committer = committer
        self._output = output
        self._purge = purge
        self._changelog_purge = changelog_purge
        self._worker = worker
        self._coroutines = coroutines
        self._config = config
        self._clock = clock
        self._buffer = buffer
        self._turns = TaskScheduler(buffer, turn_ms=config.poll_ms, clock=clock)
        # After a lost offset each source's own reset decides (see `_go_on_after`).
        self._fetcher = BatchFetcher(
            client, isolation_level=config.isolation_level, fetch_max_wait_ms=config.poll_ms
        )
        self._idle_ends = idle_ends
        self._held_back: set[TopicPartition] = set()
        self._queues: dict[TopicPartition, InputQueue] = {}
        self._lock = asyncio.Lock()
        self._epoch = 0
        self._working = False
        self._stopping = False
        self._draining = False
        self._commit_at = clock() + config.commit_every_ms
        self._wanted: frozenset[TaskId] = frozenset()
        self._inputs: Mapping[TaskId, frozenset[TopicPartition]] = {}
        """What the tasks read that are to run here, as last assigned."""
        self._pending = False
        self.on_change: Callable[[], None] = lambda: None
        """Called when tasks came or went; `is_running` says whether all are here that are to be."""

    # -- the loop

    async def run(self) -> None:
        """Take turns until cancelled."""
        busy = False
        while True:
            with self.told.poll.timed():
                polled = await (self._poll(0) if busy else self._poll_beside_commit())
            self.told.poll_records.record(sum(each.record_count for each in polled.fetched))
            async with self._lock:
                busy = False
                async with self._dropped_on_error():
                    self._openings.check()
                    if polled.lost is not None:
                        self._go_on_after(polled.lost)
                    for each in polled.fetched:
                        self._feed(each, polled.epoch)
                    busy = self._working and not self._waits_for_generation and await self._turn() > 0
            self.progress.set()

    async def _poll(self, timeout_ms: int) -> _Polled:
        try:
            fetched = await self._fetcher.fetch(timeout_ms=timeout_ms)
        except OffsetOutOfRange as lost:
            return _Polled([], lost, self._epoch)
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or not self._are_matched():
                raise
            log.warning("%s: the group assigns the topics anew that match the pattern", error.message)
            self._member.request_rejoin()
            return _Polled([], None, self._epoch)
        return _Polled(fetched, None, self._epoch)

    def _are_matched(self) -> bool:
        """Whether the inputs that fetching failed of are read by a pattern: their topics may be deleted."""
        failed = [self._queues[tp] for tp in self._fetcher.failures() if tp in self._queues]
        return all(queue.source.pattern is not None for queue in failed)

    async def _poll_beside_commit(self) -> _Polled:
        """Wait for records; a commit that is over by then is finished meanwhile, not when they come. What a
        coroutine gives ends the wait.
        """
        timeout_ms = self._idle_ms()
        outcome = self._committer.outcome
        if outcome is None and not self._coroutines.is_busy:
            return await self._poll(timeout_ms)
        polling = asyncio.create_task(self._poll(timeout_ms))
        arrival = asyncio.create_task(self._coroutines.arrived.wait())
        try:
            futures: set[asyncio.Future[Any]] = (
                {polling, arrival} if outcome is None else {polling, outcome, arrival}
            )
            await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
            if not polling.done() and outcome is not None and outcome.done():
                async with self._lock, self._dropped_on_error():
                    await self._finish_commit()
        finally:
            polling.cancel()
            arrival.cancel()
            await asyncio.wait([polling, arrival])
            self._coroutines.arrived.clear()  # also if there is no turn now: the tasks may be gone
        return _Polled([], None, self._epoch) if polling.cancelled() else polling.result()

    def _idle_ms(self) -> int:
        """How long to wait for records: not beyond the next commit, if there is something to commit."""
        left = self._commit_at - self._clock()
        waits = self._committer.under_way or self._member.is_joining or self._draining
        if waits or left >= self._config.poll_ms or not self._needs_commit():
            return self._config.poll_ms
        return max(left, 1)

    def _feed(self, fetched: Fetched, epoch: int) -> None:
        queue = self._queues.get(fetched.tp)
        if queue is None or epoch != self._epoch:
            return  # Assigned anew while this waited for the lock: what is still wanted is fetched again.
        if fetched.position != queue.fetched:
            log.warning(
                "%s: the log has no offset %d, going on at %d", fetched.tp, queue.fetched, fetched.position
            )
            queue.reset(fetched.position, self._end_told(fetched))
        queue.add_fetched(fetched, self._end_told(fetched))
        if self._has_enough(queue):
            self._held_back.add(fetched.tp)
            self._fetcher.pause([fetched.tp])

    def _end_told(self, fetched: Fetched) -> int:
        """The end of what this isolation level may read, as the fetch told it."""
        committed = self._config.isolation_level == "read_committed"
        return fetched.last_stable_offset if committed else fetched.high_watermark

    def _has_enough(self, queue: InputQueue) -> bool:
        """Whether to pause fetching the input. Never one that is empty: its task may be waiting for it."""
        limit = self._config.buffered_records_per_partition
        return len(queue) > limit or (self._buffer.is_full and queue.has_input)

    def _go_on_after(self, lost: OffsetOutOfRange) -> None:
        """An input's next offset is no longer in its log: go on as its source's reset or the config says."""
        tp = TopicPartition(lost.topic, lost.partition)
        queue = self._queues.get(tp)
        if queue is not None and queue.fetched == lost.offset:
            self._fetcher.seek(tp, position_after_loss(queue, lost, self._config.auto_offset_reset))

    async def _turn(self) -> int:
        tasks = list(self.tasks.values())
        self._coroutines.arrived.clear()
        with self.told.process.timed():
            done = await self._worker.run(self._turns.work, tasks)
        self.told.process_records.record(done)
        await self._member.confirm()
        for running in tasks:
            await self._output.send(running)
        ready = [tp for tp in self._held_back if not self._has_enough(self._queues[tp])]
        self._fetcher.resume(ready)
        self._held_back.difference_update(ready)
        self._idle_ends.ask((running.task.id.subtopology, running.task.idle) for running in tasks)
        if any(running.task.wants_commit for running in tasks) and not self._committer.under_way:
            self.request_commit()
        if self._idle_ends.take_wants_commit():
            self.request_commit()
        await self._commit_if_due()
        self._purge.start_if_due()
        self._changelog_purge.start_if_due()
        return done

    @property
    def _waits_for_generation(self) -> bool:
        """Whether a commit has to be made before more is processed, and cannot be during a rebalance."""
        return self._member.is_joining and (self._is_cache_full() or self._output.is_full)

    # -- commits

    def request_commit(self) -> None:
        """Commit in the next turn."""
        self._commit_at = self._clock()

    async def _commit_if_due(self) -> None:
        """Finish the commit under way if it has happened, begin the next if it is time.

        One that is only due waits for the one before while the tasks go on; one that has to be is waited for.
        """
        if self._committer.outcome is not None and (self._committer.outcome.done() or self._must_commit()):
            await self._finish_commit()
        if self._committer.under_way:
            return  # Even if one has to be made meanwhile: time goes on between two looks at it.
        is_due = self._clock() >= self._commit_at and not self._is_draining()
        if is_due or self._must_commit():
            await self._begin_commit_in_time()
            if not self._committer.under_way:
                self._shrink_full_caches()  # of what was only looked up

    def _is_draining(self) -> bool:
        """Whether coroutines are waited for before a commit. Their tasks take no input meanwhile, others do;
        and a commit that has to be made at once waits for them in the tasks' thread.
        """
        tasks = [running.task for running in self.tasks.values()]
        # During a rebalance no commit is begun: it may take long.
        self._draining = not self._member.is_joining and any(task.held for task in tasks)
        for task in tasks:
            task.takes_input = not self._draining
        return self._draining

    def _must_commit(self) -> bool:
        """Whether what waits for a commit has reached a bound: of memory, of sends, or of time."""
        return self._is_cache_full() or self._output.is_full or self._committer.is_overdue

    def _is_cache_full(self) -> bool:
        return self._cache_bytes() > self._config.statestore_cache_max_bytes

    def _cache_bytes(self) -> int:
        return sum(running.task.cache_bytes for running in self.tasks.values())

    def _needs_commit(self) -> bool:
        return self._committer.has_open or any(running.needs_commit for running in self.tasks.values())

    async def _begin_commit(self) -> None:
        """Send what changed; the tasks go on meanwhile. Later, if the group is between two generations.

        Then only a transaction that the coordinator would end soon is committed: the group takes its offsets
        until it has the next generation, and refuses them after that.
        """
        if self._member.is_joining and not self._committer.is_overdue:
            return
        self._commit_at = self._clock() + self._config.commit_every_ms
        self._draining = False
        for running in self.tasks.values():
            running.task.takes_input = True
        changed = [running for running in self.tasks.values() if running.needs_commit]
        if changed or self._committer.has_open:
            await self._committer.begin(changed, self._fetcher.leader_epoch)

    async def _begin_commit_in_time(self) -> None:
        """As `_begin_commit`; coroutines that are not over when an open transaction is about to end are
        given up: RequestTimedOut.
        """
        waits_for_calls = any(running.task.held for running in self.tasks.values())
        limit_ms = self._config.revoke_timeout_ms // 2  # It has been open for the other half.
        try:
            async with asyncio.timeout(limit_ms / 1000 if waits_for_calls else None):
                await self._begin_commit()
        except TimeoutError:
            raise late(limit_ms) from None

    async def _finish_commit(self) -> None:
        """Wait for the commit under way, if there is one, and write it down."""
        if not self._committer.under_way:
            return
        committed = await self._committer.finish()
        self.told.commit.record(self._committer.seconds)
        for running in committed:
            self._purge.committed(running.task.committed)
            self._changelog_purge.may_go(running.needed_from)
        self._shrink_full_caches()

    def _shrink_full_caches(self) -> None:
        """Forget what the stores' backends have; no commit may be under way."""
        if self._is_cache_full():
            for running in self.tasks.values():
                running.task.shrink()

    async def _commit_all(self) -> None:
        """Commit what changed, and return when that has happened; RequestTimedOut after revoke_timeout_ms."""
        limit_ms = self._config.revoke_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self._finish_commit()
                await self._begin_commit()
                await self._finish_commit()
        except TimeoutError:
            raise late(limit_ms) from None

    @asynccontextmanager
    async def _dropped_on_error(self) -> AsyncIterator[None]:
        """Drop all tasks if the body raises: one may be in the middle of a record, or of a commit of unknown
        outcome, and neither may be committed later. After a retriable error the member joins the group again,
        which restores the tasks; other errors are raised.
        """
        try:
            yield
        except Exception as error:
            given_up = self._coroutines.oldest_told()
            await self.drop()
            if not _is_retriable(error):
                raise
            log.warning(
                "tasks are restored: %s%s",
                error,
                f"; given up: {given_up} (see timeout=)" if given_up else "",
            )
            self._member.request_rejoin()

    # -- changes of hands

    @asynccontextmanager
    async def _cut_short(self) -> AsyncIterator[None]:
        """Enter between two turns; the one under way ends behind the record in hand."""
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
        """Hold exactly these tasks: commit and close others, begin to open new ones, go on with the rest."""
        async with self._cut_short():
            if self._stopping or self._member.generation != generation:
                return  # The end, or the member is out: it joins anew.
            async with self._dropped_on_error():
                # Tasks whose inputs are others now are closed, and opened with these.
                changed = {id for id, tps in self._inputs.items() if assignment.inputs.get(id) != tps}
                self._wanted, self._pending = assignment.active, assignment.pending
                self._inputs = assignment.inputs
                await self._openings.cancel(self._openings.ids & changed | self._openings.ids - self._wanted)
                gone = self.tasks.keys() - self._wanted
                if closed := gone | self.tasks.keys() & changed:
                    await self._commit_all()
                    await self._close([self.tasks.pop(id) for id in closed], clean=True)
                    self._assign_inputs()
                self._openings.assign(self._inputs)
                new = self._wanted - self.tasks.keys() - self._openings.ids
                stores = await self._standbys.take(new)
                self._openings.begin(sorted(new), stores)
                await self._standbys.assign(assignment.standby, assignment.warmup)
                self._working = True
                if gone or assignment.revoked:
                    self._member.request_rejoin()  # Others wait for them.
        self.on_change()

    async def _take(self, running: RunningTask) -> None:
        """A task is open: it runs from now on."""
        async with self._lock:
            self.told.tasks_created += 1
            self.tasks[running.task.id] = running
            self._assign_inputs()
        self.on_change()
        self.progress.set()

    @property
    def is_running(self) -> bool:
        """Whether all tasks run that this instance is to run, as far as the group knows now."""
        return self._working and not self._pending and self._wanted == self.tasks.keys()

    async def revoked(self) -> None:
        """The end: commit and stand still, after `revoke_timeout_ms` at the latest. What is not committed
        then is dropped.
        """
        async with self._cut_short():
            self._working = False
            async with self._dropped_on_error():
                await self._commit_all()

    async def lost(self) -> None:
        """The tasks are somebody else's already: nothing of theirs may be committed."""
        async with self._cut_short():
            await self.drop()

    async def drop(self) -> None:
        """Close all tasks without a commit; none is opened any more. Standbys stay."""
        self._working = False
        await self._openings.cancel()
        await self._committer.abandon()
        dropped = list(self.tasks.values())
        self.tasks.clear()
        self._assign_inputs()
        await self._close(dropped, clean=False)
        self.on_change()

    async def _close(self, tasks: Sequence[RunningTask], *, clean: bool) -> None:
        """Close tasks that were taken out of `tasks`, in the worker: their stores are flushed to the disk."""
        for running in tasks:
            for name, metrics in running.task.metrics.items():
                self.totals.setdefault(name, NodeMetrics()).add(metrics)
        self.told.tasks_closed += len(tasks)
        if tasks:
            await self._worker.run(close_all, tasks, clean=clean)

    def _assign_inputs(self) -> None:
        """Fetch what the tasks held now need, each input from where it stands."""
        self._epoch += 1
        self._queues = {tp: q for running in self.tasks.values() for tp, q in running.task.queues.items()}
        self._fetcher.assign(
            {
                tp: OffsetAndMetadata(queue.fetched, leader_epoch=queue.leader_epoch)
                for tp, queue in self._queues.items()
            }
        )
        self._held_back = self._fetcher.paused()

    @asynccontextmanager
    async def between_turns(self) -> AsyncIterator[None]:
        """Enter once the turn under way is over; restores are broken off, and none begins any more."""
        self._stopping = True
        async with self._cut_short():
            await self._openings.cancel()
            yield

    async def close(self) -> None:
        """Close fetcher and tasks; commit before."""
        await self._purge.close()
        await self._changelog_purge.close()
        await self._idle_ends.close()
        await self._fetcher.close()
        async with self._lock:
            await self._committer.abandon()
            closed = list(self.tasks.values())
            self.tasks.clear()
            await self._close(closed, clean=True)
        await self._standbys.close()

    async def set_aside_idle_state(self, folder: StateFolder, idle_ms: int) -> list[TaskId]:
        """Have state set aside of tasks that run elsewhere; none while it is not known where tasks run."""
        async with self._lock:
            if not self._working:
                return []
            used = self._wanted | self.tasks.keys() | self._standbys.tasks.keys()
            return await self._restorer.run(folder.set_aside, used, idle_ms, self._clock())

    def pause(self, *, paused: bool) -> None:
        """Process nothing, nor bring standbys up to date, or go on with it. Commits are made all the same."""
        self._turns.paused = self._standbys.paused = paused

    # -- what others ask

    def member_state(self, stored: Mapping[TaskId, int]) -> MemberState:
        """What this instance tells the group's leader. ``stored``: how far state on the disk is."""
        running = dict.fromkeys(self.tasks, RUNS_HERE)
        active = frozenset(self.tasks) | self._openings.ids
        offsets = {**stored, **self._standbys.offsets(), **self._openings.offsets(), **running}
        return MemberState(active, frozenset(self._standbys.tasks), offsets)

    def statistics(self) -> dict[str, float]:
        """Bytes in the stores' caches, beyond the bound of which a commit empties them; inputs that are not
        fetched on; sends whose acknowledgement the next commit waits for, and from how many on it is made;
        commits that are sent and not over; coroutines that are not over; what the worker has to do.
        """
        return {
            "cache_bytes": self._cache_bytes(),
            "cache_bytes_max": self._config.statestore_cache_max_bytes,
            "inputs_held_back": len(self._held_back),
            "sends": self._output.sends,
            "sends_max": SENDS_MAX,
            "commits_under_way": self._committer.under_way,
            "commits_under_way_max": COMMITS_UNDER_WAY_MAX,
            **self._coroutines.statistics(),
            **self._worker.statistics(),
            **self._restorer.statistics(),
        }

    def positions(self) -> dict[TopicPartition, int]:
        """The next offset to process of each input."""
        return {tp: queue.position for tp, queue in self._queues.items()}

    async def ends(self) -> Mapping[TopicPartition, int]:
        """The log end of each input, asked of the brokers now."""
        if not self._queues:
            return {}
        own = self._purge.topics
        inner = {tp: "latest" for tp in self._queues if tp.topic in own}
        outer = {tp: "latest" for tp in self._queues if tp.topic not in own}
        admin = Admin(self._client)
        found = await admin.list_offsets(outer, isolation_level=self._config.isolation_level)
        # What our own transactions have sent there is on its way here, even if its markers are not there yet.
        found |= await admin.list_offsets(inner)
        return {tp: each.offset for tp, each in found.items()}

    def is_committed(self) -> bool:
        """Whether the tasks stand still at their last commit."""
        return self.is_running and not self._committer.under_way and not self._needs_commit()

    @property
    def may_wait_for_its_commit(self) -> bool:
        """Whether a transaction is open here and there is nothing else to do: what was sent in it to
        repartition topics can be read once it is committed.
        """
        return self._committer.has_open and not any(running.task.has_input for running in self.tasks.values())

    def metrics(self) -> dict[str, NodeMetrics]:
        """Counters by node, over all tasks this instance has had."""
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
"""Why a transaction fails that would fail again."""


def _is_retriable(error: Exception) -> bool:
    """Whether trying again may help."""
    if isinstance(error, TransactionError):
        return error.code not in _FOR_GOOD
    if isinstance(error, KafkaError):
        return error.retriable or isinstance(error, RebalanceNeeded)
    return isinstance(error, TaskLost | StateCorrupted | ConnectionClosed | RequestTimedOut)
