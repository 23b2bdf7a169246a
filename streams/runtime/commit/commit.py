"""Commits: how a task's positions and state move forward together, without double counting.

For each task, in this order:

1. Drain the stores: cached tables forward their changes, the changed entries are serialized.
2. Send everything, output and changelogs, and wait until the broker has acknowledged all of it.
3. Commit the input positions to the group, and the offset in each changelog after this commit's records.
   At least once, one OffsetCommit has all of a task's offsets, and is one append. Exactly once, the end of
   the transaction commits all of 2 and 3. This is the point at which the commit happens or does not.
4. Write the changes to the stores' backends, each with its changelog offset.

Commits are pipelined: `begin` does 1 and sends, the tasks go on, and `finish` does 4 when 2 and 3 are over.
At most one commit is under way (COMMITS_UNDER_WAY_MAX), and the next one fills meanwhile. The stores keep
the changes under way in memory, readable, and apart from later changes. If a commit fails, all tasks are
restored, and their later work is lost with it.

A kill before 3 leaves records in the changelogs after the committed offset. Restore undoes them, or skips
them if they belong to a transaction, and the inputs are read again from the committed positions. So an
aggregate counts every input record once, whatever happens. At least once, output records may be written
twice, and so counted twice after a repartition topic. A kill between 3 and 4 costs time only: the backends
are restored from their older checkpoints. State on disk is never ahead of 3.

Another member may still write to a changelog if it does not know yet that it lost the task. Then this
member's next records do not get the expected offsets, and the task is restored (TaskLost) instead of
committed. Exactly once needs no such check: the other member's transaction is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from kafka_client import GroupMember, TopicPartition
from kafka_client.errors import KafkaError, RequestTimedOut
from streams.runtime.commit.changelog_writer import ChangelogWriter, SentBatch
from streams.runtime.commit.guarantees import Commit, Guarantee
from streams.runtime.commit.output import Output
from streams.runtime.commit.refusals import Limit, refused_for_size
from streams.runtime.task.running import RunningTask
from streams.runtime.task.task import Flush
from streams.runtime.threads.worker import Worker

COMMITS_UNDER_WAY_MAX = 1
"""The number of commits that may be sent and unfinished, beside the one that is being filled."""


class Committer:
    """The commits of tasks, one after the other. After any error `abandon`, and restore all tasks.

    From `begin` until a commit is over the member keeps its generation, for ``hold_max_ms`` at most: after a
    rebalance the group would refuse the commit. ``metadata_limit`` returns how long a note may be.

    Raises TaskLost if a changelog has another member's records; RebalanceNeeded if the group has a later
    generation; KafkaError or RequestTimedOut if the brokers cannot be reached, or refuse records;
    TransactionError if the transaction cannot be committed; CommitRefused if a task's commit is too large,
    and always will be.
    """

    def __init__(
        self,
        guarantee: Guarantee,
        changelogs: ChangelogWriter,
        member: GroupMember,
        output: Output,
        worker: Worker,
        *,
        hold_max_ms: int,
        metadata_limit: Limit,
    ) -> None:
        self._guarantee = guarantee
        self._changelogs = changelogs
        self._member = member
        self._output = output
        self._worker = worker
        self._hold_max = hold_max_ms / 1000
        self._metadata_limit = metadata_limit
        self._hold = ExitStack()
        self._commit: Commit | None = None
        self._begun_at = 0.0
        self.outcome: asyncio.Future[None] | None = None
        """The outcome of the commit under way: done when the commit has happened, or has failed."""

    @property
    def under_way(self) -> int:
        """The number of commits under way, at most COMMITS_UNDER_WAY_MAX."""
        return self._commit is not None

    @property
    def has_open(self) -> bool:
        """True if a transaction is open. It needs a commit even if no task has anything to commit."""
        return self._guarantee.has_open

    @property
    def is_overdue(self) -> bool:
        """True if a commit must be made soon, before the coordinator ends the open transaction."""
        return self._guarantee.is_overdue

    async def begin(
        self, tasks: Iterable[RunningTask], leader_epoch: Callable[[TopicPartition, int], int]
    ) -> None:
        """Drain these tasks and send all as one commit; `finish` it when `outcome` is done."""
        assert self._commit is None, "one commit at a time"
        self._begun_at = time.monotonic()
        hold = self._hold = self._hold_generation()
        flushes: list[tuple[RunningTask, Flush]] = []
        sent: list[SentBatch] = []
        epochs: dict[TopicPartition, int] = {}
        for running in tasks:
            flush = await self._worker.run(running.task.flush)
            flushes.append((running, flush))
            await self._member.confirm()
            await self._output.send(running)
            running.has_sent = False
            for store, pending in flush.changes.items():
                if store in running.changelogs:
                    sent += await self._changelogs.send(running, store, pending)
            epochs.update({tp: leader_epoch(tp, offset) for tp, offset in flush.positions.items()})
        self._commit = Commit(flushes, sent, self._output.take_sent(), epochs)
        self.outcome = await self._guarantee.commit(self._commit)
        self.outcome.add_done_callback(lambda _: hold.close())

    def _hold_generation(self) -> ExitStack:
        """Delay rebalances until the returned stack is closed, for ``hold_max_ms`` at most."""
        hold = ExitStack()
        if not self._member.is_joining:
            hold.enter_context(self._member.holding_generation())
            timer = asyncio.get_running_loop().call_later(self._hold_max, hold.close)
            hold.callback(timer.cancel)
        return hold

    async def finish(self) -> list[RunningTask]:
        """Wait for the commit under way and write it to the backends. Return its tasks."""
        if self._commit is None or self.outcome is None:
            return []
        await asyncio.wait([self.outcome])
        try:
            self.outcome.result()
        except KafkaError as error:
            refused = await refused_for_size(error, self._commit, self._metadata_limit)
            if refused is None:
                raise
            raise refused from error
        for running, flush in self._commit.flushes:
            await self._worker.run(running.task.written, flush, running.checkpoints(flush.positions))
            running.cuts.update(running.ends)
        committed = [running for running, _ in self._commit.flushes]
        self._commit = self.outcome = None
        return committed

    @property
    def seconds(self) -> float:
        """The time since the last commit was begun, s."""
        return time.monotonic() - self._begun_at

    async def abandon(self) -> None:
        """Forget the commit under way and all later sends, because the tasks are dropped."""
        self._commit = self.outcome = None
        self._hold.close()
        self._output.take_sent()
        await self._guarantee.abandon()

    async def recover(self) -> None:
        """End the abandoned commit, before tasks are restored."""
        await self._guarantee.recover()


def late(limit_ms: int) -> RequestTimedOut:
    """Return the error of a commit that took longer than ``limit_ms``."""
    return RequestTimedOut(f"the commit was not over within {limit_ms} ms")
