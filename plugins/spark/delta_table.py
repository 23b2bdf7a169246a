"""A Delta table that one sink adds to, atomically, through delta-rs.

    <table>/_delta_log/00000000000000000003.json …              what is committed, in Delta's own protocol
    <table>/data/millstream_batch=00000004-1f3a9c/month=…/part-….parquet

Invariants:
- A batch is one commit: its files, and a transaction per partition with the next offset (see `delta_state`).
- A commit has the version after the one whose state it was made from, and delta-rs does not repeat it at
  another version: delta-rs compares transactions only with commits after the handle's version. If the version
  was taken, the claim and the transactions are read again first.
- If a commit fails in any way, the newest version says whether it took place.
- A claim changes the property, so an older writer finds it before it commits, or finds the version taken.

Columns are added in a commit before the batch: they are null until the batch has its commit.
"""

from __future__ import annotations

import dataclasses
import json
import os
import secrets
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deltalake import CommitProperties, Schema, Transaction
from deltalake import DeltaTable as Handle
from deltalake import Field as DeltaField
from deltalake.transaction import AddAction, RemoveAction
from msgspec.structs import replace

from plugins.spark.columns import GENERATION, TOMBSTONE, record_prefix
from plugins.spark.delta_files import (
    add_actions,
    files_of,
    partition_folders,
    paths_of,
    remove_actions,
    replaced_paths,
    row_count,
)
from plugins.spark.delta_schema import added_fields, schema_json, table_fields
from plugins.spark.delta_state import (
    PROPERTY,
    SinkProperty,
    decode_property,
    encode_property,
    positions_of,
    property_of,
    transactions,
)
from plugins.spark.errors import CommitLost, Fenced, TableRefused
from plugins.spark.manifest import DataFile, Manifest
from plugins.spark.sink_table import DATA
from plugins.spark.table import sync_directory

LOG = "_delta_log"
BATCH_COLUMN = "millstream_batch"
"""No underscore: programs that remove a table's unused files leave out folders with one."""
_RULES = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
_ATTEMPTS = 100
"""Commits in a row that may find their version taken by other writers of the table."""


@dataclass(frozen=True, slots=True)
class _Commit:
    """A commit to try: `run` makes it, and `took_place` tells from a later version if it is in the table."""

    run: Callable[[], object]
    took_place: Callable[[Handle], bool]
    is_last: bool = True


class DeltaTable:
    """The table in a local folder. `connector` is the sink's name; None reads any sink's table."""

    batch_column = BATCH_COLUMN

    def __init__(self, path: Path, connector: str | None = None) -> None:
        self.path = path
        self._connector = connector
        self._log_path = path / LOG
        self._handle: Handle | None = None

    def create(self, columns: Callable[[], str], partition_by: Sequence[str]) -> None:
        """Create the table if it is missing, with these columns in Spark's JSON form, hidden ones too."""
        if self._exists():
            return
        fields = table_fields(columns(), partition_by)
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            Handle.create(
                str(self.path), Schema.from_json(schema_json(fields)), partition_by=list(partition_by)
            )
        except Exception:
            if not self._exists():  # else another sink has created it meanwhile: one of the two claims last
                raise
        self._sync(0)

    def latest(self) -> Manifest | None:
        """Return the newest version's state and positions, or None if no sink has claimed the table.

        Raises TableRefused for the table of another connector, and PositionLost.
        """
        return self._state(self._newest()) if self._exists() else None

    def files(self, state: Manifest | None = None) -> list[DataFile]:
        """Return the files of the table as of `state`, or of the newest version, in order of commit."""
        handle = self._newest()
        if state is not None and state.number != handle.version() + 1:
            handle = Handle(str(self.path), version=state.number - 1)
        return files_of(handle, handle.metadata().partition_columns)

    def newest_files(self, count: int) -> list[DataFile]:
        """Return at most `count` of the table's files, those that were committed last."""
        return self.files()[-count:]

    def folders(self, file: DataFile) -> tuple[str, ...]:
        """Return the folders that name the file's partition."""
        return partition_folders(file)

    def partition_columns(self) -> list[str] | None:
        """Return the partition columns, or None if there is no table."""
        return list(self._newest().metadata().partition_columns) if self._exists() else None

    def claim(self) -> Manifest:
        """Become the table's writer: from now on no other writer's commit succeeds. Returns the new state.

        Raises TableRefused for a table of another connector, with rows of other writers, or with rules for
        rows that delta-rs does not check when files are added.
        """
        assert self._connector is not None, "readers claim no table"
        writer = secrets.token_hex(8)
        for _ in range(_ATTEMPTS):
            handle = self._newest()
            _check_plain(handle)
            state = self._state(handle)
            if state is None:
                _check_empty(handle)
                claimed = SinkProperty(connector=self._connector, writer=writer)
            else:
                claimed = property_of(replace(state, writer=writer), self._connector)
            if self._try(handle, self._property_commit(handle, claimed, {})):
                newest = self.latest()
                if newest is not None and newest.writer == writer:
                    return newest
        raise CommitLost(f"{self.path}: other writers commit without a pause")

    def update(self, writer: str, build: Callable[[Manifest], Manifest]) -> Manifest:
        """Commit what `build` makes of the newest state, as a part of the work of `writer`.

        `build` is called again for each commit, and when another writer of the table was first. Raises Fenced
        if another sink has claimed the table or the rows are in the table already, SchemaConflict for columns
        that the table cannot get, and CommitLost.
        """
        for _ in range(_ATTEMPTS):
            handle = self._newest()
            state = self._state(handle)
            if state is None or state.writer != writer:
                raise Fenced(f"{self.path}: another writer has claimed the table")
            manifest = build(state)
            commit = self._next_commit(handle, state, manifest)
            if commit is None:
                return state
            if self._try(handle, commit) and commit.is_last:
                newest = self.latest()
                assert newest is not None
                return replace(newest, files=manifest.files, removed=manifest.removed)
        raise CommitLost(f"{self.path}: other writers commit without a pause")

    def batch_directory(self, number: int) -> Path:
        """Return a new folder's path, not created yet, for the files of commit `number`."""
        return self.path / DATA / f"{BATCH_COLUMN}={number:08d}-{secrets.token_hex(3)}"

    def collect_orphans(self, claim: Manifest) -> int:
        """Remove batch folders that no commit names, of writers before `claim`. Return how many.

        Folders with files that were replaced stay, for readers of older versions.
        """
        handle = self._newest()
        paths = [*paths_of(handle), *replaced_paths(handle)]
        named = {Path(path).parts[1] for path in paths if Path(path).parts[0] == DATA}
        data = self.path / DATA
        orphans = [
            folder
            for folder in (data.iterdir() if data.is_dir() else ())
            if folder.name not in named and _number(folder.name) <= claim.number
        ]
        for folder in orphans:
            shutil.rmtree(folder)
        return len(orphans)

    def delete_removed(self, before_ms: int) -> int:
        """Delete files that were removed from the table before this time, to the hour. Return how many."""
        hours = max(0, -(-(int(time.time() * 1000) - before_ms) // 3_600_000))
        deleted = self._newest().vacuum(hours, dry_run=False, enforce_retention_duration=False)
        return len(deleted)

    def _next_commit(self, handle: Handle, state: Manifest, manifest: Manifest) -> _Commit | None:
        """Return the next commit on the way from `state` to `manifest`, or None if there is none."""
        stored = self._stored(handle)
        assert stored is not None and manifest.writer == state.writer
        old, new = property_of(state, stored.connector), property_of(manifest, stored.connector)
        advanced = transactions(state, manifest, stored.connector)
        if not manifest.files and not manifest.removed:
            return self._property_commit(handle, new, advanced) if advanced or new != old else None
        if manifest.files and not manifest.removed and not advanced:
            raise Fenced(f"{self.path}: the batch is in the table already")
        columns = added_fields(handle.schema().to_json(), manifest.table_schema or schema_json(()))
        if columns:
            return self._columns_commit(handle, columns)
        before = replace(old, value_schema=new.value_schema, inferred_topics=new.inferred_topics)
        if before != old:
            return dataclasses.replace(self._property_commit(handle, before, {}), is_last=False)
        return self._files_commit(handle, manifest, advanced)

    def _columns_commit(self, handle: Handle, fields: Sequence[Mapping[str, object]]) -> _Commit:
        added = [DeltaField.from_json(json.dumps(field)) for field in fields]
        return _Commit(
            run=lambda: handle.alter.add_columns(added, commit_properties=_once({})),
            took_place=lambda newest: not added_fields(newest.schema().to_json(), schema_json(fields)),
            is_last=False,
        )

    def _property_commit(self, handle: Handle, stored: SinkProperty, advanced: Mapping[str, int]) -> _Commit:
        properties = {PROPERTY: encode_property(stored)}

        def took_place(newest: Handle) -> bool:
            return self._stored(newest) == stored and _have(newest, advanced)

        return _Commit(
            run=lambda: handle.alter.set_table_properties(
                properties, raise_if_not_exists=False, commit_properties=_once(advanced)
            ),
            took_place=took_place,
        )

    def _files_commit(self, handle: Handle, manifest: Manifest, advanced: Mapping[str, int]) -> _Commit:
        removed = set(manifest.removed)
        partitions = handle.metadata().partition_columns
        before = [file for file in files_of(handle, partitions) if file.path in removed] if removed else []
        paths = {file.path for file in manifest.files}
        actions: list[AddAction | RemoveAction] = [
            *add_actions(manifest.files, is_new_data=not removed),
            *remove_actions(before),
        ]
        self._sync_files(manifest)

        def took_place(newest: Handle) -> bool:
            if advanced:  # another process may have compacted the files since
                return _have(newest, advanced)
            return paths.issubset(paths_of(newest))

        return _Commit(
            run=lambda: handle.create_write_transaction(
                actions,
                mode="append",
                schema=handle.schema(),
                partition_by=partitions,
                commit_properties=_once(advanced),
            ),
            took_place=took_place,
        )

    def _try(self, handle: Handle, commit: _Commit) -> bool:
        """Try the commit. Return whether it took place; False if its version was taken by another one.

        Raises the commit's error if it neither took place nor found its version taken.
        """
        version = handle.version()
        self._handle = None
        try:
            commit.run()
        except Exception:
            newest = Handle(str(self.path))
            if not commit.took_place(newest):
                if newest.version() > version:
                    return False
                raise
        self._sync(version + 1)
        return True

    def _exists(self) -> bool:
        return Handle.is_deltatable(str(self.path))

    def _newest(self) -> Handle:
        """Return a handle at the newest version."""
        handle = self._handle
        if handle is None or self._has(handle.version() + 1) or not self._has(handle.version()):
            handle = self._handle = Handle(str(self.path))
        return handle

    def _stored(self, handle: Handle) -> SinkProperty | None:
        """Return the sink's property, or None if the table has none. Raises TableRefused."""
        text = handle.metadata().configuration.get(PROPERTY)
        stored = None if text is None else decode_property(text)
        if stored is not None and self._connector not in (None, stored.connector):
            raise TableRefused(
                f"{self.path} is the table of the connector {stored.connector}, and {self._connector} would "
                "add the same records again: take a new path, or the connector's old name"
            )
        return stored

    def _state(self, handle: Handle) -> Manifest | None:
        """Return the state at the handle's version."""
        stored = self._stored(handle)
        if stored is None:
            return None
        metadata = handle.metadata()
        return Manifest(
            number=handle.version() + 1,
            writer=stored.writer,
            committed_at_ms=int(self._log_file(handle.version()).stat().st_mtime * 1000),
            rows=row_count(handle),
            positions=positions_of(stored, handle.transaction_version),
            value_schema=stored.value_schema,
            table_schema=_visible(handle.schema().to_json()),
            inferred_topics=stored.inferred_topics,
            partition_columns=tuple(metadata.partition_columns),
        )

    def _log_file(self, version: int) -> Path:
        return self._log_path / f"{version:020d}.json"

    def _has(self, version: int) -> bool:
        return self._log_file(version).exists()

    def _sync(self, version: int) -> None:
        """Sync a commit, which delta-rs does not, so that it survives a power loss."""
        descriptor = os.open(self._log_file(version), os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync_directory(self._log_path)
        sync_directory(self.path)

    def _sync_files(self, manifest: Manifest) -> None:
        """Sync the folders of the files, whose contents are synced already."""
        for folder in {parent for file in manifest.files for parent in (self.path / file.path).parents}:
            if folder.is_relative_to(self.path):
                sync_directory(folder)


def _once(transaction_versions: Mapping[str, int]) -> CommitProperties:
    """Return the properties of a commit that is tried at one version only."""
    # Without the time of an update a transaction is never removed for its age.
    written = [Transaction(app_id, version) for app_id, version in transaction_versions.items()]
    return CommitProperties(max_commit_retries=0, app_transactions=written)


def _have(handle: Handle, transaction_versions: Mapping[str, int]) -> bool:
    """Return True if the table has these transactions, or later ones of the same ids."""
    versions = {app_id: handle.transaction_version(app_id) for app_id in transaction_versions}
    return all(
        (newest := versions[app_id]) is not None and newest >= version
        for app_id, version in transaction_versions.items()
    )


def _visible(schema: str) -> str:
    """Return the schema without the hidden columns."""
    fields = json.loads(schema)["fields"]
    prefix = record_prefix([field["name"] for field in fields]) or ""
    hidden = (prefix + TOMBSTONE, prefix + GENERATION)
    return schema_json([field for field in fields if field["name"] not in hidden])


def _check_empty(handle: Handle) -> None:
    """Raise TableRefused unless a table that no sink has claimed can become the sink's."""
    names = [field.name for field in handle.schema().fields]
    if record_prefix(names) is None:
        raise TableRefused(
            f"the Delta table has the columns {', '.join(names)}, and the first ones of a sink's table are "
            "key, topic, partition, offset, timestamp: take a new path, and the sink creates its table"
        )
    if paths_of(handle):
        raise TableRefused("the Delta table has rows that no sink wrote: take a new path")


def _check_plain(handle: Handle) -> None:
    """Raise TableRefused if rows must satisfy something that nobody checks when files are added."""
    configuration = handle.metadata().configuration
    rules = [key for key in configuration if key.startswith("delta.constraints.")]
    if configuration.get("delta.columnMapping.mode", "none") != "none":
        rules.append("delta.columnMapping.mode")
    for field in handle.schema().fields:
        rules += [f"{key} of {field.name}" for key in field.metadata if key in _RULES]
        if not field.nullable:
            rules.append(f"NOT NULL of {field.name}")
    if rules:
        raise TableRefused(f"the sink cannot see to {', '.join(rules)} of the Delta table: remove it")


def _number(name: str) -> int:
    """Return the number in a batch folder's name, or one above all for any other name."""
    digits = name.removeprefix(f"{BATCH_COLUMN}=")[:8]
    return int(digits) if name.startswith(f"{BATCH_COLUMN}=") and digits.isdecimal() else 1 << 62
