"""The disk as logs see it: files with explicit positions, and a few operations on names.

A `File` is five methods and `close`. Everything that writes goes through a `Disk`, so that a test can put a
failing one underneath (`testing.FaultyDisk`). Listing and plain reading of small files use `pathlib`.

A descriptor outlives its file: a `FileSlice` being sent holds the `Descriptor`, which closes when the last
holder lets go of it. So neither deletion nor `close` can pull a descriptor from under a transfer, or worse,
let the number be given to another file in the middle of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, TypeAlias

from logd.records.slice import FileSlice

Buffer: TypeAlias = bytes | bytearray | memoryview

IOV_MAX = 1024
"""Buffers per writev call; Linux takes no more."""


class Descriptor:
    """An open file descriptor, closed when the last reference goes."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def fileno(self) -> int:
        """The descriptor's number."""
        return self.number

    def __del__(self) -> None:
        os.close(self.number)


class File(Protocol):
    """An open file. Every method may raise OSError."""

    @property
    def descriptor(self) -> Descriptor:
        """For `sendfile`; keep the object for as long as its number is in use."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes at `position`; fewer only at the end of the file."""

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """Write the buffers one after another, all of them or raise."""

    def size(self) -> int:
        """Bytes in the file."""

    def truncate(self, size: int) -> None:
        """Cut the file, or extend it with zeros."""

    def sync(self) -> None:
        """Wait until what was written is on the disk (fdatasync). Blocks: run it in a thread."""

    def close(self) -> None:
        """Let go of the file; the descriptor closes with its last holder."""


class Disk(Protocol):
    """The operations on names. Every method may raise OSError."""

    def open(self, path: Path, *, create: bool = True) -> File:
        """Open for reading and writing; FileNotFoundError if it is not there and not to be created."""

    def rename(self, source: Path, target: Path) -> None:
        """Give a file or folder another name, atomically, replacing a file of that name."""

    def unlink(self, path: Path) -> None:
        """Remove a file; one that is already gone is fine."""

    def sync_folder(self, path: Path) -> None:
        """Wait until the names in a folder are on the disk. Blocks: run it in a thread."""


class PosixFile:
    """A file of the operating system."""

    __slots__ = ("descriptor", "fd")

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self.descriptor = Descriptor(fd)

    def read(self, position: int, length: int) -> bytes:
        """See `File.read`."""
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
        # Too many buffers, or a short write, as a nearly full disk gives: the same bytes again, piece by
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
        os.fdatasync(self.fd)

    def close(self) -> None:
        """See `File.close`."""
        del self.descriptor
        self.fd = -1


class PosixDisk:
    """The operating system's files."""

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return PosixFile(os.open(path, flags, 0o644))

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
    """The bytes of a slice, for where they cannot go out by `sendfile`. May raise OSError."""
    data = os.pread(piece.fd, piece.length, piece.position)
    while len(data) < piece.length:
        more = os.pread(piece.fd, piece.length - len(data), piece.position + len(data))
        if not more:
            break
        data += more
    return data


def write_atomically(disk: Disk, path: Path, data: bytes, *, sync: bool = True) -> None:
    """Put `data` under `path` so that a crash leaves the old content or the new one, whole.

    Blocks with `sync`. Without it a power loss may leave the file empty: only where reading finds that out.
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
    if sync:
        disk.sync_folder(path.parent)
