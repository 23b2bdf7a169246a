"""Source offsets of spooled files: which file it is, and how far it was read.

A file is the same if size, time of change and first bytes are, and, once it is done, the inode. Device
numbers do not count: they change with a reboot, and from one worker to the next.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from plugins.files.identity import HEAD_BYTES, head_digest


class FileIdentity(NamedTuple):
    """A file's inode, size in bytes, time of the last change in ns, and the digest of its first bytes."""

    inode: int
    size: int
    changed_ns: int
    digest: str

    def __str__(self) -> str:
        return ":".join(map(str, self))

    @classmethod
    def parse(cls, text: object) -> FileIdentity | None:
        """Return the identity that `str` wrote, or None if the text is none."""
        try:
            inode, size, changed_ns, digest = str(text).split(":")
            return cls(int(inode), int(size), int(changed_ns), digest)
        except ValueError:
            return None

    @classmethod
    def of_status(cls, status: os.stat_result) -> FileIdentity:
        """Return the identity of a file whose content was not read."""
        return cls(status.st_ino, status.st_size, status.st_mtime_ns, "")

    @classmethod
    def of(cls, path: Path) -> FileIdentity:
        """Return the identity of the file that has the name now. Raises OSError if it cannot be read."""
        with path.open("rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            return cls(status.st_ino, status.st_size, status.st_mtime_ns, head_digest(file.read(HEAD_BYTES)))

    def has_status(self, status: os.stat_result) -> bool:
        """Return True if inode, size and time are those of the status."""
        return self[:3] == (status.st_ino, status.st_size, status.st_mtime_ns)

    def is_copy_of(self, other: FileIdentity) -> bool:
        """Return True if all but the inode is the same."""
        return self[1:] == other[1:]

    def has_grown_from(self, other: FileIdentity, path: Path) -> bool:
        """Return True if this is the file at `path` and is `other` with more bytes at its end."""
        if self.inode != other.inode or self.size <= other.size:
            return False
        with path.open("rb", buffering=0) as file:
            return head_digest(file.read(min(other.size, HEAD_BYTES))) == other.digest


class FileOffset(NamedTuple):
    """The place behind the last row that was read of a file."""

    identity: FileIdentity
    position: int
    """The byte in the decompressed file, of formats with lines."""
    line: int
    """Lines read, or records of other formats."""
    done: bool = False
    failed: bool = False
    """True if the file could not be read any further and was set aside."""

    @classmethod
    def parse(cls, document: Mapping[str, Any] | None) -> FileOffset | None:
        """Return the offset that `document` wrote, or None if it is none."""
        identity = FileIdentity.parse((document or {}).get("file"))
        if document is None or identity is None:
            return None
        position, line = document.get("position"), document.get("line")
        if not isinstance(position, int) or not isinstance(line, int):
            return None
        return cls(identity, position, line, bool(document.get("done")), bool(document.get("failed")))

    @property
    def is_over(self) -> bool:
        """True if nothing more of the file is to be read."""
        return self.done or self.failed

    def document(self) -> dict[str, Any]:
        """Return the source offset."""
        document: dict[str, Any] = {
            "file": str(self.identity),
            "position": self.position,
            "line": self.line,
        }
        return document | ({"done": True} if self.done else {}) | ({"failed": True} if self.failed else {})


def partition_of(name: str) -> dict[str, str]:
    """Return the source partition of a name below the folder; one that is no UTF-8 is in hexadecimal."""
    raw = os.fsencode(name)
    try:
        return {"filename": raw.decode("utf-8")}
    except UnicodeDecodeError:
        return {"filename_hex": raw.hex()}
