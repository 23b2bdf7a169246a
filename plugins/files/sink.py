"""FilesSink: topics into files. Its settings, and the docs on them, are `FilesSinkConfig`.

Why re-delivery writes nothing twice: a partition's records are delivered from its committed offset on.
Files begin at committed offsets or at multiples of `file.records.max`, and none crosses such a multiple.
After a crash the first file begins at the committed offset again, the next ones at the same multiples:
every file left by the earlier attempt is overwritten under its own name, in one rename.

Why no earlier owner overwrites: see `claims`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from connect.api import ConnectError, SinkConnector, SinkRecord, SinkTask, TopicPartition
from plugins.files.claims import Claim
from plugins.files.config import FilesSinkConfig
from plugins.files.writers import Writer, json_writer, parquet_writer


class FilesSinkTask(SinkTask):
    """Collects records per partition and writes them out at each cut."""

    def __init__(self) -> None:
        self._claims: dict[TopicPartition, Claim] = {}
        self._held: dict[TopicPartition, list[SinkRecord]] = {}
        self._records_max = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Make the folder."""
        self._config = FilesSinkConfig.parse(config)
        self._folder = Path(self._config.path)
        self._records_max = self._config.file_records_max
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
        """Claim the partitions, and remove what earlier owners of them were just writing."""
        for tp in partitions:
            try:
                self._claims[tp] = Claim(self._folder, tp)
            except OSError as e:
                raise ConnectError(f"{self._folder} cannot be written: {e}") from e

    def statistics(self) -> dict[str, float]:
        """Partitions claimed; records held for the next file, and how many of one partition may be."""
        return {
            "claims": len(self._claims),
            "held_records": sum(map(len, list(self._held.values()))),
            "partition_held_records_max": self._records_max,
        }

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Hold records; write out what a cut completes."""
        size = self._records_max
        tp: TopicPartition | None = None
        for record in records:
            if tp is None or record.partition != tp.partition or record.topic != tp.topic:
                tp = TopicPartition(record.topic, record.partition)
                held = self._held.setdefault(tp, [])
                block = (held or [record])[0].offset // size
            if record.offset // size != block:
                self._write_out(tp)
                held = self._held[tp] = []
                block = record.offset // size
            held.append(record)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write out everything held."""
        for tp in list(self._held):
            self._write_out(tp)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget what was not flushed: it will be delivered again."""
        for tp in partitions:
            self._held.pop(tp, None)
            if (claim := self._claims.pop(tp, None)) is not None:
                claim.release()

    def stop(self) -> None:
        """Let go of what `close` was not called for."""
        self.close(list(self._claims))

    def _write_out(self, tp: TopicPartition) -> None:
        records = self._held[tp]
        claim = self._claims[tp]
        folder = self._folder / tp.topic
        path = folder / f"{tp.topic}+{tp.partition}+{records[0].offset:020d}.{self._suffix}"
        temporary = claim.temporary(path.name)
        try:
            folder.mkdir(exist_ok=True)
            with temporary.open("wb") as file:
                self._write(file, records)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(folder)
        except OSError as e:
            claim.check()
            raise ConnectError(f"{path} cannot be written: {e}") from e
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)  # there only after a failure
        del self._held[tp]


class FilesSink(SinkConnector):
    """Every task writes the partitions it is given."""

    CONFIG = FilesSinkConfig
    VERSION = "1"
    task_class = FilesSinkTask


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
