"""State: key-value, versioned, window and session stores, each a write-back cache over memory or RocksDB."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from streams.errors import StateError
from streams.state.backend import Backend, MemoryBackend
from streams.state.cache import CachedStore
from streams.state.entries import Changed, Entry, Pending
from streams.state.join_buffer import JoinBufferStore
from streams.state.join_window import JoinWindowStore
from streams.state.key_value import KeyValueStore
from streams.state.outer_join import OuterJoinStore
from streams.state.rocks_errors import OnDamage
from streams.state.rocks_memory import RocksMemory
from streams.state.segments import layout_of, segment_ms_for
from streams.state.session import SessionStore
from streams.state.spec import SEGMENTED, StoreKind, StoreSpec
from streams.state.timed import TimedStore
from streams.state.versioned import (
    PUT_RETURN_CODE_NOT_PUT,
    PUT_RETURN_CODE_VALID_TO_UNDEFINED,
    VersionedRecord,
    VersionedStore,
    segment_ms_of,
)
from streams.state.versions import layout_of as layout_of_versions
from streams.state.waiting import WaitingStore
from streams.state.window import WindowStore

_STORES: dict[StoreKind, Callable[[StoreSpec, Backend], CachedStore]] = {
    "key_value": KeyValueStore,
    "window": WindowStore,
    "session": SessionStore,
    "join_window": JoinWindowStore,
    "outer_join": OuterJoinStore,
    "versioned_key_value": VersionedStore,
    "join_buffer": JoinBufferStore,
    "waiting": WaitingStore,
}


def check_installed(specs: Iterable[StoreSpec]) -> None:
    """Raise StateError if a store is persistent and RocksDB is not installed."""
    persistent = next((spec for spec in specs if spec.persistent), None)
    if persistent is None:
        return
    try:
        import rocksdict  # noqa: F401
    except ModuleNotFoundError:
        raise StateError(
            f"store {persistent.name} is kept in RocksDB, and rocksdict is not installed: "
            "pip install 'millstream[streams]'; or keep it in memory, Materialized(persistent=False)"
        ) from None


def open_store(
    spec: StoreSpec,
    folder: Path | None,
    memory: RocksMemory | None = None,
    *,
    on_damage: OnDamage | None = None,
) -> CachedStore:
    """Make one task's store of a spec, in memory when the spec or the caller (no folder) says so.

    ``memory``: what the application's stores share. ``on_damage``: unless given, the store is restored if it
    has a changelog.
    """
    layout = _layout(spec)
    backend: Backend
    if spec.persistent and folder is not None:
        # Here, since topologies are described and tested in memory where RocksDB is not installed.
        from streams.state.rocks import RocksBackend

        on_damage = on_damage or ("restore" if spec.logged else "end")
        backend = RocksBackend(folder / spec.name, layout=layout, memory=memory, on_damage=on_damage)
    else:
        backend = MemoryBackend()
    try:
        return _STORES[spec.kind](spec, backend)
    except BaseException:
        backend.close()
        raise


def _layout(spec: StoreSpec) -> bytes:
    if spec.is_versioned:
        return layout_of_versions(segment_ms_of(spec))
    if spec.kind not in SEGMENTED:
        return b""
    segment_ms = segment_ms_for(spec.retention_ms)
    return layout_of(segment_ms, sessions=spec.kind == "session", by_time=spec.by_time)


__all__ = [
    "PUT_RETURN_CODE_NOT_PUT",
    "PUT_RETURN_CODE_VALID_TO_UNDEFINED",
    "Backend",
    "CachedStore",
    "Changed",
    "Entry",
    "JoinBufferStore",
    "JoinWindowStore",
    "KeyValueStore",
    "MemoryBackend",
    "OuterJoinStore",
    "Pending",
    "RocksMemory",
    "SessionStore",
    "StoreKind",
    "StoreSpec",
    "TimedStore",
    "VersionedRecord",
    "VersionedStore",
    "WaitingStore",
    "WindowStore",
    "check_installed",
    "open_store",
]
