"""A log on a disk that may die, and a ledger of all that was written to it; `audit` compares the two."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kafka_client.records import build_batch
from logd.config.topic import TopicConfig
from logd.storage import LogDirectory
from logd.storage.cleaner.cleaning import Cleaning
from logd.storage.cleaner.messages import Cleaned
from logd.storage.disk import Disk
from logd.storage.log.compaction import CleanerLimits
from tests.support.power_loss import PowerLossDisk

NOW = 1_700_000_000_000
CONFIG = TopicConfig(segment_bytes=2_000, index_interval_bytes=200, file_delete_delay_ms=0)
COMPACTED = CONFIG.replaced(cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)
KEY = ("t", 0)
LIMITS = CleanerLimits(map_bytes=64 * 1024)


class Written(NamedTuple):
    """A record: what it says, whose it is (-1 nobody's), and in which leader epoch it was written."""

    key: bytes
    value: bytes | None
    leader_epoch: int
    producer_id: int = -1
    transactional: bool = False
    sequence: int = -1
    marker: bool | None = None
    """Whether it is a commit marker; None for what is no marker."""


class Transaction(NamedTuple):
    """A transaction's offsets; `end` is its marker's, None while it is open."""

    producer_id: int
    records: list[int]
    end: int | None = None
    committed: bool = False


class Ledger:
    """`records` by offset: all that was ever appended. `promised` and `start_promised` are the log end and
    start offset that have to survive, `start_asked` the largest start offset that anybody asked for,
    `compacted` where compaction has come to, `found` the offsets the last audit found.
    """

    def __init__(self, path: Path, seed: int, config: TopicConfig = CONFIG) -> None:
        self.path = path
        self.rng = random.Random(seed)
        self.config = config
        self.epoch = 0
        self.now = NOW
        self.records: dict[int, Written] = {}
        self.promised = self.start_promised = self.start_asked = self.compacted = 0
        self.audited_offsets: list[int] = []
        self._first_dirty = -1
        self._removed: set[int] = set()
        """Offsets that compaction removed in favour of records that truncation removed later."""
        self._sequences: dict[int, int] = {}
        path.mkdir(parents=True)
        self.disk = PowerLossDisk(path, self.rng)
        self.folder = open_folder(path, config, self.disk)
        self.log = self.folder.create_log(*KEY, topic_id=bytes(16), config=config, now_ms=self.now)
        self.disk.sync_folder(path)
        self.disk.sync_folder(self.log.directory)

    # What may be done

    def append(
        self,
        count: int = 1,
        size: int = 60,
        *,
        producer_id: int = -1,
        transactional: bool = False,
        tombstones: bool = False,
    ) -> None:
        """Append one batch; its keys are some of a few."""
        base = self.log.log_end_offset
        sequence = self._sequences.get(producer_id, 0)
        for offset in range(base, base + count):
            self.records[offset] = Written(
                b"k%d" % self.rng.randrange(8),
                None if tombstones else b"%d:".ljust(size, b"x") % offset,
                self.epoch,
                producer_id,
                transactional,
                sequence + offset - base if producer_id >= 0 else -1,
            )
        written = [self.records[offset] for offset in range(base, base + count)]
        batch = build_batch(
            [(self.now, record.key, record.value, ()) for record in written],
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=transactional,
        )
        assert self.log.writer.append(batch, self.epoch, self.now).base_offset == base
        self.log.replicated_to(self.log.log_end_offset)
        self._sequences[producer_id] = sequence + count

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Append a marker."""
        self.records[self.log.log_end_offset] = Written(
            b"", b"", self.epoch, producer_id, True, marker=commit
        )
        self.log.writer.append_marker(
            producer_id=producer_id,
            producer_epoch=0,
            commit=commit,
            coordinator_epoch=0,
            leader_epoch=self.epoch,
            now_ms=self.now,
        )
        self.log.replicated_to(self.log.log_end_offset)

    def flush(self) -> None:
        """Force everything to the disk; only then is it promised."""
        self.flush_beside(lambda: None)

    def sync(self) -> None:
        """Sync the records alone: with flush.messages, an acknowledgement waits for that."""
        end, sync = self.log.log_end_offset, self.log.flusher.start_sync()
        if sync is not None:
            sync.run()
            self.log.flusher.finish_flush(sync)
        self.promised = end

    def flush_beside(self, work: Callable[[], None]) -> None:
        """Flush while ``work`` goes on, as in the background: only what was there before is promised."""
        end, flush = self.log.log_end_offset, self.log.flusher.start_flush()
        work()
        if flush is not None:
            flush.run()
            self.log.flusher.finish_flush(flush)
        self.promised = max(self.promised, end)

    def checkpoint(self) -> None:
        """Write recovery point and log start offset."""
        start = self.log.log_start_offset
        self.folder.start_checkpoint({KEY: self.log.log_end_offset})()
        self.start_promised = start

    def delete_before(self, offset: int) -> None:
        """DeleteRecords."""
        self.start_asked = max(self.start_asked, offset)
        for deletion in self.log.shortening.delete_records_before(offset):
            deletion.run()

    def truncate(self, offset: int) -> None:
        """Truncate at `offset`, as a follower does whose leader's log differs from there on.

        Only then offsets are used again: a crash before that leaves what was written under them at first.
        """
        self.flush()
        truncation = self.log.shortening.start_truncation(offset, self.now)
        if truncation is None:
            return
        self._removed |= self.may_be_gone(self.log.log_end_offset)
        self.promised = min(self.promised, truncation.recovery_point)
        self.start_promised = min(self.start_promised, truncation.recovery_point)
        self._first_dirty = min(self._first_dirty, truncation.recovery_point)
        self.folder.start_checkpoint({KEY: truncation.recovery_point})()
        truncation.run()
        for deletion in truncation.finish():
            deletion.run()
        self._truncated()

    def start_afresh(self, offset: int) -> None:
        """Begin the log again at `offset`, as a follower does that is too far behind."""
        self.flush()
        truncation = self.log.shortening.start_afresh(offset, self.now)
        self.promised = min(self.promised, offset)
        self.start_promised = min(self.start_promised, offset)
        self.start_asked = max(self.start_asked, offset)
        self._first_dirty = -1
        self.folder.start_checkpoint({KEY: offset})()
        truncation.run()
        for deletion in truncation.finish():
            deletion.run()
        self.records.clear()
        self._truncated()

    def _truncated(self) -> None:
        end = self.promised = self.log.log_end_offset
        self.log.replicated_to(end)
        self.compacted = min(self.compacted, end)
        self._forget_from(end)

    def apply_retention(self) -> None:
        """Drop what retention.bytes says."""
        self.start_asked = max(self.start_asked, self.log.log_end_offset)
        for deletion in self.log.shortening.apply_retention(self.now):
            deletion.run()

    def compact(self) -> None:
        """Compact once, and swap each result in as soon as it is ready."""
        unstable = self.log.first_unstable_offset
        bound = self.log.log_end_offset if unstable is None else unstable
        cleanable = self.log.compaction.cleanable(self._first_dirty, upper_bound=bound, now_ms=self.now)
        if not cleanable.dirty_bytes:
            return
        self.checkpoint()
        self.compacted = max(self.compacted, cleanable.end)
        compaction = self.log.compaction.start_compaction(cleanable, LIMITS, self.now)

        def swap_in(cleaned: Cleaned) -> None:
            swap = self.log.compaction.start_swap(compaction, cleaned)
            assert swap.prepare()
            deletion = self.log.compaction.finish_swap(swap)
            assert deletion is not None
            swap.sync_names()
            deletion.run()

        self._first_dirty = Cleaning(compaction.task, self.disk, swap_in).run().first_dirty

    def stop(self) -> None:
        """Stop cleanly."""
        end = self.log.log_end_offset
        self.folder.close({KEY: end})
        self.promised = end

    def begin_epoch(self) -> None:
        """Begin a leader epoch, as after an election."""
        self.folder.begin_epoch([self.log], above=self.epoch)
        self.epoch = self.log.latest_epoch

    def reopen(self, *, clean: bool) -> None:
        """Start again on the same files, after a clean stop or a kill."""
        if clean:
            self.stop()
        else:
            self.let_go()
        self._open(clean=clean)

    def revive(self, path: Path) -> None:
        """Go on with what a crash left in ``path``: what is gone now is forgotten."""
        self.let_go()
        self.path = path
        self.disk = PowerLossDisk(path, self.rng)
        self._open(clean=False)

    def _open(self, *, clean: bool) -> None:
        self.folder = open_folder(self.path, self.config, self.disk)
        self.log = self.folder.logs[KEY]
        end = self.log.log_end_offset
        self.log.replicated_to(end)
        assert self.log.latest_epoch > self.epoch or (clean and self.log.latest_epoch in (-1, self.epoch))
        self.epoch = max(self.log.latest_epoch, 0)
        self._forget_from(end)

    def _forget_from(self, end: int) -> None:
        """Forget the records from `end` on: their offsets are used again."""
        self._removed = {offset for offset in self._removed if offset < end}
        self.records = {offset: record for offset, record in self.records.items() if offset < end}
        self._sequences = {
            producer_id: producer.next_sequence
            for producer_id, producer in self.log.producers.producers.items()
        }

    def let_go(self) -> None:
        """End as a killed process does: descriptors and the lock go, nothing is written."""
        let_go(self.folder)

    def configure(self, **changes: object) -> None:
        """Change settings of the topic."""
        self.config = self.config.replaced(**changes)
        self.log.config = self.config

    # What it comes to

    def transactions(self, start: int, end: int) -> Iterator[Transaction]:
        """Yield the transactions with records in [start, end), in the order of their ends."""
        open_ones: dict[int, list[int]] = {}
        for offset in range(start, end):
            if (record := self.records.get(offset)) is None:
                continue  # before where it was begun afresh
            if record.marker is not None:
                if (offsets := open_ones.pop(record.producer_id, None)) is not None:
                    yield Transaction(record.producer_id, offsets, offset, record.marker)
            elif record.transactional:
                open_ones.setdefault(record.producer_id, []).append(offset)
        for producer_id, offsets in open_ones.items():
            yield Transaction(producer_id, offsets)

    def may_be_gone(self, end: int) -> set[int]:
        """Offsets below `end` that compaction may have taken away."""
        aborted = {
            offset
            for each in self.transactions(0, end)
            if each.end is not None and not each.committed
            for offset in each.records
        }
        removed = self._removed | {offset for offset in aborted if offset < self.compacted}
        latest: dict[bytes, int] = {}
        for offset in range(min(self.compacted, end)):
            record = self.records[offset]
            if record.marker is not None or (record.value is None and self.config.delete_retention_ms == 0):
                removed.add(offset)
            if record.marker is None and offset not in aborted:
                if record.key in latest:
                    removed.add(latest[record.key])
                latest[record.key] = offset
        return removed


def open_folder(path: Path, config: TopicConfig, disk: Disk | None) -> LogDirectory:
    """Open the log directory at `path`."""
    return LogDirectory.open(
        path, node_id=1, cluster_id="cluster", config_for=lambda topic: config, now_ms=NOW, disk=disk
    )


def let_go(folder: LogDirectory) -> None:
    """End as a killed process does."""
    for log in folder.logs.values():
        log.release()
    folder.unlock()
