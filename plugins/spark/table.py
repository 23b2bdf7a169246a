"""A Parquet table that one writer at a time adds to, atomically.

    <table>/_manifests/00000001.json …            what is committed: files, rows, next offsets
    <table>/_checkpoints/00000100.json …          the files of the table (see `checkpoints`)
    <table>/data/_batch=00000002-1f3a9c/…         one folder per attempt to write a batch
    <table>/data/_batch=…/month=2013-01/part-….parquet

Invariants:
- A row is in the table if and only if a manifest names its file; readers read only these files.
- Manifest N+1 is created only if manifest N is the newest, and exists whole or not at all: it is written to a
  temporary file, synced, and linked to its name, which fails if the name exists.
- A writer claims the table by a manifest without files before it removes anything. Earlier writers can then
  no longer commit, so no manifest will ever name a folder that none names now: the folder is an orphan.
- Compaction replaces files by others with the same rows in one manifest: a reader sees all old or all new
  ones. The replaced files stay on the disk for readers of an older manifest, and are deleted later.

This module depends on neither Spark nor the log.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from kafka_client.topic_partition import TopicPartition
from plugins.spark.checkpoints import INTERVAL, Checkpoint, Checkpoints, RemovedFile
from plugins.spark.errors import Fenced
from plugins.spark.manifest import DataFile, Manifest, decode, encode
from plugins.spark.settings import BATCH_COLUMN
from plugins.spark.sink_table import DATA

_log = logging.getLogger(__name__)

MANIFESTS = "_manifests"


class ParquetTable:
    """The table in a local folder."""

    batch_column = BATCH_COLUMN

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data_path = path / DATA
        self._manifests_path = path / MANIFESTS
        self._checkpoints = Checkpoints(path)

    def create(self, columns: Callable[[], str] = str, partition_by: Sequence[str] = ()) -> None:
        """Create the table's folders if they are missing. The columns are those of the first batch."""
        self.data_path.mkdir(parents=True, exist_ok=True)
        self._manifests_path.mkdir(exist_ok=True)

    def numbers(self) -> list[int]:
        """Return the numbers of the committed manifests, in order."""
        return list(range(1, self._newest_number() + 1))

    def manifests(self) -> Iterator[Manifest]:
        """Return all committed manifests, oldest first. What asks for the table's state uses `latest`."""
        return map(self._read, self.numbers())

    def latest(self) -> Manifest | None:
        """Return the newest manifest, the table's state and positions, or None for a new table."""
        number = self._newest_number()
        return self._read(number) if number else None

    def files(self, state: Manifest | None = None) -> list[DataFile]:
        """Return the files of the table as of `state`, or of the newest manifest, in order of commit."""
        return list(self._checkpoint(state.number if state else self._newest_number()).files)

    def newest_files(self, count: int) -> list[DataFile]:
        """Return at most `count` of the table's files, those that were committed last."""
        return self.files()[-count:]

    def folders(self, file: DataFile) -> tuple[str, ...]:
        """Return the folders that name the file's partition."""
        return Path(file.path).parts[2:-1]

    def partition_columns(self) -> list[str] | None:
        """Return the columns in the folder names of the table's files, or None if there are no files."""
        state = self.latest()
        if state is not None and state.partition_columns is not None:
            return list(state.partition_columns)
        files = self.newest_files(1)
        return [part.partition("=")[0] for part in Path(files[-1].path).parts[2:-1]] if files else None

    def claim(self) -> Manifest:
        """Become the table's writer: from now on no other writer's commit succeeds. Returns the new state."""
        while True:
            latest = self.latest()
            writer, now = secrets.token_hex(8), int(time.time() * 1000)
            if latest is None:
                claim = Manifest(number=1, writer=writer, committed_at_ms=now)
            else:
                claim = self._with_starts(latest).next(now, writer=writer)
            with suppress(Fenced):
                self.commit(claim)
                return claim

    def update(self, writer: str, build: Callable[[Manifest], Manifest]) -> Manifest:
        """Commit what `build` makes of the newest manifest, as a part of the work of `writer`.

        Several processes may work under one writer: the sink adds batches, another compacts files. `build` is
        called again when another of them was first. Raises Fenced if another writer has claimed the table.
        """
        while True:
            state = self.latest()
            if state is None or state.writer != writer:
                raise Fenced(f"{self.path}: another writer has claimed the table")
            manifest = build(self._with_starts(state))
            try:
                self.commit(manifest)
                return manifest
            except Fenced:
                continue  # the newest manifest says by whom

    def commit(self, manifest: Manifest) -> None:
        """Commit `manifest`. Raises Fenced if its number was committed before.

        After a crash in this method, `latest` shows whether the commit took place.
        """
        for folder in {self.path / file.path for file in manifest.files}:
            self._sync_above(folder)
        name = _manifest_name(manifest.number)
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
        if manifest.number - self._checkpoints.last_number() >= INTERVAL:
            self._write_checkpoint(manifest)

    def batch_directory(self, number: int) -> Path:
        """Return a new folder's path, not created yet, for the files of manifest `number`."""
        return self.data_path / f"{BATCH_COLUMN}={number:08d}-{secrets.token_hex(3)}"

    def collect_orphans(self, claim: Manifest) -> int:
        """Remove batch folders without a manifest, and torn manifests, of writers before `claim`.

        Return how many were removed. Later writers' folders have higher numbers and are not removed, even if
        this writer was suspended since its claim.
        """
        state = self._checkpoint(claim.number)
        paths = [*(file.path for file in state.files), *(file.path for file in state.removed)]
        named = {Path(path).parts[1] for path in paths}
        orphans = [
            folder
            for folder in self.data_path.iterdir()
            if folder.name not in named and _number(folder.name, f"{BATCH_COLUMN}=") <= claim.number
        ]
        for folder in orphans:
            shutil.rmtree(folder)
        aside = [
            path
            for folder in (self._manifests_path, self._checkpoints.path)
            if folder.is_dir()
            for path in folder.iterdir()
            if path.name.startswith(".") and _number(path.name, ".") <= claim.number
        ]
        for path in aside:
            path.unlink(missing_ok=True)
        return len(orphans) + len(aside)

    def removed_files(self) -> list[RemovedFile]:
        """Return the files that compaction replaced and that are still on the disk."""
        return [f for f in self._checkpoint(self._newest_number()).removed if (self.path / f.path).exists()]

    def delete_removed(self, before_ms: int) -> int:
        """Delete replaced files that were removed from the table before this time. Return how many."""
        expired = [file for file in self.removed_files() if file.removed_at_ms < before_ms]
        for file in expired:
            path = self.path / file.path
            path.unlink(missing_ok=True)
            for folder in path.parents:
                if folder == self.data_path:
                    break
                with suppress(OSError):  # the folder has other files
                    folder.rmdir()
        return len(expired)

    def _newest_number(self) -> int:
        """Return the number of the newest manifest, or 0. It looks for a few names, not at all of them."""
        low = self._checkpoints.last_number()
        if not low and not self._has(1):
            # No manifest, or a folder that was copied in part.
            with suppress(FileNotFoundError):
                return max((_number(name, "") for name in os.listdir(self._manifests_path)), default=0)
            return 0
        step = 1
        while self._has(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._has(middle) else (low, middle)
        return low

    def _checkpoint(self, number: int) -> Checkpoint:
        """Return the files as of manifest `number`: a checkpoint, and the manifests since."""
        base = self._checkpoints.read_last(number)
        files = {file.path: file for file in base.files}
        removed = list(base.removed)
        for manifest in map(self._read, range(base.number + 1, number + 1)):
            for path in manifest.removed:
                files.pop(path, None)
                removed.append(RemovedFile(path=path, removed_at_ms=manifest.committed_at_ms))
            files |= {file.path: file for file in manifest.files}
        return Checkpoint(number=number, files=tuple(files.values()), removed=tuple(removed))

    def _write_checkpoint(self, manifest: Manifest) -> None:
        """Write a checkpoint. If that fails, the commit stands, and a later one writes the next."""
        try:
            state = self._checkpoint(manifest.number)
            on_disk = tuple(file for file in state.removed if (self.path / file.path).exists())
            self._checkpoints.write(msgspec.structs.replace(state, removed=on_disk))
        except OSError as e:
            _log.warning("%s: no checkpoint was written: %s", self.path, e)

    def _with_starts(self, latest: Manifest) -> Manifest:
        """Return the newest manifest with each first offset of a partition, which format 1 did not store."""
        if latest.version > 1:
            return latest
        starts: dict[TopicPartition, int] = {}
        for manifest in self.manifests():
            for topic, position in manifest.positions.items():
                for partition, offset in position.offsets.items():
                    starts.setdefault(TopicPartition(topic, partition), offset)
        return msgspec.structs.replace(latest, positions=latest.positions_after({}, {}, starts))

    def _has(self, number: int) -> bool:
        return (self._manifests_path / _manifest_name(number)).exists()

    def _sync_above(self, file: Path) -> None:
        """Sync the folders from the file's up to the table's, so that their entries survive a power loss."""
        for folder in file.parents:
            sync_directory(folder)
            if folder == self.path:
                return

    def _read(self, number: int) -> Manifest:
        return decode((self._manifests_path / _manifest_name(number)).read_bytes())


def table_columns(state: Manifest) -> list[str]:
    """Return the names of the table's columns; none before its first batch."""
    schema = json.loads(state.table_schema) if state.table_schema is not None else {"fields": []}
    return [field["name"] for field in schema["fields"]]


def _manifest_name(number: int) -> str:
    return f"{number:08d}.json"


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
