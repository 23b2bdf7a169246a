"""What a store's folder on disk holds, for who looks at it while nobody, or another process, works with it.

Read-only: what a running process has in memory and not flushed yet is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from streams.errors import StateError


@dataclass(frozen=True, slots=True)
class Stored:
    """``bytes``: of its files. ``keys``: about how many. ``checkpoint``: the changelog offset it reaches to,
    None if it has none; ``as_of``: when that was committed, ms since the epoch.
    """

    bytes: int
    keys: int
    checkpoint: int | None
    as_of: int | None


def look_at(path: Path) -> Stored:
    """A store's folder; StateError if RocksDB does not open it."""
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
