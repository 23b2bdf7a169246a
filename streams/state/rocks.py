"""A store's bytes in RocksDB, through rocksdict in raw mode.

The write-ahead log is off: the changelog topic is the log. Data and checkpoint are two column families,
written in one batch and flushed atomically. So a crash leaves the store as of an earlier commit on disk, and
later commits are restored from the changelog. `rocks_memory` bounds the memory of all databases.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from rocksdict import AccessType, Options, Rdict, WriteBatch, WriteOptions

from kafka_client.private_files import DIRECTORY_MODE
from streams.state.backend import Range, Update
from streams.state.rocks_errors import OnDamage, is_damage, translated
from streams.state.rocks_memory import RocksMemory

log = logging.getLogger(__name__)

PROPERTIES = (
    "estimate-num-keys",
    "live-sst-files-size",
    "total-sst-files-size",
    "cur-size-active-mem-table",
    "cur-size-all-mem-tables",
    "size-all-mem-tables",
    "num-entries-active-mem-table",
    "num-entries-imm-mem-tables",
    "num-deletes-active-mem-table",
    "num-deletes-imm-mem-tables",
    "num-immutable-mem-table",
    "mem-table-flush-pending",
    "num-running-flushes",
    "compaction-pending",
    "num-running-compactions",
    "estimate-pending-compaction-bytes",
    "num-live-versions",
    "estimate-table-readers-mem",
    "block-cache-capacity",
    "block-cache-usage",
    "block-cache-pinned-usage",
    "background-errors",
)
"""The properties that RocksDB returns without a search; Kafka's metrics have the same names."""

CHECKPOINT_FAMILY = "checkpoint"
CHECKPOINT_KEY = b"changelog"
_ORIGIN_KEY = b"changelog topic id"
AS_OF_KEY = b"as of"
_LAYOUT_KEY = b"layout of keys"


def raw_options(memory: RocksMemory) -> Options:
    """Return the settings of a store's column family; keys and values are bytes."""
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    options.set_atomic_flush(True)
    options.set_keep_log_file_num(1)
    memory.apply_to(options)
    return options


class RocksBackend:
    """A RocksDB database: one store of one task.

    `layout` names how the store lays out its keys. Content with another layout is deleted, to be restored.
    `memory` is shared with other databases. `on_damage`: see `OnDamage`.
    """

    def __init__(
        self,
        path: Path,
        *,
        layout: bytes = b"",
        memory: RocksMemory | None = None,
        on_damage: OnDamage = "restore",
    ) -> None:
        self._path = path
        self._memory = memory or RocksMemory()
        self._layout = layout
        self._on_damage: OnDamage = on_damage
        self._no_wal = WriteOptions()
        self._no_wal.disable_wal = True  # type: ignore[method-assign, assignment]  # the stub is wrong
        self._delete_aside()
        self._open()
        try:
            self._check_layout()
        except BaseException:
            self.close()
            raise

    def _check_layout(self) -> None:
        if (self._noted(_LAYOUT_KEY) or b"") == self._layout:
            return
        if self._checkpoint is not None or next(self.scan(), None) is not None:
            log.warning("%s: keys are laid out in another way than now, restoring it all", self._path)
            self.wipe()
        else:
            self._note({_LAYOUT_KEY: self._layout})

    def _open(self) -> None:
        """Open the database. Set a damaged one aside and open a new one, if it can be restored."""
        try:
            try:
                self._open_files()
            except Exception as error:
                if not is_damage(error) or self._on_damage == "end":
                    raise
                log.warning("%s", translated(self._path, error, "restore"))
                self._set_aside()
                self._open_files()
        except Exception as error:
            raise translated(self._path, error, self._on_damage) from error

    def _open_files(self) -> None:
        self._path.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        self._db = Rdict(
            str(self._path),
            raw_options(self._memory),
            column_families={CHECKPOINT_FAMILY: raw_options(self._memory)},
            access_type=AccessType.read_write(),
        )
        self._memory.add(self)
        self._damaged = self._closed = False
        self._db.set_write_options(self._no_wal)
        self._checkpoints = self._db.get_column_family(CHECKPOINT_FAMILY)
        self._checkpoint_handle = self._db.get_column_family_handle(CHECKPOINT_FAMILY)
        try:
            stored = self._checkpoints.get(CHECKPOINT_KEY)
        except Exception:
            self._release()
            raise
        self._checkpoint = None if stored is None else int(stored)

    def _failed(self, error: Exception) -> Exception:
        """Return the error to raise in place of this one; note whether the database is damaged."""
        self._damaged = self._damaged or is_damage(error)
        return translated(self._path, error, self._on_damage)

    @property
    def checkpoint(self) -> int | None:
        return self._checkpoint

    @property
    def origin(self) -> bytes | None:
        return self._noted(_ORIGIN_KEY)

    @property
    def as_of(self) -> int | None:
        value = self._noted(AS_OF_KEY)
        return None if value is None else int(value)

    def _noted(self, key: bytes) -> bytes | None:
        """Return a value of the checkpoints' column family, None if absent."""
        try:
            value: bytes | None = self._checkpoints.get(key)
        except Exception as error:
            raise self._failed(error) from error
        return value

    def properties(self) -> Mapping[str, float]:
        return {name: self._db.property_int_value(f"rocksdb.{name}") or 0 for name in PROPERTIES}

    def get(self, key: bytes) -> bytes | None:
        try:
            value: bytes | None = self._db.get(key)
        except Exception as error:
            raise self._failed(error) from error
        return value

    def scan(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        if backwards:
            yield from self._scan_backwards(lower, upper)
            return
        pairs: Any = self._db.items(from_key=lower)  # typed for the other mode, in which keys are not bytes
        key = None
        for key, value in pairs:
            if upper is not None and key >= upper:
                return
            yield key, value
        del pairs  # An error's traceback would hold it, and it the database.
        self._check_end(lower if key is None else key + b"\x00")

    def _scan_backwards(self, lower: bytes | None, upper: bytes | None) -> Iterator[tuple[bytes, bytes]]:
        pairs: Any = self._db.items(backwards=True, from_key=upper)
        key = upper
        for key, value in pairs:
            if lower is not None and key < lower:
                return
            if key != upper:
                yield key, value
        del pairs
        self._check_end(key, backwards=True)

    def _check_end(self, behind: bytes | None, *, backwards: bool = False) -> None:
        """Raise an error if a scan ended early.

        rocksdict's iterators end silently at a damaged block (0.3.29). ``behind``: the key at which the scan
        ended, None for the first, or ``backwards`` the last.
        """
        iterator = self._db.iter()
        if behind is None:
            (iterator.seek_to_last if backwards else iterator.seek_to_first)()
        elif backwards:
            iterator.seek(behind)  # whether the key exists or not, the next one is before it
            iterator.prev()
        else:
            iterator.seek(behind)
        try:
            iterator.status()
        except Exception as error:
            del iterator
            raise self._failed(error) from error

    def write(
        self,
        updates: Iterable[Update],
        checkpoint: int | None,
        as_of: int | None = None,
        dropped: Iterable[Range] = (),
    ) -> None:
        batch = WriteBatch(raw_mode=True)
        for lower, upper in dropped:
            batch.delete_range(lower, upper)
        put, delete = batch.put, batch.delete
        for key, value in updates:
            if value is None:
                delete(key)
            else:
                put(key, value)
        if checkpoint is not None:
            batch.put(CHECKPOINT_KEY, b"%d" % checkpoint, self._checkpoint_handle)
        if as_of is not None:
            batch.put(AS_OF_KEY, b"%d" % as_of, self._checkpoint_handle)
        try:
            self._db.write(batch, self._no_wal)
        except Exception as error:
            raise self._failed(error) from error
        self._checkpoint = checkpoint
        self._memory.written(self)

    def buffered_bytes(self) -> int:
        """Return the bytes in the write buffer that `make_room` would have written to a file."""
        return self._db.property_int_value("rocksdb.cur-size-active-mem-table") or 0

    def make_room(self) -> None:
        """Have RocksDB write the buffers to files, in the background, while the budget is exceeded."""
        self._db.write(WriteBatch(raw_mode=True), self._no_wal)

    def wipe(self, origin: bytes | None = None) -> None:
        self._release()
        self._delete_aside()
        self._path.rename(self._aside)
        self._open()
        self._note({_LAYOUT_KEY: self._layout, **({} if origin is None else {_ORIGIN_KEY: origin})})
        self._delete_aside()

    @property
    def _aside(self) -> Path:
        """The path of a wiped database until it is deleted; no store has such a name.

        So a process killed during the deletion leaves no half of a database in the store's place.
        """
        return self._path.with_name(f"~{self._path.name}")

    def _set_aside(self) -> None:
        """Rename a damaged database so that the damage can be examined; only the store's last one is kept."""
        damaged = self._path.with_name(f"~damaged-{self._path.name}")
        if damaged.exists():
            shutil.rmtree(damaged)
        if self._path.exists():
            self._path.rename(damaged)

    def _delete_aside(self) -> None:
        if self._aside.exists():
            shutil.rmtree(self._aside)

    def _note(self, facts: Mapping[bytes, bytes]) -> None:
        """Write to the checkpoints' column family."""
        batch = WriteBatch(raw_mode=True)
        for key, value in facts.items():
            batch.put(key, value, self._checkpoint_handle)
        try:
            self._db.write(batch, self._no_wal)
        except Exception as error:
            raise self._failed(error) from error

    def close(self) -> None:
        """Flush the memtables, so that the next start restores nothing, and close."""
        if not self._closed:
            try:
                self._db.flush(True)
            except Exception as error:  # the disk is full, or the folder was deleted
                log.warning("%s: not flushed, the next start restores it: %s", self._path, error)
                # A global table's positions are stored elsewhere, and would be ahead of its content.
                self._damaged = self._damaged or self._on_damage == "restart"
            self._release()
            if self._damaged and self._on_damage != "end":
                self._set_aside()

    def _release(self) -> None:
        self._closed = True
        self._memory.remove(self)
        for each in (self._checkpoints, self._db):
            try:
                each.close()
            except Exception as error:  # `close` flushes again, with the same errors
                log.debug("%s: %s", self._path, error)
        # Any reference left keeps the database open, and the folder locked.
        del self._checkpoint_handle, self._checkpoints, self._db
