"""Bringing a task's stores to the state that belongs to its committed positions.

The group's coordinator says where the task's inputs go on and, in the same note, up to which offset each
changelog counts (`runtime.positions`): the *cut*. A changelog may go on beyond it, when a commit broke off
in the middle; that tail is void. So a store is restored from its checkpoint to the cut, not to the end:

    log start ... checkpoint ........ cut ......... log end
                  |--- applied ------|--- undone ---|

Keys of the tail are written to the changelog again with the next commit, so that nobody who reads it from
its start later takes the tail's values. Where the tail's record carries what the key had before (it does
when its commit took more than one batch), that is taken: compaction may have removed the original.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from logd.client import Admin, BatchFetcher, Client, Fetched, TopicPartition
from logd.records import Headers
from streams.errors import StateError
from streams.runtime.undo import previous_of
from streams.runtime.worker import Worker
from streams.state import CachedStore
from streams.state.cache import join

log = logging.getLogger(__name__)

MAX_FETCH_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class StoreRestore:
    """One store on its way from ``position`` to ``cut``, and through the tail to ``end``."""

    store: CachedStore
    position: int
    cut: int
    end: int
    undone: dict[bytes, bytes | None]
    restored: int = 0

    @property
    def is_done(self) -> bool:
        """Whether the changelog was read to its end."""
        return self.position >= self.end

    def apply(self, fetched: Fetched) -> None:
        """Take what was fetched; control batches and compaction gaps only move the position."""
        updates: dict[bytes, bytes | None] = {}
        for offset, timestamp, key, value, headers in fetched.records():
            if key is None or offset >= self.end:
                continue
            if offset < self.cut:
                updates[key] = None if value is None else join(value, timestamp)
                self.restored += 1
            else:
                self._undo(key, headers, updates)
        self.position = fetched.next_offset
        self.store.backend.write(updates.items(), min(self.position, self.cut))

    def _undo(self, key: bytes, headers: Headers, updates: Mapping[bytes, bytes | None]) -> None:
        """Note what the key had at the cut: a record of the tail says so, or the log before it did."""
        known, previous = previous_of(headers, self.cut)
        if known:
            self.undone[key] = previous
        elif key not in self.undone:
            self.undone[key] = updates[key] if key in updates else self.store.backend.get(key)

    def finish(self) -> None:
        """Undo the tail."""
        if self.undone:
            log.info("store %s: %d keys of a broken off commit undone", self.store.name, len(self.undone))
            self.store.backend.write(self.undone.items(), self.cut)
            self.store.repair(self.undone)


async def restore_stores(
    client: Client,
    stores: Mapping[TopicPartition, CachedStore],
    cut: Mapping[str, int] | None,
    *,
    worker: Worker,
) -> tuple[dict[str, int], dict[str, int]]:
    """Restore each store from its changelog partition; returns how far each changelog counts, and its end.

    ``cut``: where each changelog ends to count, None to take all of them; nothing counts of one that is not
    in it. Raises StateError when a changelog is shorter than what was committed.
    """
    if not stores:
        return {}, {}
    admin = Admin(client)
    starts = await admin.list_offsets(dict.fromkeys(stores, "earliest"))
    ends = await admin.list_offsets(dict.fromkeys(stores, "latest"))
    topics = (await client.metadata({tp.topic for tp in stores})).topics
    restores: dict[TopicPartition, StoreRestore] = {}
    for tp, store in stores.items():
        start, end = starts[tp].offset, ends[tp].offset
        upto = end if cut is None else cut.get(store.name, start)
        restores[tp] = _plan(tp, topics[tp.topic].topic_id, store, start, upto, end)
    await _read(client, {tp: each for tp, each in restores.items() if not each.is_done}, worker)
    for each in restores.values():
        each.finish()
    cuts = {each.store.name: each.cut for each in restores.values()}
    return cuts, {each.store.name: each.end for each in restores.values()}


def _plan(
    tp: TopicPartition, topic_id: bytes, store: CachedStore, start: int, cut: int, end: int
) -> StoreRestore:
    """Where to begin. A checkpoint before the log's start, or beyond the cut, is worthless: begin anew.

    So is one in an earlier topic of that name: state left from before the application was reset.
    """
    if cut > end:
        raise StateError(
            f"changelog {tp} ends at {end}, but {cut} was committed: records were lost, or the topic "
            "was made anew; reset the application (delete its group and internal topics) to rebuild the state"
        )
    checkpoint = store.backend.checkpoint
    fits = checkpoint is not None and start <= checkpoint <= cut and store.backend.origin == topic_id
    if checkpoint is not None and not fits:
        log.warning(
            "store %s: local state at %d does not fit %s, restoring it all", store.name, checkpoint, tp
        )
        checkpoint = None
    if checkpoint is None:
        store.backend.wipe(topic_id)
        store.backend.write((), start)
        checkpoint = start
    return StoreRestore(store, checkpoint, max(cut, start), end, {})


async def _read(client: Client, restores: dict[TopicPartition, StoreRestore], worker: Worker) -> None:
    if not restores:
        return
    fetcher = BatchFetcher(client, max_partition_fetch_bytes=MAX_FETCH_BYTES, fetch_max_wait_ms=100)
    try:
        fetcher.assign({tp: each.position for tp, each in restores.items()})
        while restores:
            for fetched in await fetcher.fetch():
                each = restores.get(fetched.tp)
                if each is not None:
                    await worker.run(each.apply, fetched)
                    if each.is_done:
                        log.info(
                            "store %s: %d records restored from %s",
                            each.store.name,
                            each.restored,
                            fetched.tp,
                        )
                        fetcher.remove(fetched.tp)
                        del restores[fetched.tp]
    finally:
        await fetcher.close()
