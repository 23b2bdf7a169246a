"""A Parquet table that one writer at a time adds to, atomically.

    <table>/_manifests/00000001.json …            what is committed: files, rows, next offsets
    <table>/data/_batch=00000002-1f3a9c/…         one folder per attempt to write a batch
    <table>/data/_batch=…/month=2013-01/part-….parquet

Invariants:
- A row is in the table if and only if a manifest names its file; readers read only these files.
- Manifest N+1 is created only if manifest N is the newest, and exists whole or not at all: it is written to a
  temporary file, synced, and linked to its name, which fails if the name exists.
- A writer claims the table by a manifest without files before it removes anything. Earlier writers can then
no
  longer commit, so no manifest will ever name a folder that none names now: the folder is an orphan.

This module depends on neither Spark nor the log.
"""

from __future__ import annotations

import os
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from plugins.spark.errors import Fenced
from plugins.spark.manifest import DataFile, Manifest, decode, encode
from plugins.spark.settings import BATCH_COLUMN

MANIFESTS = "_manifests"
DATA = "data"


class ParquetTable:
    """The table in a local folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data_path = path / DATA
        self._manifests_path = path / MANIFESTS

    def create(self) -> None:
        """Create the table's folders if they are missing."""
        self.data_path.mkdir(parents=True, exist_ok=True)
        self._manifests_path.mkdir(exist_ok=True)

    def numbers(self) -> list[int]:
        """Return the numbers of the committed manifests, in order."""
        with suppress(FileNotFoundError):
            return sorted(
                int(name[:-5]) for name in os.listdir(self._manifests_path) if name.endswith(".json")
            )
        return []

    def manifests(self) -> Iterator[Manifest]:
        """Return all committed manifests, oldest first."""
        return map(self._read, self.numbers())

    def latest(self) -> Manifest | None:
        """Return the newest manifest, the table's state and positions, or None for a new table."""
        numbers = self.numbers()
        return self._read(numbers[-1]) if numbers else None

    def files(self) -> list[DataFile]:
        """Return all files of the table, in order of commit."""
        return [file for manifest in self.manifests() for file in manifest.files]

    def partition_columns(self) -> list[str] | None:
        """Return the columns in the folder names of the newest file, or None if there are no files."""
        files = self.files()
        return [part.partition("=")[0] for part in Path(files[-1].path).parts[2:-1]] if files else None

    def claim(self) -> Manifest:
        """Become the table's writer: from now on no other writer's commit succeeds. Returns the new state."""
        while True:
            latest = self.latest()
            claim = Manifest(
                number=1 if latest is None else latest.number + 1,
                writer=secrets.token_hex(8),
                committed_at_ms=int(time.time() * 1000),
                rows=0 if latest is None else latest.rows,
                positions={} if latest is None else latest.positions,
                value_schema=None if latest is None else latest.value_schema,
                table_schema=None if latest is None else latest.table_schema,
            )
            with suppress(Fenced):
                self.commit(claim)
                return claim

    def commit(self, manifest: Manifest) -> None:
        """Commit `manifest`. Raises Fenced if another writer has committed its number.

        After a crash in this method, `latest` shows whether the commit took place.
        """
        for folder in {self.path / file.path for file in manifest.files}:
            self._sync_above(folder)
        name = f"{manifest.number:08d}.json"
        aside = self._manifests_path / f".{name}.{secrets.token_hex(4)}"
        with open(aside, "xb") as file:
            file.write(encode(manifest))
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(aside, self._manifests_path / name)
        except FileExistsError:
            raise Fenced(f"{self.path}: manifest {manifest.number} was committed by another writer") from None
        finally:
            aside.unlink()
        sync_directory(self._manifests_path)

    def batch_directory(self, number: int) -> Path:
        """Return a new folder's path, not created yet, for the files of manifest `number`."""
        return self.data_path / f"{BATCH_COLUMN}={number:08d}-{secrets.token_hex(3)}"

    def collect_orphans(self, claim: Manifest) -> int:
        """Remove batch folders without a manifest, and torn manifests, of writers before `claim`.

        Return how many were removed. Later writers' folders have higher numbers and are not removed, even if
        this writer was suspended since its claim.
        """
        named = {Path(file.path).parts[1] for file in self.files()}
        orphans = [
            folder
            for folder in self.data_path.iterdir()
            if folder.name not in named and _number(folder.name, f"{BATCH_COLUMN}=") <= claim.number
        ]
        for folder in orphans:
            shutil.rmtree(folder)
        aside = [
            path
            for path in self._manifests_path.iterdir()
            if path.name.startswith(".") and _number(path.name, ".") <= claim.number
        ]
        for path in aside:
            path.unlink(missing_ok=True)
        return len(orphans) + len(aside)

    def _sync_above(self, file: Path) -> None:
        """Sync the folders from the file's up to the table's, so that their entries survive a power loss."""
        for folder in file.parents:
            sync_directory(folder)
            if folder == self.path:
                return

    def _read(self, number: int) -> Manifest:
        return decode((self._manifests_path / f"{number:08d}.json").read_bytes())


def _number(name: str, prefix: str) -> int:
    """Return the manifest's number in the name of a file or folder, or 0 for any other name."""
    digits = name.removeprefix(prefix)[:8]
    return int(digits) if digits.isdecimal() else 0


def sync_directory(path: Path) -> None:
    """Sync the directory, so that its entries survive a power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
