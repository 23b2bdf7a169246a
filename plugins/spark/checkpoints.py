"""Checkpoints of a table: all its files in one object, so that nobody reads every manifest.

    <table>/_checkpoints/00000100.json     the files of the table as of manifest 100
    <table>/_checkpoints/last              the number of the newest checkpoint

A checkpoint follows from the manifests, so it is never needed: without one, or if it cannot be read, the
manifests from the first on say the same. The number in `last` is a place to start looking for the newest
manifest, and may be behind.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from plugins.spark.manifest import DataFile

CHECKPOINTS = "_checkpoints"
INTERVAL = 100
"""Manifests between two checkpoints: a reader reads at most about so many."""
_KEPT = 2
"""Checkpoints that are not removed: the newest, and one for readers that are about to read it."""
_LAST = "last"

_log = logging.getLogger(__name__)


class RemovedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that compaction replaced. Readers of an older manifest may still need it."""

    path: str
    removed_at_ms: int


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """The files of a table as of manifest `number`, in the order of their commits."""

    number: int
    files: tuple[DataFile, ...] = ()
    removed: tuple[RemovedFile, ...] = ()


class Checkpoints:
    """The checkpoints of the table in the folder `table`."""

    def __init__(self, table: Path) -> None:
        self.path = table / CHECKPOINTS

    def last_number(self) -> int:
        """Return the number of a recent checkpoint, or 0 if there is none."""
        with suppress(FileNotFoundError, ValueError):
            return max(0, int((self.path / _LAST).read_text()))
        return 0

    def read_last(self, at_most: int) -> Checkpoint:
        """Return the newest checkpoint of at most this number; an empty one of number 0 if there is none."""
        for candidate in self._candidates(at_most):
            try:
                return msgspec.json.decode((self.path / _name(candidate)).read_bytes(), type=Checkpoint)
            except FileNotFoundError:
                continue  # a checkpoint that was replaced meanwhile
            except ValueError as e:
                _log.warning("%s is not readable, older ones are used: %s", self.path / _name(candidate), e)
        return Checkpoint(number=0)

    def _candidates(self, at_most: int) -> Iterator[int]:
        number = self.last_number()
        if 0 < number <= at_most:
            yield number
        yield from reversed([n for n in self._numbers() if n <= at_most and n != number])

    def write(self, checkpoint: Checkpoint) -> None:
        """Write the checkpoint, point to it, and remove old ones."""
        self.path.mkdir(exist_ok=True)
        self._replace(_name(checkpoint.number), msgspec.json.encode(checkpoint))
        self._replace(_LAST, b"%d\n" % checkpoint.number)
        for number in self._numbers()[:-_KEPT]:
            (self.path / _name(number)).unlink(missing_ok=True)

    def _replace(self, name: str, data: bytes) -> None:
        aside = self.path / f".{name}.{secrets.token_hex(4)}"
        with open(aside, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.rename(self.path / name)

    def _numbers(self) -> list[int]:
        with suppress(FileNotFoundError):
            names = os.listdir(self.path)
            return sorted(int(name[:-5]) for name in names if name.endswith(".json") and name[0] != ".")
        return []


def _name(number: int) -> str:
    return f"{number:08d}.json"
