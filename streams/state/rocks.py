"""A store's bytes in RocksDB, through rocksdict in raw mode.

The write-ahead log is off: the changelog topic is the log. Data and checkpoint are two column families,
written in one batch and flushed atomically, so what a crash leaves on disk is the store as of an earlier
commit, and the tail is restored from the changelog. One block cache serves the whole process.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from streams.errors import StateError
from streams.state.backend import Update

log = logging.getLogger(__name__)

BLOCK_CACHE_BYTES = 64 * 1024 * 1024
WRITE_BUFFER_BYTES = 8 * 1024 * 1024
BLOOM_BITS = 10

PROPERTIES = (
    "estimate-num-keys",
    "live-sst-files-size",
    "total-sst-files-size",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "num-entries-active-mem-table",
    "num-immutable-mem-table",
    "mem-table-flush-pending",
    "num-running-flushes",
    "compaction-pending",
    "num-running-compactions",
    "estimate-table-readers-mem",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "background-errors",
)
"""What RocksDB knows without looking for it; Kafka's metrics have the same names."""

CHECKPOINT_FAMILY = "checkpoint"
CHECKPOINT_KEY = b"changelog"
_ORIGIN_KEY = b"changelog topic id"
AS_OF_KEY = b"as of"
_LAYOUT_KEY = b"layout of keys"


@cache
def _block_cache() -> Cache:
    return Cache(BLOCK_CACHE_BYTES)


def raw_options() -> Options:
    """Settings of each of a store's column families; keys and values are bytes."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(True)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.optimize_universal_style_compaction(WRITE_BUFFER_BYTES * 4)
    options.set_max_open_files(256)
    options.set_keep_log_file_num(1)
    table = BlockBasedOptions()
    table.set_block_cache(_block_cache())
    table.set_bloom_filter(BLOOM_BITS, False)
    options.set_block_based_table_factory(table)
    return options


class RocksBackend:
    """One RocksDB database: one store of one task.

    `layout` names how the store lays out its keys. Content with another layout is forgotten.
    """

    def __init__(self, path: Path, *, layout: bytes = b"") -> None:
        self._path = path
        self._layout = layout
        self._no_wal = WriteOptions()
        self._no_wal.disable_wal = True  # type: ignore[method-assign, assignment]  # the stub is wrong
        self._delete_aside()
        self._open()
        if (self._checkpoints.get(_LAYOUT_KEY) or b"") != layout:
            if self._checkpoint is not None or next(self.scan(), None) is not None:
                log.warning("%s: keys are laid out in another way than now, restoring it all", path)
                self.wipe()
            else:
                self._note({_LAYOUT_KEY: layout})

    def _open(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True)
        options = raw_options()
        try:
            self._db = Rdict(
                str(self._path),
                options,
                column_families={CHECKPOINT_FAMILY: raw_options()},
                access_type=AccessType.read_write(),
            )
        except Exception as error:
            raise StateError(
                f"{self._path}: RocksDB does not open ({error}); remove it to restore it"
            ) from error
        self._db.set_write_options(self._no_wal)
        self._checkpoints = self._db.get_column_family(CHECKPOINT_FAMILY)
        self._checkpoint_handle = self._db.get_column_family_handle(CHECKPOINT_FAMILY)
        stored = self._checkpoints.get(CHECKPOINT_KEY)
        self._checkpoint = None if stored is None else int(stored)
        self._closed = False

    @property
    def checkpoint(self) -> int | None:
        return self._checkpoint

    @property
    def origin(self) -> bytes | None:
        value: bytes | None = self._checkpoints.get(_ORIGIN_KEY)
        return value

    @property
    def as_of(self) -> int | None:
        value: bytes | None = self._checkpoints.get(AS_OF_KEY)
        return None if value is None else int(value)

    def properties(self) -> Mapping[str, float]:
        return {name: self._db.property_int_value(f"rocksdb.{name}") or 0 for name in PROPERTIES}

    def get(self, key: bytes) -> bytes | None:
        value: bytes | None = self._db.get(key)
        return value

    def scan(self, lower: bytes | None = None, upper: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        pairs: Any = self._db.items(from_key=lower)  # typed for the other mode, in which keys are not bytes
        for key, value in pairs:
            if upper is not None and key >= upper:
                return
            yield key, value

    def write(self, updates: Iterable[Update], checkpoint: int | None, as_of: int | None = None) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in updates:
            if value is None:
                batch.delete(key)
            else:
                batch.put(key, value)
        if checkpoint is not None:
            batch.put(CHECKPOINT_KEY, b"%d" % checkpoint, self._checkpoint_handle)
        if as_of is not None:
            batch.put(AS_OF_KEY, b"%d" % as_of, self._checkpoint_handle)
        self._db.write(batch, self._no_wal)
        self._checkpoint = checkpoint

    def wipe(self, origin: bytes | None = None) -> None:
        self._release()
        self._delete_aside()
        self._path.rename(self._aside)
        self._open()
        self._note({_LAYOUT_KEY: self._layout, **({} if origin is None else {_ORIGIN_KEY: origin})})
        self._delete_aside()

    @property
    def _aside(self) -> Path:
        """Where a database is that was wiped, by a name that no store has: whoever is killed while it is
        deleted must not find half of it in its place.
        """
        return self._path.with_name(f"~{self._path.name}")

    def _delete_aside(self) -> None:
        if self._aside.exists():
            shutil.rmtree(self._aside)

    def _note(self, facts: Mapping[bytes, bytes]) -> None:
        """Write to the checkpoints' family."""
        batch = WriteBatch(raw_mode=True)
        for key, value in facts.items():
            batch.put(key, value, self._checkpoint_handle)
        self._db.write(batch, self._no_wal)

    def close(self) -> None:
        """Flush the memtables, so that the next start restores nothing, and close."""
        if not self._closed:
            try:
                self._db.flush(True)
            except Exception as error:  # the disk is full, or the folder was deleted
                log.warning("%s: not flushed, the next start restores it: %s", self._path, error)
            self._release()

    def _release(self) -> None:
        self._closed = True
        for each in (self._checkpoints, self._db):
            try:
                each.close()
            except Exception as error:  # closing flushes again, with the same errors
                log.debug("%s: %s", self._path, error)
        # Any reference left keeps the database open, and the folder locked.
        del self._checkpoint_handle, self._checkpoints, self._db
