"""Restoring a task's stores to its last commit.

The committed offsets have the positions of the task's inputs and the changelog offsets that belong to them
(`runtime.commit.positions`): the *cut*. Records after the cut belong to a failed commit, and are not valid.
So a store is restored from its checkpoint to the cut, not to the log end:

    log start ... checkpoint ........ cut ......... log end
                  |--- applied ------|--- undone ---|

The next commit writes the values at the cut of the tail's keys to the changelog again. Otherwise a later
restore from the log start would end with the tail's values. Compaction may have removed the record with the
value at the cut. So if a commit has several batches, its records carry the previous values of their keys
(`previous_value_header`).

Records of aborted transactions are skipped, so a commit that failed exactly once leaves nothing to undo. A
store is then read to the cut, and on to the last stable offset. An instance that ran at least once before may
have left a tail there. The changelog is not read to the log end. A transaction that is open there belongs to
a member that lost the task, and will be aborted: all transactions of committed positions have ended. Their
markers may still be on their way, so restore waits for the cut itself.

A changelog is compacted, and after ``delete.retention.ms`` compaction removes tombstones as well. Older local
state would miss those deletions. So local state is not used if it may be that old. Nor is it used if its
checkpoint lies before the log start or in an earlier topic of that name. Then everything is restored, from
the log start.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Protocol

from kafka_client import Admin, BatchFetcher, Client, Fetched, TopicPartition
from kafka_client.errors import KafkaError, OffsetOutOfRange, UnreadableBatch
from kafka_client.fetcher.parts import reading
from kafka_client.records import Headers, Record, RecordReader, check_crc
from streams.errors import StateError
from streams.runtime.restore.previous_value_header import previous_of
from streams.runtime.task.environment import Clock
from streams.runtime.threads.worker import Worker
from streams.state import Backend, CachedStore
from streams.state.cache import join

log = logging.getLogger(__name__)

DELETE_RETENTION = "delete.retention.ms"
MAX_FETCH_BYTES = 8 * 1024 * 1024
FETCHED_AHEAD_BYTES = 2 * MAX_FETCH_BYTES
"""The bound on fetched bytes that are not applied yet, per task."""
PART_BYTES = 1024 * 1024
PART_RECORDS = 20_000
"""The number of records written to a store at once: more would not fit the processor's cache."""
USABLE_SHARE = 0.9
"""The share of ``delete.retention.ms`` up to which local state is used: clocks differ, restores take time."""

Convert = Callable[[int, bytes, bytes | None], Mapping[bytes, bytes | None]]
"""Returns the store's entry for a record's timestamp (ms), key and value, or no entry."""


@dataclass(slots=True)
class StoreRestore:
    """The restore of one store: applies records from `position` to `cut`, and undoes those up to `end`."""

    store: CachedStore
    position: int
    cut: int
    end: int
    undone: dict[bytes, bytes | None]
    restored: int = 0

    as_of: int | None = None
    """The time (wall clock, ms) just before the log end was read."""
    converted: Convert | None = None
    """Converts records to entries, if the store is restored from an input; None for a changelog."""

    def start_over(self, start: int, topic_id: bytes) -> None:
        """Delete the local state, to restore everything from the log start."""
        self.store.backend.wipe(topic_id)
        self.store.backend.write((), start, self.as_of)
        self.position, self.cut, self.restored = start, max(self.cut, start), 0
        self.undone.clear()

    @property
    def remaining(self) -> int:
        """The number of changelog offsets that are not read yet."""
        return max(self.end - self.position, 0)

    @property
    def is_done(self) -> bool:
        """True if the changelog was read to its end."""
        return self.position >= self.end

    def apply(self, fetched: Fetched) -> None:
        """Apply fetched records; control batches and compaction gaps only move the position.

        Raises StateError at a batch that cannot be read, without asking a handler. Without the batch's
        records the store would have outdated values, and nothing would show it.
        """
        rest: Fetched | None = fetched
        try:
            while rest is not None:
                part, rest = rest.cut(PART_BYTES, PART_RECORDS)
                self._apply_part(part)
        except UnreadableBatch as error:
            raise StateError(
                f"store {self.store.name} cannot be restored: in its changelog {fetched.tp} the batch of "
                f"offsets {error.first_offset} to {error.last_offset} cannot be read: {error.reason}. Make a "
                "replica that has the batch the leader, or reset the application to rebuild the state"
            ) from error
        self.store.restored()

    def _apply_part(self, fetched: Fetched) -> None:
        updates: dict[bytes, bytes | None] = {}
        for header, batch in fetched.batches():
            whole = fetched.position <= header.base_offset and header.next_offset <= min(self.cut, self.end)
            with reading(fetched.tp, header):
                check_crc(batch, 0, header)
                reader = RecordReader(batch, 0, header)
                if whole and self.converted is None and header.count <= PART_RECORDS:
                    self.restored += reader.latest(updates)
                while records := reader.records(PART_RECORDS):
                    self._apply_each(records, fetched.position, updates)
                    if reader.remaining:
                        # A compressed batch may hold more records than fit the memory.
                        self.position = max(records[-1][0] + 1, fetched.position)
                        self.store.backend.write(updates.items(), min(self.position, self.cut))
                        updates.clear()
        self.position = fetched.next_offset
        self.store.backend.write(updates.items(), min(self.position, self.cut))

    def _apply_each(
        self, records: Iterable[Record], position: int, updates: dict[bytes, bytes | None]
    ) -> None:
        """Apply the records from `position` on, one by one."""
        for offset, timestamp, key, value, headers in records:
            if key is None or not position <= offset < self.end:
                continue
            if offset < self.cut:
                if self.converted is None:
                    updates[key] = None if value is None else join(value, timestamp)
                else:
                    updates.update(self.converted(timestamp, key, value))
                self.restored += 1
            else:
                self._undo(key, headers, updates)

    def _undo(self, key: bytes, headers: Headers, updates: Mapping[bytes, bytes | None]) -> None:
        """Note the key's value at the cut: from the tail record's header, else from the restored entries."""
        has_previous, previous = previous_of(headers, self.cut)
        if has_previous:
            self.undone[key] = previous
        elif key not in self.undone:
            self.undone[key] = updates[key] if key in updates else self.store.backend.get(key)

    def finish(self) -> None:
        """Set the tail's keys back to their values at the cut."""
        if self.undone:
            log.info("store %s: %d keys of a failed commit undone", self.store.name, len(self.undone))
            self.store.repair(self.undone)
        self.store.backend.write(self.undone.items(), self.cut, self.as_of)


@dataclass(frozen=True, slots=True)
class Source:
    """An input from which a store is restored, up to ``position``, where processing goes on."""

    position: int
    converted: Convert


class RestoreObserver(Protocol):
    """An observer of restores; see `restore_listener`."""

    def started(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """Handle the start of a task's restores."""

    def applied(self, tp: TopicPartition, restore: StoreRestore, records: int) -> None:
        """Handle another batch of applied records."""

    def ended(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """Handle the end of a task's restores."""

    def suspended(self, restores: Mapping[TopicPartition, StoreRestore]) -> None:
        """Handle restores that were cancelled or failed."""


async def restore_stores(
    client: Client,
    stores: Mapping[TopicPartition, CachedStore],
    cut: Mapping[str, int] | None,
    *,
    worker: Worker,
    clock: Clock,
    exactly_once: bool = False,
    restores: dict[TopicPartition, StoreRestore] | None = None,
    observer: RestoreObserver | None = None,
    room: asyncio.Semaphore | None = None,
    sources: Mapping[str, Source] | None = None,
) -> tuple[dict[str, int], dict[str, int]]:
    """Restore each store from its changelog partition. Return the cut and the log end of each, by store.

    ``cut``: see `Cut.changelogs`. ``exactly_once``: do not wait for an open transaction after the cut.
    ``restores``: gets the progress of each restore. ``room``: limits the restores that read at the same time.
    ``sources``: the inputs of stores that are restored from an input.

    Raises StateError if a changelog ends before its cut.
    """
    begun_restores = await begin_restores(
        client, stores, cut, worker=worker, clock=clock, exactly_once=exactly_once, sources=sources
    )
    if restores is not None:
        restores.update(begun_restores)
    if observer is not None:
        observer.started(begun_restores)
    try:
        if not all(each.is_done for each in begun_restores.values()):
            async with room or nullcontext():
                await read_changelogs(client, begun_restores, worker=worker, observer=observer)
        for each in begun_restores.values():
            await worker.run(each.finish)
    except BaseException:
        if observer is not None:
            observer.suspended(begun_restores)
        raise
    if observer is not None:
        observer.ended(begun_restores)
    cuts = {each.store.name: each.cut for each in begun_restores.values()}
    return cuts, {each.store.name: each.end for each in begun_restores.values()}


async def begin_restores(
    client: Client,
    stores: Mapping[TopicPartition, CachedStore],
    cut: Mapping[str, int] | None,
    *,
    worker: Worker,
    clock: Clock,
    exactly_once: bool = False,
    with_tail: bool = True,
    sources: Mapping[str, Source] | None = None,
) -> dict[TopicPartition, StoreRestore]:
    """Return the range of offsets to restore of each store. Deletes local state that cannot be used.

    ``cut``, ``exactly_once``, ``sources``: see `restore_stores`. ``with_tail``: False to stop at the cut.
    Raises StateError if a changelog ends before its cut.
    """
    if not stores:
        return {}
    admin, now = Admin(client), clock()
    starts = await admin.list_offsets(dict.fromkeys(stores, "earliest"))
    ends = await admin.list_offsets(dict.fromkeys(stores, "latest"))
    stable = await admin.list_offsets(dict.fromkeys(stores, "latest"), isolation_level="read_committed")
    topics = (await client.metadata({tp.topic for tp in stores})).topics
    restores: dict[TopicPartition, StoreRestore] = {}
    for tp, store in stores.items():
        start, end = starts[tp].offset, ends[tp].offset
        source = None if sources is None else sources.get(store.name)
        if source is not None:
            end = upto = min(source.position, end)  # Records from the position on will be processed.
        else:
            upto = end if cut is None else cut.get(store.name, start)
            _check_end(tp, upto, end)
            if exactly_once and cut is not None:
                end = max(stable[tp].offset, upto)
        checkpoint, topic_id = store.backend.checkpoint, topics[tp.topic].topic_id
        upto = max(upto, start)
        stop = max(end, upto) if with_tail else upto
        restores[tp] = each = StoreRestore(store, checkpoint or 0, upto, stop, {}, as_of=now)
        each.converted = None if source is None else source.converted
        void = _why_void(store.backend, topic_id, start, upto)
        if not void and checkpoint is not None and checkpoint < upto:
            void = await _why_too_old(admin, tp.topic, store.backend, now)
        if void:
            log.warning("store %s: restoring it all from %s, its local state %s", store.name, tp, void)
        if void or checkpoint is None:
            await worker.run(each.start_over, start, topic_id)
    return restores


def _check_end(tp: TopicPartition, cut: int, end: int) -> None:
    if cut > end:
        raise StateError(
            f"changelog {tp} ends at {end}, but {cut} was committed: records were lost, or the topic "
            "was made anew; reset the application (delete its group and internal topics) to rebuild the state"
        )


def _why_void(backend: Backend, topic_id: bytes, start: int, cut: int) -> str:
    """Return why restore cannot go on from the checkpoint; "" if it can, or if there is none.

    A checkpoint in an earlier topic of that name is from before the application was reset.
    """
    checkpoint = backend.checkpoint
    if checkpoint is None:
        return ""
    if backend.origin != topic_id:
        return "is of an earlier topic of that name"
    if checkpoint > cut:
        return f"at {checkpoint} is ahead of the committed {cut}"
    if checkpoint < start:
        return f"at {checkpoint} lies before the log start {start}"
    return ""


async def _why_too_old(admin: Admin, topic: str, backend: Backend, now: int) -> str:
    """Return why tombstones after the checkpoint may be deleted; "" if all are there.

    The age is unknown if the clock was set back, or if a release wrote the state that did not note the time.
    """
    try:
        configs = await admin.describe_configs(topic, keys=[DELETE_RETENTION])
    except KafkaError as error:
        if error.retriable:
            raise
        return f"has an unknown age: {DELETE_RETENTION} of {topic} cannot be read ({error})"
    retention = int(configs[DELETE_RETENTION].value or 0)
    if backend.as_of is None or backend.as_of > now:
        return f"has an unknown age; {DELETE_RETENTION} is {retention}"
    if now - backend.as_of > USABLE_SHARE * retention:
        return f"is {now - backend.as_of} ms old; {DELETE_RETENTION} is {retention}"
    return ""


async def read_changelogs(
    client: Client,
    restores: Mapping[TopicPartition, StoreRestore],
    *,
    worker: Worker,
    observer: RestoreObserver | None = None,
) -> None:
    """Read each changelog to the end of its restore."""
    restores = {tp: each for tp, each in restores.items() if not each.is_done}
    if not restores:
        return
    fetcher = BatchFetcher(
        client,
        isolation_level="read_committed",
        max_partition_fetch_bytes=MAX_FETCH_BYTES,
        buffer_max_bytes=FETCHED_AHEAD_BYTES,
        fetch_max_wait_ms=100,
    )
    try:
        fetcher.assign({tp: each.position for tp, each in restores.items()})
        while restores:
            try:
                answers = await fetcher.fetch()
            except OffsetOutOfRange as lost:
                tp = TopicPartition(lost.topic, lost.partition)
                if tp in restores:
                    fetcher.seek(tp, await start_over_after_loss(client, tp, restores[tp], worker))
                answers = []
            for fetched in answers:
                each = restores.get(fetched.tp)
                if each is not None:
                    before = each.restored
                    await worker.run(each.apply, fetched)
                    if observer is not None:
                        observer.applied(fetched.tp, each, each.restored - before)
            for tp in [tp for tp, each in restores.items() if each.is_done]:
                done = restores.pop(tp)
                log.info("store %s: %d records restored from %s", done.store.name, done.restored, tp)
                fetcher.remove(tp)
    finally:
        await fetcher.close()


async def start_over_after_loss(
    client: Client, tp: TopicPartition, restore: StoreRestore, worker: Worker
) -> int:
    """Start the restore over after the next records were deleted. Return the log start.

    The deleted records may have been tombstones, whose keys would otherwise stay.
    """
    start = (await Admin(client).list_offsets({tp: "earliest"}))[tp].offset
    log.warning("store %s: restoring it all, %s begins at %d now", restore.store.name, tp, start)
    await worker.run(restore.start_over, start, restore.store.backend.origin or b"")
    return start
