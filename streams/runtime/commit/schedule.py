"""When tasks are committed: at an interval, on request, or before memory, sends or a transaction run out.

How a commit is made is in `commit`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from kafka_client import GroupMember, TopicPartition
from kafka_client.metrics.windowed import Windowed
from streams.runtime.application import Application
from streams.runtime.commit.commit import Committer, late
from streams.runtime.commit.output import Output
from streams.runtime.commit.purge import Purges
from streams.runtime.task.running import RunningTask
from streams.runtime.task_id import TaskId


class CommitSchedule:
    """The commits of the tasks in `tasks`, to which the loop adds and from which it removes."""

    def __init__(
        self,
        application: Application,
        member: GroupMember,
        *,
        committer: Committer,
        output: Output,
        purges: Purges,
        leader_epoch: Callable[[TopicPartition, int], int],
    ) -> None:
        self.tasks: dict[TaskId, RunningTask] = {}
        self.durations = Windowed()
        """The time from the beginning to the end of each commit, s."""
        self.committer = committer
        self.output = output
        self._config = application.config
        self._clock = application.clock
        self._member = member
        self._purges = purges
        self._leader_epoch = leader_epoch
        self._draining = False
        self._due_at = self._clock() + self._config.commit_every_ms

    def request(self) -> None:
        """Commit in the next turn."""
        self._due_at = self._clock()

    def wait_ms(self) -> int:
        """Return how long to wait for records: until the next commit, if there is anything to commit."""
        left = self._due_at - self._clock()
        waits = self.committer.under_way or self._member.is_joining or self._draining
        if waits or left >= self._config.poll_ms or not self.needs_commit():
            return self._config.poll_ms
        return max(left, 1)

    async def after_turn(self) -> None:
        """Make the commits and the deletions that are due after a turn of all tasks."""
        if any(running.task.wants_commit for running in self.tasks.values()) and not self.committer.under_way:
            self.request()
        await self.commit_if_due()
        self._purges.start_if_due()

    async def commit_if_due(self) -> None:
        """Finish the commit under way if its outcome is known, and begin the next one if it is due.

        A commit that is only due waits for the one before it while the tasks go on. If one must be made at
        once, the loop waits for the one before it.
        """
        outcome = self.committer.outcome
        if outcome is not None and (outcome.done() or self._must_commit()):
            await self.finish()
        if self.committer.under_way:
            return  # The time may have run out between two looks at the clock; the next turn commits.
        is_due = self._clock() >= self._due_at and not self._is_draining()
        if is_due or self._must_commit():
            await self._begin_in_time()
            if not self.committer.under_way:
                self._shrink_full_caches()  # The caches are full of entries that were only read.

    def _is_draining(self) -> bool:
        """Return True if a commit waits for coroutines. Only tasks with coroutines stop taking input then.

        A commit that must be made at once waits for the coroutines in the tasks' thread instead.
        """
        tasks = [running.task for running in self.tasks.values()]
        # A rebalance may take long, and no commit is begun during one.
        self._draining = not self._member.is_joining and any(task.held_records for task in tasks)
        for task in tasks:
            task.takes_input = not self._draining
        return self._draining

    def _must_commit(self) -> bool:
        """Return True if uncommitted work has reached a bound: of memory, of sends, or of time."""
        return self.is_full or self.committer.is_overdue

    @property
    def is_full(self) -> bool:
        """True if caches or sends have reached their bound, so that only a commit makes room."""
        return self._is_cache_full() or self.output.is_full

    def _is_cache_full(self) -> bool:
        return self.cache_bytes() > self._config.statestore_cache_max_bytes

    def cache_bytes(self) -> int:
        """Return about how many bytes the caches of all stores take."""
        return sum(running.task.cache_bytes for running in self.tasks.values())

    def needs_commit(self) -> bool:
        """Return True if anything happened since the last commit was begun."""
        return self.committer.has_open or any(running.needs_commit for running in self.tasks.values())

    def is_committed(self) -> bool:
        """Return True if everything is committed."""
        return not self.committer.under_way and not self.needs_commit()

    @property
    def waits_for_itself(self) -> bool:
        """True if a transaction is open and no task has input: the next input may be records in repartition
        topics that can be read after the commit.
        """
        return self.committer.has_open and not any(running.task.has_input for running in self.tasks.values())

    async def _begin(self) -> None:
        """Send what changed; the tasks go on meanwhile. Does nothing while the group rebalances.

        During a rebalance only a transaction that the coordinator is about to end is committed. The group
        accepts its offsets until the next generation begins.
        """
        if self._member.is_joining and not self.committer.is_overdue:
            return
        self._due_at = self._clock() + self._config.commit_every_ms
        self._draining = False
        for running in self.tasks.values():
            running.task.takes_input = True
        changed = [running for running in self.tasks.values() if running.needs_commit]
        if changed or self.committer.has_open:
            await self.committer.begin(changed, self._leader_epoch)

    async def _begin_in_time(self) -> None:
        """Begin a commit, and wait for coroutines no longer than an open transaction allows.

        Raises RequestTimedOut if coroutines are not over by then.
        """
        waits_for_calls = any(running.task.held_records for running in self.tasks.values())
        limit_ms = self._config.revoke_timeout_ms // 2  # It has been open for the other half.
        try:
            async with asyncio.timeout(limit_ms / 1000 if waits_for_calls else None):
                await self._begin()
        except TimeoutError:
            raise late(limit_ms) from None

    async def finish(self) -> None:
        """Wait for the commit under way, if there is one, and write its changes to the stores' backends."""
        if not self.committer.under_way:
            return
        committed = await self.committer.finish()
        self.durations.record(self.committer.seconds)
        for running in committed:
            self._purges.committed(running)
        self._shrink_full_caches()

    def _shrink_full_caches(self) -> None:
        """Drop cached entries that the stores' backends have too. No commit may be under way."""
        if self._is_cache_full():
            for running in self.tasks.values():
                running.task.shrink()

    async def commit_all(self) -> None:
        """Commit what changed and wait until that has happened.

        Raises RequestTimedOut after ``revoke_timeout_ms``.
        """
        limit_ms = self._config.revoke_timeout_ms
        try:
            async with asyncio.timeout(limit_ms / 1000):
                await self.finish()
                await self._begin()
                await self.finish()
        except TimeoutError:
            raise late(limit_ms) from None

    async def close(self) -> None:
        """Cancel the deletions under way; commit before."""
        await self._purges.close()
