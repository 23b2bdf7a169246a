"""Identity: by what a file is known again, whatever its name is now.

A file is the same if device, inode and first bytes are the same. The first bytes count because file systems
give the inode of a deleted file to another one. A copy, such as a restored backup, is told by them alone.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple

HEAD_BYTES = 256
"""How many of a file's first bytes are compared, at most those that were read."""
_SIBLINGS_MAX = 100_000
"""How many files of a folder are looked at for a renamed one."""


class Identity(NamedTuple):
    """A file's device and inode, and the digest of its first `size` bytes."""

    device: int
    inode: int
    size: int
    digest: str

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @classmethod
    def parse(cls, text: object) -> Identity | None:
        """Return the identity that `str` wrote, or None if the text is none."""
        try:
            device, inode, size, digest = str(text).split(":")
            return cls(int(device), int(inode), int(size), digest)
        except ValueError:
            return None

    @classmethod
    def of(cls, descriptor: int, position: int) -> Identity:
        """Return the identity of an open file, by what is before `position`."""
        status = os.fstat(descriptor)
        head = os.pread(descriptor, min(position, HEAD_BYTES), 0)
        return cls(status.st_dev, status.st_ino, len(head), head_digest(head))

    @property
    def is_final(self) -> bool:
        """True if reading on will not change it."""
        return self.size == HEAD_BYTES

    @property
    def place(self) -> tuple[int, int]:
        """The device and the inode."""
        return self.device, self.inode

    def is_of(self, path: Path) -> bool:
        """Return True if the file at `path` begins as this one does."""
        try:
            with path.open("rb") as file:
                return head_digest(file.read(self.size)) == self.digest
        except OSError:
            return False

    def path_now(self, path: Path) -> Path | None:
        """Return where the file is now: `path`, or another name in its folder. None if it is gone."""
        if self._is_place_of(path) and self.is_of(path):
            return path
        for sibling in self._siblings(path):
            if self.is_of(sibling):
                return sibling
        # A copy has another inode. Few bytes are no proof: most logs begin alike.
        return path if self.is_final and self.is_of(path) else None

    def _is_place_of(self, path: Path) -> bool:
        try:
            status = path.stat()
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.place

    def _siblings(self, path: Path) -> list[Path]:
        """Return the names in the folder with this inode."""
        try:
            with os.scandir(path.parent) as entries:
                same = [
                    e.path
                    for _, e in zip(range(_SIBLINGS_MAX), entries, strict=False)
                    if e.inode() == self.inode
                ]
        except OSError:
            return []
        return [each for each in map(Path, same) if self._is_place_of(each)]


def head_digest(head: bytes) -> str:
    """Return the digest by which two files' first bytes are compared."""
    return hashlib.blake2b(head, digest_size=8).hexdigest()
