"""A report on a store's folder on disk, for tools; another process may be using the folder meanwhile.

The folder is opened read-only: data that a running process has not flushed yet is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streams.errors import StateError


@dataclass(frozen=True, slots=True)
class Stored:
    """The content of a store's folder."""

    bytes: int
    """The size of its files."""
    keys: int
    """The approximate number of keys."""
    checkpoint: int | None
    """The changelog offset up to which the content is complete, None if there is none."""
    as_of: int | None
    """The time of the checkpoint's commit, ms since the epoch."""


def look_at(path: Path) -> Stored:
    """Return the content of a store's folder. Raises StateError if RocksDB does not open it."""
    from rocksdict import AccessType, Rdict

    from streams.state.rocks import AS_OF_KEY, CHECKPOINT_FAMILY, CHECKPOINT_KEY, raw_options
    from streams.state.rocks_memory import RocksMemory

    memory = RocksMemory()
    try:
        families = {CHECKPOINT_FAMILY: raw_options(memory)}
        db = Rdict(str(path), raw_options(memory), families, AccessType.read_only())
    except Exception as error:
        raise StateError(f"{path}: RocksDB does not open: {error}") from error
    try:
        notes = db.get_column_family(CHECKPOINT_FAMILY)
        checkpoint, as_of = notes.get(CHECKPOINT_KEY), notes.get(AS_OF_KEY)
        keys = db.property_int_value("rocksdb.estimate-num-keys") or 0
        notes.close()
    finally:
        db.close()
    size = sum(each.stat().st_size for each in path.rglob("*") if each.is_file())
    return Stored(size, keys, _number(checkpoint), _number(as_of))


def _number(stored: bytes | None) -> int | None:
    return None if stored is None else int(stored)
