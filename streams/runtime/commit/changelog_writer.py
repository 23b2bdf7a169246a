"""Sending a store's changes to its changelog: builds batches and checks the offsets that they get."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from kafka_client.records import NewRecord, build_batch, estimate_sizes
from streams.errors import TaskLost
from streams.runtime.commit.producing import Producer
from streams.runtime.restore.previous_value_header import with_previous
from streams.runtime.task.running import RunningTask
from streams.runtime.threads.worker import Worker
from streams.state import Pending

BATCH_OVERHEAD = 200
"""Bytes kept free in a batch for its header."""

BATCH_MAX = 1_000_000
"""No batch of several records is larger, whatever max.request.size says: topics take so much by default."""

ESTIMATED_MAX = 1.5
"""The estimated size of records, as a multiple of the room in a batch, up to which one batch is tried.

Estimates are upper bounds, a third too high for small records, and more so with compression.
"""

Batch = tuple[int, bytes]
"""The number of records in a batch, and the batch."""


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch on its way to a changelog. `expected`: its offset if no other member writes there."""

    running: RunningTask
    store: str
    expected: int
    count: int
    ack: asyncio.Future[int | None]

    async def check_landing(self) -> None:
        """Raise TaskLost if the batch was not appended at the expected offset."""
        offset = await self.ack
        # None: a retry found the batch in the log and its offset forgotten.
        if offset is not None and offset != self.expected:
            raise TaskLost(
                f"task {self.running.task.id}: {self.running.changelogs[self.store]} has another member's "
                f"records at offset {self.expected}"
            )


class ChangelogWriter:
    """The writer to all changelogs.

    ``undoable`` is True without transactions: then records of a commit of several batches, or after a failed
    commit, have a header with the previous value of their key (see `previous_value_header`).
    """

    def __init__(self, producer: Producer, worker: Worker, *, undoable: bool) -> None:
        self._producer = producer
        self._worker = worker
        self._undoable = undoable

    async def send(self, running: RunningTask, store: str, pending: Pending) -> list[SentBatch]:
        """Send one store's changes, in one batch if they fit."""
        topic, partition = running.changelogs[store]
        sent: list[SentBatch] = []
        for count, batch in await self._worker.run(self._build, running, store, pending):
            ack = await self._producer.send_batch(topic, partition, batch)
            sent.append(SentBatch(running, store, running.ends[store], count, ack))
            running.ends[store] += count
        return sent

    def _build(self, running: RunningTask, store: str, pending: Pending) -> list[Batch]:
        records: list[NewRecord] = [(timestamp, key, raw, ()) for key, (raw, timestamp) in pending.items()]
        sizes, codec = estimate_sizes(records), self._producer.codec
        room = min(self._producer.max_request_size, BATCH_MAX) - BATCH_OVERHEAD
        repairs = running.ends[store] > running.cuts[store]
        if room < sum(sizes) <= ESTIMATED_MAX * room and not repairs:
            whole = build_batch(records, codec=codec)
            if len(whole) <= room:
                return [(len(records), whole)]
        if self._undoable and (repairs or sum(sizes) > room):
            cached = running.task.stores[store]
            cut, get, new = running.cuts[store], cached.backend.get, () if repairs else cached.pending_new
            absent = with_previous(cut, None)
            records = [
                record
                if key in new
                else (*record[:3], absent if (stored := get(key)) is None else with_previous(cut, stored))
                for key, record in zip(pending, records, strict=True)
            ]
            sizes = estimate_sizes(records)
        return [(len(batch), build_batch(batch, codec=codec)) for batch in _in_batches(records, sizes, room)]


def _in_batches(records: list[NewRecord], sizes: list[int], room: int) -> Iterator[list[NewRecord]]:
    """Yield batches of at most ``room`` bytes. A larger record is a batch of its own."""
    if records and sum(sizes) <= room:
        yield records
        return
    batch: list[NewRecord] = []
    size = 0
    for record, cost in zip(records, sizes, strict=True):
        if batch and size + cost > room:
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += cost
    if batch:
        yield batch
