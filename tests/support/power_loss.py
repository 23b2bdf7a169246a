"""A disk whose machine may die at any operation: what a kill leaves, and what a power loss may leave.

The fault model, of `PowerLossDisk.after_power_loss`:

- What was written to a file and not synced may be lost, whole or by sectors of 512 bytes, each on its own,
  and so may come in any order; the file may have grown all the same, with zeros where something was lost.
- A name made, changed or removed in a folder and not synced by `sync_folder` may be undone; those of one
  folder in the order opposite to that in which they happened, as a journalling file system does it. Folders
  themselves stay.
- A sync that returned kept everything before it. A crash in the middle of a write leaves a part of it.

Randomness is passed in, so that a seed gives the same loss again.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Sequence
from pathlib import Path

from logd.storage.disk import Buffer, Descriptor, File, PosixDisk

SECTOR = 512


class Crashed(BaseException):
    """The machine is dead; nothing may catch this as an error of the disk."""


class Content:
    """What a file holds for sure, and what was done to it since: (position, data), or (size, None)."""

    def __init__(self, durable: bytes) -> None:
        self.durable = durable
        self.pending: list[tuple[int, bytes | None]] = []

    def after_power_loss(self, rng: random.Random) -> bytes:
        """One of the contents a power loss may leave."""
        survived = bytearray(self.durable)
        for position, data in self.pending:
            fate = rng.choice(("lost", "zeros", "torn", "whole"))
            if fate == "lost":
                continue
            if data is None:
                _resize(survived, position)
                continue
            if len(survived) < position + len(data):
                _resize(survived, position + len(data))
            kept = data if fate == "whole" else b"" if fate == "zeros" else None
            if kept is None:
                for start in range(0, len(data), SECTOR):
                    if rng.random() < 0.5:
                        sector = data[start : start + SECTOR]
                        survived[position + start : position + start + len(sector)] = sector
            else:
                survived[position : position + len(kept)] = kept
        return bytes(survived)


def _resize(content: bytearray, size: int) -> None:
    if len(content) > size:
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


class PowerLossDisk(PosixDisk):
    """Works on real files below `root` until operation number `crash_at` (from 0), which raises `Crashed`.

    `done` names the operations so far, as (operation, file name).
    """

    def __init__(self, root: Path, rng: random.Random, crash_at: int | None = None) -> None:
        self.root = root
        self.rng = rng
        self.crash_at = crash_at
        self.crashed = False
        self.done: list[tuple[str, str]] = []
        self._names: dict[Path, Content] = {}
        self._durable_names: dict[Path, Content] = {}
        self._pending: dict[Path, list[tuple[Path | None, Path | None, Content | None]]] = {}
        for path in root.rglob("*"):
            if path.is_file():
                self._names[path] = self._durable_names[path] = Content(path.read_bytes())

    # What is left

    def after_kill(self, target: Path) -> Path:
        """A copy of the files as they are: the kernel lives on and loses nothing."""
        shutil.copytree(self.root, target)
        return target

    def after_power_loss(self, target: Path) -> Path:
        """A copy of the files as a power loss may leave them."""
        target.mkdir(parents=True)
        names = dict(self._durable_names)
        for pending in self._pending.values():
            for source, destination, content in pending[: self.rng.randint(0, len(pending))]:
                _apply(names, source, destination, content)
        for folder in self.root.rglob("*"):
            if folder.is_dir():
                (target / folder.relative_to(self.root)).mkdir(parents=True, exist_ok=True)
        for path, content in names.items():
            copy = target / path.relative_to(self.root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(content.after_power_loss(self.rng))
        return target

    # `Disk`

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        content = self._names.get(path)
        if content is None and path.exists():
            # Not made through this disk: an empty file, or one another process has made and synced.
            content = self._names[path] = self._durable_names[path] = Content(path.read_bytes())
        if content is None and create:
            self.step("create", path)
        file = super().open(path, create=create)
        if content is None:
            content = Content(b"")
            self._rename(None, path, content)
        return _File(self, path, file, content)

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk.rename`."""
        self.step("rename", source)
        super().rename(source, target)
        self._rename(source, target, None)

    def unlink(self, path: Path) -> None:
        """See `Disk.unlink`."""
        if path in self._names:
            self.step("unlink", path)
            self._rename(path, None, None)
        super().unlink(path)

    def sync_folder(self, path: Path) -> None:
        """See `Disk.sync_folder`."""
        self.step("sync folder", path)
        for source, target, content in self._pending.pop(path, []):
            _apply(self._durable_names, source, target, content)

    def step(self, operation: str, path: Path) -> None:
        """One operation more; it is the last if the machine dies here."""
        if self.crashed or len(self.done) == self.crash_at:
            self.crashed = True
            raise Crashed(f"at {operation} {path.name}")
        self.done.append((operation, path.name))

    def _rename(self, source: Path | None, target: Path | None, content: Content | None) -> None:
        _apply(self._names, source, target, content)
        where = target or source
        assert where is not None
        self._pending.setdefault(where.parent, []).append((source, target, content))


def _apply(
    names: dict[Path, Content], source: Path | None, target: Path | None, content: Content | None
) -> None:
    """Carry out a change of names: files below a folder go with it."""
    if content is not None:
        assert target is not None
        names[target] = content
        return
    assert source is not None
    for path in [source] if source in names else [path for path in names if source in path.parents]:
        moved = names.pop(path)
        if target is not None:
            names[target / path.relative_to(source) if path != source else target] = moved


class _File:
    """A file of a `PowerLossDisk`."""

    def __init__(self, disk: PowerLossDisk, path: Path, file: File, content: Content) -> None:
        self._disk = disk
        self._path = path
        self._file = file
        self._content = content

    @property
    def descriptor(self) -> Descriptor:
        """See `File.descriptor`."""
        return self._file.descriptor

    def read(self, position: int, length: int) -> bytes:
        """See `File.read`."""
        return self._file.read(position, length)

    def write(self, position: int, buffers: Sequence[Buffer]) -> None:
        """See `File.write`."""
        data = b"".join(buffers)
        try:
            self._disk.step("write", self._path)
        except Crashed:
            self._write(position, data[: self._disk.rng.randint(0, len(data))])
            raise
        self._write(position, data)

    def _write(self, position: int, data: bytes) -> None:
        self._file.write(position, [data])
        self._content.pending.append((position, data))

    def size(self) -> int:
        """See `File.size`."""
        return self._file.size()

    def truncate(self, size: int) -> None:
        """See `File.truncate`."""
        self._disk.step("truncate", self._path)
        self._file.truncate(size)
        self._content.pending.append((size, None))

    def sync(self) -> None:
        """See `File.sync`."""
        self._disk.step("sync", self._path)
        content = bytearray(self._content.durable)
        for position, data in self._content.pending:
            if data is None:
                _resize(content, position)
            else:
                if len(content) < position:
                    _resize(content, position)
                content[position : position + len(data)] = data
        self._content.durable, self._content.pending = bytes(content), []

    def close(self) -> None:
        """See `File.close`."""
        self._file.close()
