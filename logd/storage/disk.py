"""Access to the disk for logs: files with explicit positions, and a few operations on names.

A `File` has five methods and `close`. All writes go through a `Disk`, so that a test can use a failing one
(`testing.FaultyDisk`). Listing directories and reading small files use `pathlib`.

A descriptor outlives its `File`: a `FileSlice` that is being sent holds the `Descriptor`, which is closed
with the last reference. So neither deletion nor `close` can close a descriptor during a transfer. Otherwise
its number could be reused for another file in the middle of the transfer.
"""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from kafka_client.private_files import FILE_MODE
from kafka_client.records.slice import FileSlice
from logd.storage.errors import NotResident

Buffer: TypeAlias = bytes | bytearray | memoryview

IOV_MAX = 1024
"""Buffers per writev call; Linux accepts no more."""
PROBE_BYTES = 128 * 1024
"""The distance of the pages that are checked for residency: the kernel reads this much ahead, so neighbours
are resident together.
"""
WARM_BYTES = 1024 * 1024
"""Bytes per read when a file is only read to have it in memory."""

_NO_WAIT: int | None = getattr(os, "RWF_NOWAIT", None)
_CANNOT_TELL = (errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)


class _CachedOnly(threading.local):
    """A context in which the thread's reads raise NotResident if they would have to wait for the disk."""

    is_on = False

    def __enter__(self) -> None:
        self.is_on = True

    def __exit__(self, *_: object) -> None:
        self.is_on = False


CACHED_ONLY = _CachedOnly()
"""The context for reads on the event loop: `with CACHED_ONLY:`, not nested."""


class Descriptor:
    """An open file descriptor, closed with its last reference."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def fileno(self) -> int:
        """Return the descriptor's number."""
        return self.number

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        close(self.number)  # a default: at a program's end `os` may be gone before this


class File(Protocol):
    """An open file. Every method may raise OSError."""

    @property
    def descriptor(self) -> Descriptor:
        """The descriptor for `sendfile`; keep the object for as long as its number is in use."""

    def read(self, position: int, length: int) -> bytes:
        """Return up to `length` bytes at `position`; fewer only at the end of the file."""

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after another at `position`, all of them or raise."""

    def size(self) -> int:
        """Return the size of the file in bytes."""

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it with zeros."""

    def sync(self) -> None:
        """Wait until all writes are on the disk (fdatasync). Blocks: run it in a thread."""

    def close(self) -> None:
        """Release the file; the descriptor closes with its last reference. A second call does nothing."""


class Disk(Protocol):
    """The operations on names. Every method may raise OSError."""

    def open(self, path: Path, *, create: bool = True) -> File:
        """Open a file for reading and writing. Raises FileNotFoundError if it is missing and `create` is
        False.
        """

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file or directory atomically, replacing a file of the new name."""

    def unlink(self, path: Path) -> None:
        """Remove a file; a missing one is no error."""

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a directory are on the disk. Blocks: run it in a thread."""


class PosixFile:
    """A file of the operating system."""

    __slots__ = ("descriptor", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.descriptor = Descriptor(fd)

    def read(self, position: int, length: int) -> bytes:
        """See `File.read`."""
        if CACHED_ONLY.is_on:
            cached = _read_cached(self.fd, position, length)
            if cached is not None:
                return cached
            if not is_resident(FileSlice(self.fd, position, length)):
                ahead = FileSlice(self.fd, position, max(length, WARM_BYTES), self.descriptor)
                raise NotResident(partial(warm, ahead))
        data = os.pread(self.fd, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        got = len(data)
        while got < length and (data := os.pread(self.fd, length - got, position + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """See `File.write`."""
        total = sum(map(len, buffers))
        if len(buffers) <= IOV_MAX and os.pwritev(self.fd, buffers, position) == total:
            return
        # Too many buffers, or a short write (a nearly full disk): write the same bytes again, piece by
        # piece.
        for buffer in buffers:
            view = memoryview(buffer)
            while view:
                written = os.pwrite(self.fd, view, position)
                view = view[written:]
                position += written

    def size(self) -> int:
        """See `File.size`."""
        return os.fstat(self.fd).st_size

    def truncate(self, size: int) -> None:
        """See `File.truncate`."""
        os.ftruncate(self.fd, size)

    def sync(self) -> None:
        """See `File.sync`."""
        if hasattr(os, "fdatasync"):
            os.fdatasync(self.fd)
        else:
            os.fsync(self.fd)  # macOS has only this one

    def close(self) -> None:
        """See `File.close`."""
        if self.fd >= 0:
            del self.descriptor
            self.fd = -1


class PosixDisk:
    """The operating system's files."""

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return PosixFile(os.open(path, flags, FILE_MODE))

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk.rename`."""
        source.replace(target)

    def unlink(self, path: Path) -> None:
        """See `Disk.unlink`."""
        path.unlink(missing_ok=True)

    def sync_folder(self, path: Path) -> None:
        """See `Disk.sync_folder`."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def read_slice(piece: FileSlice) -> bytes:
    """Return the bytes of a slice that cannot be sent by `sendfile`. May raise OSError."""
    data = os.pread(piece.fd, piece.length, piece.position)
    while len(data) < piece.length:
        more = os.pread(piece.fd, piece.length - len(data), piece.position + len(data))
        if not more:
            break
        data += more
    return data


def _read_cached(fd: int, position: int, length: int) -> bytes | None:
    """Return the bytes if all are in memory and the system can tell, else None. May raise OSError."""
    if _NO_WAIT is None:
        return None
    buffer = bytearray(length)
    try:
        got = os.preadv(fd, (buffer,), position, _NO_WAIT)
    except BlockingIOError:
        return None
    except OSError as error:
        if error.errno not in _CANNOT_TELL:
            raise
        return None
    return bytes(buffer) if got == length else None


def is_resident(piece: FileSlice) -> bool:
    """Return True if the slice's pages are in memory, so that sending it does not wait for the disk.

    One page per ``PROBE_BYTES`` is checked. Also True if the system cannot tell. May raise OSError.
    """
    if _NO_WAIT is None:
        return True
    last = piece.position + piece.length - 1
    byte = [bytearray(1)]
    try:
        for position in (*range(piece.position, last, PROBE_BYTES), last):
            os.preadv(piece.fd, byte, position, _NO_WAIT)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT_TELL:
            raise
    return True


def warm(piece: FileSlice) -> None:
    """Read the slice's pages into memory. Blocks: run it in a thread. May raise OSError."""
    buffer = memoryview(bytearray(min(WARM_BYTES, piece.length)))
    end = piece.position + piece.length
    for position in range(piece.position, end, WARM_BYTES):
        os.preadv(piece.fd, [buffer[: end - position]], position)


def write_atomically(
    disk: Disk, path: Path, data: bytes, *, sync: bool = True, sync_name: bool = True
) -> None:
    """Write `data` to `path` so that a crash leaves either the old content or the new one, whole.

    Blocks with `sync`. Without it a power loss may leave the file empty: only for files whose readers notice
    that. Without `sync_name` a power loss may leave the old content until the caller syncs the directory.
    """
    temporary = path.with_name(path.name + ".tmp")
    file = disk.open(temporary)
    try:
        file.truncate(0)
        file.write(0, [data])
        if sync:
            file.sync()
    finally:
        file.close()
    disk.rename(temporary, path)
    if sync and sync_name:
        disk.sync_folder(path.parent)


def remove_folder(path: Path, *, ignore_errors: bool = False) -> None:
    """Remove a directory with its content. Raises OSError, unless `ignore_errors` is set."""
    from shutil import rmtree  # slow to import, and a start removes nothing

    rmtree(path, ignore_errors=ignore_errors)
