"""State: key-value and window stores, each a write-back cache over memory or RocksDB."""

from __future__ import annotations

from pathlib import Path

from streams.state.backend import Backend, MemoryBackend
from streams.state.cache import CachedStore, Pending
from streams.state.entries import Entry
from streams.state.key_value import KeyValueStore
from streams.state.rocks import RocksBackend
from streams.state.segments import layout_of, segment_ms_for
from streams.state.spec import StoreKind, StoreSpec
from streams.state.window import WindowStore


def open_store(spec: StoreSpec, folder: Path | None) -> CachedStore:
    """Make one task's store of a spec, in memory when the spec or the caller (no folder) says so."""
    layout = layout_of(segment_ms_for(spec.retention_ms)) if spec.kind == "window" else b""
    backend: Backend
    if spec.persistent and folder is not None:
        backend = RocksBackend(folder / spec.name, layout=layout)
    else:
        backend = MemoryBackend()
    return WindowStore(spec, backend) if spec.kind == "window" else KeyValueStore(spec, backend)


__all__ = [
    "Backend",
    "CachedStore",
    "Entry",
    "KeyValueStore",
    "MemoryBackend",
    "Pending",
    "RocksBackend",
    "StoreKind",
    "StoreSpec",
    "WindowStore",
    "open_store",
]
