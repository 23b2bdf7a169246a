"""Commits: how a task's positions and state move forward together, at least once and without double counting.

For each task, in this order:

1. Drain the stores: cached tables forward their changes, the changed entries are serialized.
2. Send everything, output and changelogs, and wait until the broker has acknowledged all of it.
3. Commit the input positions to the group, with a note that has each changelog's offset behind this commit.
   One OffsetCommit is one append, so this is the point at which the commit happens or does not.
4. Write the changes to the stores' backends, each with its changelog offset.

A kill before 3 leaves records in the changelogs behind the committed offset. Restore undoes them, and the
inputs are read again from the committed positions. So an aggregate counts every input record once, whatever
happens; what is written to output topics may be written twice. A kill between 3 and 4 costs time only: the
backends are restored from their older checkpoints. State on disk is never ahead of 3.

This holds within a sub-topology. A repartition topic is an output like any other: what was sent there in a
commit that broke off is sent again, and counted again behind it (transactions will mend that).

Should another member write to a changelog of ours (a slow one that does not know yet that it lost the task),
our next records do not get the offsets expected; the task is then restored (TaskLost) instead of committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from logd.client import BatchProducer, GroupMember, OffsetAndMetadata, TopicPartition
from logd.records import NewRecord, build_batch, estimate_size
from streams.errors import TaskLost
from streams.runtime.output import Output
from streams.runtime.positions import commit_offsets
from streams.runtime.running import RunningTask
from streams.runtime.task import Flush
from streams.runtime.undo import with_previous
from streams.runtime.worker import Worker
from streams.state import Pending

BATCH_OVERHEAD = 200
"""Bytes kept free in a batch for its header."""

BATCH_MAX = 1_000_000
"""No batch of several records is larger, whatever max.request.size says: topics take so much by default."""

Batch = tuple[int, bytes]
"""Number of records, and the batch built of them."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """One batch on its way to a changelog, and the offset it must get."""

    running: RunningTask
    store: str
    expected: int
    ack: asyncio.Future[int | None]


class Committer:
    """Commits tasks through one producer and one group member."""

    def __init__(self, producer: BatchProducer, member: GroupMember, output: Output, worker: Worker) -> None:
        self._producer = producer
        self._member = member
        self._output = output
        self._worker = worker

    async def commit(
        self, tasks: Iterable[RunningTask], leader_epoch: Callable[[TopicPartition, int], int]
    ) -> None:
        """Commit these tasks, with one OffsetCommit for all of them. Whatever is raised, restore them all.

        ``leader_epoch`` of the record before an offset goes with it, so that truncation is noticed (KIP-320).

        TaskLost: a changelog has another member's records. RebalanceNeeded: the group has moved on.
        KafkaError, RequestTimedOut: the brokers cannot be reached, or refuse what was sent.
        """
        flushes: list[tuple[RunningTask, Flush]] = []
        sent: list[_Sent] = []
        for running in tasks:
            flush = await self._worker.run(running.task.flush)
            flushes.append((running, flush))
            await self._member.confirm()
            await self._output.send(running)
            for store, pending in flush.changes.items():
                if store in running.changelogs:
                    sent += await self._send_changes(running, store, pending)
        await self._producer.flush()
        await asyncio.gather(*(each.ack for each in sent), return_exceptions=True)
        await self._output.wait_for_acks()
        for each in sent:
            await _check_landing(each)
        offsets: dict[TopicPartition, OffsetAndMetadata] = {}
        for running, flush in flushes:
            offsets.update(commit_offsets(flush.positions, running.ends, flush.times, running.changelogs))
        if offsets:
            await self._member.commit(
                {
                    tp: each._replace(leader_epoch=leader_epoch(tp, each.offset))
                    for tp, each in offsets.items()
                }
            )
        for running, flush in flushes:
            await self._worker.run(running.task.written, flush, running.ends)
            running.cuts.update(running.ends)

    async def _send_changes(self, running: RunningTask, store: str, pending: Pending) -> list[_Sent]:
        """Send one store's changes, in one batch if they fit."""
        topic, partition = running.changelogs[store]
        sent: list[_Sent] = []
        for count, batch in await self._worker.run(self._build, running, store, pending):
            ack = await self._producer.send_batch(topic, partition, batch)
            sent.append(_Sent(running, store, running.ends[store], ack))
            running.ends[store] += count
        return sent

    def _build(self, running: RunningTask, store: str, pending: Pending) -> list[Batch]:
        records: list[NewRecord] = [(timestamp, key, raw, ()) for key, (raw, timestamp) in pending.items()]
        room = min(self._producer.max_request_size, BATCH_MAX) - BATCH_OVERHEAD
        if sum(map(estimate_size, records)) > room:
            cut, get = running.cuts[store], running.task.stores[store].backend.get
            records = [
                (timestamp, key, raw, with_previous(cut, get(key)))
                for key, (raw, timestamp) in pending.items()
            ]
        codec = self._producer.codec
        return [(len(batch), build_batch(batch, codec=codec)) for batch in _in_batches(records, room)]


async def _check_landing(sent: _Sent) -> None:
    """The batch must have been appended at the log end this task knows of."""
    offset = await sent.ack
    # None: a retry found the batch in the log and its offset forgotten.
    if offset is not None and offset != sent.expected:
        raise TaskLost(
            f"task {sent.running.task.id}: {sent.running.changelogs[sent.store]} has another member's "
            f"records at offset {sent.expected}"
        )


def _in_batches(records: list[NewRecord], room: int) -> Iterator[list[NewRecord]]:
    """Batches of at most ``room`` bytes; a record that is larger stands alone, for the producer to refuse."""
    batch: list[NewRecord] = []
    size = 0
    for record in records:
        cost = estimate_size(record)
        if batch and size + cost > room:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += cost
    if batch:
        yield batch
