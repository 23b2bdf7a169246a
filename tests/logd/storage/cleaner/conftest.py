"""A log that is compacted in the test's own process: the steps of the cleaner's process are done here, one by
one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka_client.records import Codec, Record, build_batch, decode_records, iter_batches
from kafka_client.records.header import BatchHeader
from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage import Log, LogDirectory
from logd.storage.cleaner.cleaning import Cleaning
from logd.storage.cleaner.messages import Cleaned, Done
from logd.storage.disk import Disk, PosixDisk
from logd.storage.log.compaction import CleanerLimits
from logd.storage.log.rolling import roll

NOW = 1_700_000_000_000
Put = tuple[str | None, str | None]
"""Key and value; a value of None deletes."""


class Keyed:
    """A log of keyed records. Every `append` fills a segment of its own unless `small` is False."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.now = NOW
        self.config = TopicConfig(
            cleanup_policy=("compact",), segment_bytes=1_000_000, delete_retention_ms=1000
        )
        self.disk: Disk = PosixDisk()
        self.folder: LogDirectory | None = None
        self.first_dirty = -1
        self.removable_to = LONG_MAX
        self.limits = CleanerLimits(map_bytes=24 * 1024)

    def configure(self, **changes: Any) -> None:
        self.config = self.config.replaced(**changes)
        if self.folder is not None:
            self.log.config = self.config

    @property
    def log(self) -> Log:
        assert self.folder is not None
        return self.folder.logs["t", 0]

    @property
    def log_path(self) -> Path:
        return self.path / "t-0"

    def open(self) -> Log:
        self.folder = LogDirectory.open(
            self.path,
            node_id=1,
            cluster_id="cluster",
            config_for=lambda topic: self.config,
            now_ms=self.now,
            disk=self.disk,
        )
        if ("t", 0) not in self.folder.logs:
            self.folder.create_log("t", 0, topic_id=bytes(16), config=self.config, now_ms=self.now)
        return self.log

    def kill(self) -> None:
        """Stop as SIGKILL does."""
        if self.folder is not None:
            for log in self.folder.logs.values():
                log.release()
            self.folder._lock.release()
            self.folder = None

    def reopen(self, *, clean: bool = False) -> Log:
        if clean and self.folder is not None:
            self.folder.close()
            self.folder = None
        self.kill()
        return self.open()

    def append(self, *puts: Put, codec: Codec = Codec.NONE, **facts: Any) -> int:
        """Append one batch of these puts and return its base offset."""
        records = [
            (
                self.now + index,
                None if key is None else key.encode(),
                None if value is None else value.encode(),
                (),
            )
            for index, (key, value) in enumerate(puts)
        ]
        return self.log.writer.append(build_batch(records, codec=codec, **facts), 0, self.now).base_offset

    def roll(self) -> None:
        """Seal what was appended so far, so that the cleaner may clean it. The active segment then holds one
        filler record.
        """
        if self.log.segments.active.size:
            roll(self.log, self.log.flusher, self.now)
        self.append(("filler", "x"))
        self.log.flusher.flush()

    def round(self) -> tuple[list[Cleaned], Done, Any]:
        """Clean, without swapping in."""
        assert self.folder is not None
        self.log.replicated_to(self.log.log_end_offset)
        self.folder.start_checkpoint()()  # as the broker does: below the recovery point gaps are fine
        stable = self.log.first_unstable_offset
        cleanable = self.log.compaction.cleanable(
            self.first_dirty,
            upper_bound=self.log.log_end_offset if stable is None else stable,
            now_ms=self.now,
        )
        compaction = self.log.compaction.start_compaction(
            cleanable, self.limits, self.now, removable_to=self.removable_to
        )
        groups: list[Cleaned] = []
        done = Cleaning(compaction.task, self.disk, groups.append).run()
        return groups, done, compaction

    def compact(self) -> Done:
        """Clean a whole round, swap every group in, and return the cleaner's report."""
        groups, done, compaction = self.round()
        for cleaned in groups:
            swap = self.log.compaction.start_swap(compaction, cleaned)
            assert swap.prepare()
            deletion = self.log.compaction.finish_swap(swap)
            assert deletion is not None
            swap.sync_names()
            deletion.run()
        self.first_dirty = done.first_dirty
        return done

    def compact_all(self) -> None:
        """Rounds until nothing is dirty: the map may be too small for one."""
        before = -2
        while self.first_dirty != before:
            before = self.first_dirty
            self.compact()

    def batches(self) -> list[tuple[BatchHeader, list[Record]]]:
        batches = []
        for chunk in self.log.reader.batches(self.log.log_start_offset):
            for position, header in iter_batches(chunk):
                batches.append((header, decode_records(chunk, position)))
        return batches

    def records(self) -> list[tuple[int, str | None, str | None]]:
        """Offset, key and value of all data records but the fillers."""
        return [
            (offset, key.decode() if key is not None else None, None if value is None else value.decode())
            for header, records in self.batches()
            if not header.is_control
            for offset, _, key, value, _ in records
            if key != b"filler"
        ]

    def bases(self) -> list[int]:
        return [segment.base_offset for segment in self.log.segments.row]

    def staged(self) -> list[str]:
        return sorted(path.name for path in self.log_path.iterdir() if path.suffix in (".cleaned", ".swap"))


@pytest.fixture
def keyed(tmp_path: Path) -> Iterator[Keyed]:
    """An open, empty compacted log."""
    keyed = Keyed(tmp_path / "data")
    keyed.open()
    yield keyed
    keyed.kill()


@pytest.fixture(scope="session")
def make_keyed() -> Callable[[Path], Keyed]:
    """For tests that need many."""
    return Keyed


@pytest.fixture(autouse=True, scope="package")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Turn off syncing: these tests make thousands of logs and test no power loss."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda fd: None)
        patch.setattr(os, "fdatasync", lambda fd: None)
        yield
