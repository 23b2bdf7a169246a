"""``processing.guarantee``: when a commit has happened, at least once or exactly once.

At least once, the commit is the group's OffsetCommit, which is one append; it is sent when output and
changelogs are acknowledged. Exactly once, the commit is the end of the transaction with output, changelogs
and positions (KIP-447).
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
"""The approximate size of an offset in the group's log and in a request, without topic, group and note."""
PART_BYTES = 256 * 1024
"""The approximate limit of one OffsetCommit, unless a single task needs a larger one.

A broker's limit is ``max.message.bytes`` of its offsets topic, by default 1 MiB.
"""

Offsets = dict[TopicPartition, OffsetAndMetadata]


def bytes_of(offsets: Offsets) -> int:
    """Return the approximate size of the offsets in the group's log and in a request."""
    return sum(OFFSET_BYTES + len(tp.topic) + len(each.metadata) for tp, each in offsets.items())


@dataclass(frozen=True, slots=True)
class Commit:
    """The content of one commit: the positions of tasks, and the batches and records sent.

    `epochs` has the leader epoch of the record before each input's position, to detect truncation (KIP-320).
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
        """Return the offsets to commit, in parts that a broker accepts. A task's offsets stay together."""
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
    """The way in which a commit that was sent is completed."""

    @property
    def has_open(self) -> bool:
        """True if a transaction is open. It needs a commit even if no task has anything to commit."""
        ...

    @property
    def is_overdue(self) -> bool:
        """True if the open transaction must be committed soon."""
        ...

    async def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Complete the commit in the background; the future is done when it has happened."""
        ...

    async def abandon(self) -> None:
        """Give up the commit under way. Return when it has happened, or can no longer happen."""
        ...

    async def recover(self) -> None:
        """End the abandoned commit, before tasks are opened."""
        ...


class AtLeastOnce:
    """The guarantee that output is written at least once; state counts each record once (see `commit`)."""

    has_open = is_overdue = False

    def __init__(self, producer: BatchProducer, member: GroupMember, output: Output) -> None:
        self._producer = producer
        self._member = member
        self._output = output
        self._committing: asyncio.Task[None] | None = None
        self._sends_offsets = False

    async def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Wait for acknowledgements, then send OffsetCommit, in the background."""
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
        """Cancel the commit, or wait for it once OffsetCommit is sent: restored tasks must not be older."""
        committing, self._committing = self._committing, None
        if committing is not None:
            if not self._sends_offsets:
                committing.cancel()
            await asyncio.wait([committing])
            if not committing.cancelled():
                committing.exception()  # Marks the error as retrieved: it was raised, or no longer matters.

    async def recover(self) -> None:
        """Return at once: there is no transaction to end."""


class ExactlyOnce:
    """The guarantee of one transaction per commit. The coordinator fences it by the member's generation."""

    def __init__(self, transactions: Transactions, member: GroupMember) -> None:
        self._transactions = transactions
        self._member = member

    @property
    def has_open(self) -> bool:
        """True if a transaction is open, even one in which only a punctuator has sent records."""
        return self._transactions.is_open

    @property
    def is_overdue(self) -> bool:
        """True if the transaction has been open for long."""
        return self._transactions.is_overdue

    async def commit(self, commit: Commit) -> asyncio.Future[None]:
        """Wait for acknowledgements, then send TxnOffsetCommit and EndTxn, in the background."""

        def offsets() -> Offsets:
            _note_landings(commit.changes)
            return commit.offsets()

        return await self._transactions.commit_soon(offsets, self._member.group_metadata())

    async def abandon(self) -> None:
        """Give up the open transaction; `recover` waits for its end."""
        self._transactions.abandon()

    async def recover(self) -> None:
        """Abort the open transaction, or start a new producer."""
        await self._transactions.recover()


def _note_landings(changes: Sequence[SentBatch]) -> None:
    """Set the log end of each changelog to the offset after its last change.

    The offset is unknown before the acknowledgement: markers of transactions take offsets, and so do records
    of an instance that has lost the task and cannot commit.

    Raises AbortableTransactionError if the broker forgot the offset of a batch.
    """
    for each in changes:
        offset = each.ack.result()
        if offset is None:  # The broker found a retried batch in its log, but has forgotten the offset.
            tp = each.running.changelogs[each.store]
            raise AbortableTransactionError(
                ErrorCode.UNKNOWN_SERVER_ERROR, f"where a batch is in {tp} is not known"
            )
        each.running.ends[each.store] = offset + each.count
