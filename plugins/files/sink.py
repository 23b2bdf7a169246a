"""FilesSink: topics into files. Its settings, and the docs on them, are `FilesSinkConfig`.

Why re-delivery writes nothing twice: a partition's records are delivered from its committed offset on.
Files begin at committed offsets or at multiples of `file.records.max`, and none crosses such a multiple.
After a crash the first file begins at the committed offset again, the next ones at the same multiples:
every file left by the earlier attempt is overwritten under its own name, in one rename.

What a killed worker was just writing is left as `.<name>.<pid>.tmp`. A writer holds a lock on it until it is
renamed, so one that can be locked has no writer any more: the partition's next owner removes it.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from connect.api import ConnectError, SinkConnector, SinkRecord, SinkTask, TopicPartition
from plugins.files.config import FilesSinkConfig
from plugins.files.writers import Writer, json_writer, parquet_writer


class FilesSinkTask(SinkTask):
    """Collects records per partition and writes them out at each cut."""

    def start(self, config: Mapping[str, str]) -> None:
        """Make the folder."""
        self._config = FilesSinkConfig.parse(config)
        self._folder = Path(self._config.path)
        self._held: dict[TopicPartition, list[SinkRecord]] = {}
        self._write: Writer
        if self._config.format == "json":
            self._suffix, self._write = "jsonl", json_writer(self._config)
        else:
            self._suffix, self._write = "parquet", parquet_writer(self._config)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ConnectError(f"{self._folder} cannot be made: {e.strerror}") from e

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Remove what an earlier owner of these partitions was writing when it was killed."""
        for topic in {tp.topic for tp in partitions}:
            ours = "|".join(str(tp.partition) for tp in partitions if tp.topic == topic)
            name = re.compile(rf"\.{re.escape(topic)}\+({ours})\+\d{{20}}\.(jsonl|parquet)\.\d+\.tmp")
            with suppress(FileNotFoundError):
                for path in (self._folder / topic).iterdir():
                    if name.fullmatch(path.name):
                        _remove_abandoned(path)

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Hold records; write out what a cut completes."""
        block = self._config.file_records_max
        for record in records:
            tp = TopicPartition(record.topic, record.partition)
            held = self._held.setdefault(tp, [])
            if held and record.offset // block != held[0].offset // block:
                self._write_out(tp)
                held = self._held.setdefault(tp, [])
            held.append(record)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write out everything held."""
        for tp in list(self._held):
            self._write_out(tp)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was not flushed: it will be delivered again."""
        for tp in partitions:
            self._held.pop(tp, None)

    def _write_out(self, tp: TopicPartition) -> None:
        records = self._held[tp]
        folder = self._folder / tp.topic
        path = folder / f"{tp.topic}+{tp.partition}+{records[0].offset:020d}.{self._suffix}"
        temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        try:
            folder.mkdir(exist_ok=True)
            with temporary.open("wb") as file:
                _lock(file)
                self._write(file, records)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            _sync_folder(folder)
        except OSError as e:
            raise ConnectError(f"{path} cannot be written: {e}") from e
        finally:
            temporary.unlink(missing_ok=True)  # there only after a failure
        del self._held[tp]


class FilesSink(SinkConnector):
    """Every task writes the partitions it is given."""

    CONFIG = FilesSinkConfig
    VERSION = "1"
    task_class = FilesSinkTask


def _lock(file: BinaryIO) -> bool:
    """Whether it is ours now; never where the file system knows no locks."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_abandoned(path: Path) -> None:
    with suppress(OSError), path.open("rb") as file:
        if _lock(file):
            path.unlink()


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
