"""A disk whose machine may die at any operation, by a kill or by a power loss.

The fault model, of `PowerLossDisk.after_power_loss`:

- A write to a file that was not synced may be lost, whole or by sectors of 512 bytes, each on its own. So
  writes may reach the disk in any order. The file may have grown all the same, with zeros for lost sectors.
- A name made, changed or removed in a folder and not synced by `sync_folder` may be undone. Changes in one
  folder are undone latest first, as a journalling file system does it. With a folder's name, all that is in
  the folder is undone.
- A sync that returned made everything before it durable. A crash in the middle of a write leaves a part.

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
    """A file's durable bytes, and its changes since: (position, data), or (size, None) for a truncation."""

    def __init__(self, durable: bytes) -> None:
        self.durable = durable
        self.pending: list[tuple[int, bytes | None]] = []

    def after_power_loss(self, rng: random.Random) -> bytes:
        """Return one of the contents that a power loss may leave."""
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
            survivor = data if fate == "whole" else b"" if fate == "zeros" else None
            if survivor is None:
                for start in range(0, len(data), SECTOR):
                    if rng.random() < 0.5:
                        sector = data[start : start + SECTOR]
                        survived[position + start : position + start + len(sector)] = sector
            else:
                survived[position : position + len(survivor)] = survivor
        return bytes(survived)


def _resize(content: bytearray, size: int) -> None:
    if len(content) > size:
        del content[size:]
    else:
        content.extend(bytes(size - len(content)))


class Folder:
    """The names in a folder: as they are, as they are for sure, and the changes between the two, which are
    (old name, new name, the node that has the name).
    """

    def __init__(self) -> None:
        self.names: dict[str, Folder | Content] = {}
        self.durable: dict[str, Folder | Content] = {}
        self.pending: list[tuple[str | None, str | None, Folder | Content | None]] = []

    @classmethod
    def read_from(cls, path: Path) -> Folder:
        """Return a folder whose present names and contents are durable."""
        folder = cls()
        for entry in sorted(path.iterdir()):
            folder.keep(entry.name, cls.read_from(entry) if entry.is_dir() else Content(entry.read_bytes()))
        return folder

    def keep(self, name: str, node: Folder | Content) -> None:
        """Add a durable name."""
        self.names[name] = self.durable[name] = node

    def change(self, old_name: str | None, new_name: str | None, node: Folder | Content | None) -> None:
        """Apply a change that is not durable until `sync`."""
        _change(self.names, old_name, new_name, node)
        self.pending.append((old_name, new_name, node))

    def sync(self) -> None:
        """Make the present names durable."""
        self.durable, self.pending = dict(self.names), []

    def write_after_power_loss(self, target: Path, rng: random.Random) -> None:
        """Make one of the folders a power loss may leave."""
        target.mkdir(parents=True)
        names = dict(self.durable)
        for change in self.pending[: rng.randint(0, len(self.pending))]:
            _change(names, *change)
        for name, node in names.items():
            if isinstance(node, Folder):
                node.write_after_power_loss(target / name, rng)
            else:
                (target / name).write_bytes(node.after_power_loss(rng))


def _change(
    names: dict[str, Folder | Content],
    old_name: str | None,
    new_name: str | None,
    node: Folder | Content | None,
) -> None:
    if old_name is not None:
        names.pop(old_name, None)
    if new_name is not None:
        assert node is not None
        names[new_name] = node


class PowerLossDisk(PosixDisk):
    """Works on real files below `root` until operation number `crash_at` (from 0), which raises `Crashed`.

    `done` names the operations so far, as (operation, file name). Folders are taken notice of as soon as
    something is made in them.
    """

    def __init__(self, root: Path, rng: random.Random, crash_at: int | None = None) -> None:
        self.root = root
        self.rng = rng
        self.crash_at = crash_at
        self.crashed = False
        self.died_at = ""
        self.done: list[tuple[str, str]] = []
        self._tree = Folder.read_from(root)

    # What is left

    def after_kill(self, target: Path) -> Path:
        """Copy the files as they are to `target`: the kernel lives on and loses nothing."""
        shutil.copytree(self.root, target)
        return target

    def after_power_loss(self, target: Path) -> Path:
        """Write the files to `target` as a power loss may leave them."""
        self._tree.write_after_power_loss(target, self.rng)
        return target

    # `Disk`

    def open(self, path: Path, *, create: bool = True) -> File:
        """See `Disk.open`."""
        folder = self._folder(path.parent)
        content = folder.names.get(path.name)
        if content is None and path.exists():
            # Not made through this disk: an empty file, or one another process has made and synced.
            content = Content(path.read_bytes())
            folder.keep(path.name, content)
        if content is None and create:
            self.step("create", path)
        file = super().open(path, create=create)
        if content is None:
            content = Content(b"")
            folder.change(None, path.name, content)
        assert isinstance(content, Content)
        return _File(self, path, file, content)

    def rename(self, source: Path, target: Path) -> None:
        """See `Disk.rename`."""
        self.step("rename", source)
        super().rename(source, target)
        before, after = self._folder(source.parent), self._folder(target.parent)
        node = before.names.get(source.name)
        if node is None:
            node = self._folder(source)  # with nothing in it
        if before is after:
            before.change(source.name, target.name, node)
        else:
            before.change(source.name, None, None)
            after.change(None, target.name, node)

    def unlink(self, path: Path) -> None:
        """See `Disk.unlink`."""
        folder = self._folder(path.parent)
        if path.name in folder.names:
            self.step("unlink", path)
            folder.change(path.name, None, None)
        super().unlink(path)

    def sync_folder(self, path: Path) -> None:
        """See `Disk.sync_folder`."""
        if not path.is_dir():
            raise FileNotFoundError(path)
        self.step("sync folder", path)
        self._folder(path).sync()

    def step(self, operation: str, path: Path) -> None:
        """Count an operation. Raises Crashed if the machine is dead, or dies at this operation."""
        if self.crashed or len(self.done) == self.crash_at:
            if not self.crashed:
                self.died_at = f"at {operation} {path.parent.name}/{path.name}"
            self.crashed = True
            raise Crashed(self.died_at)
        self.done.append((operation, path.name))

    def _folder(self, path: Path) -> Folder:
        if path == self.root:
            return self._tree
        parent = self._folder(path.parent)
        node = parent.names.get(path.name)
        if node is None:
            node = Folder()
            parent.change(None, path.name, node)
        assert isinstance(node, Folder)
        return node


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
