"""FileOffsetStore: a standalone worker's offsets in one file (`offset.storage.file.filename`).

The file is JSON lines, `[["connector",{partition}],{offset}]`, written whole to a temporary file beside it,
fsynced and renamed: a crash leaves the old or the new one. A lock keeps a second worker from it. Keys stay in
the file byte for byte as they are, and are looked up by their normal form. The file of a Java worker is
another one, a serialized HashMap.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from connect.errors import ConfigError, ConnectError
from connect.stores.offset_keys import normal_form

_DECODER = json.JSONDecoder()
_KEY = "offset.storage.file.filename"


class FileOffsetStore:
    """A store of source offsets in a file. Open it with `FileOffsetStore.open(path)`, and `close` it."""

    def __init__(self, path: Path, offsets: dict[bytes, tuple[bytes, bytes]], lock: int) -> None:
        self._path = path
        self._offsets = offsets
        """Key as written and value, by the key's normal form."""
        self._lock = lock
        self._writing = asyncio.Lock()
        self._puts: set[asyncio.Task[None]] = set()

    @classmethod
    def open(cls, path: Path) -> FileOffsetStore:
        """Read the file, if it exists. Raises ConfigError if it is unusable or another worker uses it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as e:
            raise ConfigError(_KEY, path, f"cannot be written: {e.strerror}") from e
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return cls(path, _read(path), lock)
        except BlockingIOError as e:
            os.close(lock)
            raise ConfigError(_KEY, path, "is used by another worker") from e
        except BaseException:
            os.close(lock)
            raise

    def close(self) -> None:
        """Unlock the file for other workers."""
        os.close(self._lock)

    def get(self, key: bytes) -> bytes | None:
        """Return the offset stored under `key`, or None."""
        stored = self._offsets.get(key) or self._offsets.get(normal_form(key))
        return None if stored is None else stored[1]

    def keys(self) -> Iterable[bytes]:
        """Return the keys of all stored offsets, in their normal form."""
        return list(self._offsets)

    async def refresh(self) -> None:
        """Return at once: no other worker writes the file."""

    async def put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        """Write the file again with these changes, and return once it is synced.

        If the caller is cancelled, the write continues, and the next write waits for its end.
        """
        put = asyncio.create_task(self._put(offsets))
        self._puts.add(put)
        put.add_done_callback(self._puts.discard)
        await asyncio.shield(put)

    async def _put(self, offsets: Mapping[bytes, bytes | None]) -> None:
        async with self._writing:
            changed = dict(self._offsets)
            for key, value in offsets.items():
                normal = normal_form(key)
                if value is None:
                    changed.pop(normal, None)
                else:
                    changed[normal] = (changed[normal][0] if normal in changed else key, value)
            try:
                await asyncio.to_thread(_write, self._path, changed)
            except OSError as e:
                raise ConnectError(f"source offsets cannot be written to {self._path}: {e}") from e
            self._offsets = changed


def _read(path: Path) -> dict[bytes, tuple[bytes, bytes]]:
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return {}
    try:
        pairs = [_pair(line.decode()) for line in lines if line]
        return {normal_form(key): (key, value) for key, value in pairs}
    except (ValueError, TypeError, RecursionError) as e:
        raise ConfigError(_KEY, path, f"holds something else than source offsets: {e}") from e


def _pair(line: str) -> tuple[bytes, bytes]:
    """Return key and value of a line as they are written there. Raises ValueError."""
    _, _ = json.loads(line)
    inside = line.strip()[1:-1].strip()
    _, end = _DECODER.raw_decode(inside)
    return inside[:end].encode(), inside[end:].lstrip().removeprefix(",").strip().encode()


def _write(path: Path, offsets: Mapping[bytes, tuple[bytes, bytes]]) -> None:
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.writelines(b"[%b,%b]\n" % pair for pair in offsets.values())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
