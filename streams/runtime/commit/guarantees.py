"""``processing.guarantee``: when a commit has happened, at least once or exactly once.

At least once, the commit is the group's OffsetCommit, which one append makes true or not; it follows when
output and changelogs are acknowledged. Exactly once, it is the end of the transaction that holds output,
changelogs and positions (KIP-447).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from kafka_client import BatchProducer, GroupMember, OffsetAndMetadata, TopicPartition
from kafka_client.errors import AbortableTransactionError, ErrorCode
from streams.runtime.commit.changelog_writer import SentBatch
from streams.runtime.commit.output import Output, SentRecords
from streams.runtime.commit.positions import commit_offsets, equally_long
from streams.runtime.commit.transactions import Transactions
from streams.runtime.task.running import RunningTask
from streams.runtime.task.task import Flush

OFFSET_BYTES = 200
"""About what an offset takes in the group's log and in a request, besides topic, group and note."""
PART_BYTES = 256 * 1024
"""About the largest OffsetCommit, unless one task alone needs a larger one: what a broker takes at once is
bounded by ``max.message.bytes`` of its offsets topic, 1 MiB unless set.
"""

Offsets = dict[TopicPartition, OffsetAndMetadata]


def bytes_of(offsets: Offsets) -> int:
    """About what they take in the group's log and in a request."""
    return sum(OFFSET_BYTES + len(tp.topic) + len(each.metadata) for tp, each in offsets.items())


@dataclass(frozen=True, slots=True)
class Commit:
    """What one commit holds: where tasks stood, and what was sent.

    `epochs`: of inputs, the leader epoch of the record before the position, so that truncation is noticed
    (KIP-320).
    """

    flushes: Sequence[tuple[RunningTask, Flush]]
    changes: Sequence[SentBatch]
    output: Sequence[SentRecords]
    epochs: Mapping[TopicPartition, int]

    def by_task(self) -> Iterator[tuple[RunningTask, Offsets]]:
        """Return the offsets to commit for each task. Call it once `RunningTask.ends` is past the changes."""
        for running, flush in self.flushes:
            positions, times, kinds = flush.positions, flush.times, running.kinds
            offsets = commit_offsets(positions, running.ends, times, running.changelogs, kinds)
            epochs = self.epochs
            yield (
                running,
                {tp: each._replace(leader_epoch=epochs.get(tp, -1)) for tp, each in offsets.items()},
            )

    def offsets(self) -> Offsets:
        """Return the offsets to commit for all tasks together."""
        return {tp: each for _, offsets in self.by_task() for tp, each in offsets.items()}

    def parts(self) -> Iterator[Offsets]:
        """Return the offsets to commit in requests a broker takes. A task's offsets stay together."""
        part: Offsets = {}
        size = 0
        for _, offsets in self.by_task():
            offsets = equally_long(offsets)
            added = bytes_of(offsets)
            if part and size + added > PART_BYTES:
                yield part
                part, size = {}, 0
            part |= offsets
            size += added
        if part:
            yield part


class Guarantee(Protocol):
    """How a commit that was sent comes to its end."""

    @property
    def has_open(self) -> bool:
        """Whether there is a transaction to be committed, whatever tasks have done."""
        ...

    @property
    def is_overdue(self) -> bool:
        """Whether that has to be soon."""
        ...

    async def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Go on with the commit in the background; the future is done when it has happened."""
        ...

    async def abandon(self) -> None:
        """The commit under way is nobody's any more: return when it is known not to happen later."""
        ...

    async def recover(self) -> None:
        """Leave nothing open of what was abandoned; tasks are opened next."""
        ...


class AtLeastOnce:
    """Output may be written twice; state counts once (see `commit`)."""

    has_open = is_overdue = False

    def __init__(self, producer: BatchProducer, member: GroupMember, output: Output) -> None:
        self._producer = producer
        self._member = member
        self._output = output
        self._committing: asyncio.Task[None] | None = None
        self._sends_offsets = False

    async def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Acknowledgements, then OffsetCommit."""
        self._committing = asyncio.create_task(self._commit(commit), name="streams-commit")
        return self._committing

    async def _commit(self, commit: Commit) -> None:
        await self._producer.flush()
        await asyncio.gather(*(each.ack for each in commit.changes), return_exceptions=True)
        await self._output.settle(commit.output)
        for each in commit.changes:
            await each.check_landing()
        self._sends_offsets = True
        try:
            for offsets in [*commit.parts()]:
                await self._member.commit(offsets)
        finally:
            self._sends_offsets = False

    async def abandon(self) -> None:
        """Once OffsetCommit is on its way it is waited for: restored tasks must not be older than it."""
        committing, self._committing = self._committing, None
        if committing is not None:
            if not self._sends_offsets:
                committing.cancel()
            await asyncio.wait([committing])
            if not committing.cancelled():
                committing.exception()  # it was told already, or its end does not matter any more

    async def recover(self) -> None:
        """There is nothing open."""


class ExactlyOnce:
    """One transaction for all of a commit; the group's coordinator fences it by the member's generation."""

    def __init__(self, transactions: Transactions, member: GroupMember) -> None:
        self._transactions = transactions
        self._member = member

    @property
    def has_open(self) -> bool:
        """Whether a transaction is open: what a schedule sent is in one, too."""
        return self._transactions.is_open

    @property
    def is_overdue(self) -> bool:
        """Whether it has been open for long."""
        return self._transactions.is_overdue

    async def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Acknowledgements, TxnOffsetCommit, EndTxn."""

        def offsets() -> Offsets:
            _note_landings(commit.changes)
            return commit.offsets()

        return await self._transactions.commit_soon(offsets, self._member.group_metadata())

    async def abandon(self) -> None:
        """What becomes of it is known once the next transaction can begin, so to `recover`."""
        self._transactions.abandon()

    async def recover(self) -> None:
        """Abort what is open, or begin with a new producer."""
        await self._transactions.recover()


def _note_landings(changes: Sequence[SentBatch]) -> None:
    """Where the changes ended in their changelogs. Nobody can tell before: the markers of transactions take
    offsets, and so does what an instance has written that has lost the task and cannot commit.
    """
    for each in changes:
        offset = each.ack.result()
        if offset is None:  # a retry found the batch in the log and its offset forgotten
            tp = each.running.changelogs[each.store]
            raise AbortableTransactionError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"where a batch is in {tp} is not known"
            )
        each.running.ends[each.store] = offset + each.count
