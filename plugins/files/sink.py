"""FilesSink: writes topics to files. `FilesSinkConfig` declares and documents its settings.

Redelivery writes no record twice. A partition's records are delivered from its committed offset on. Files
begin at committed offsets or at multiples of `file.records.max`, and none crosses such a multiple. After a
crash the first file begins at the committed offset again, the next ones at the same multiples. So every file
of the earlier attempt is overwritten under its own name, by a rename.

`claims` keeps earlier owners of a partition from overwriting files.
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
    """A task that buffers records per partition and writes them to a file at each cut."""

    def __init__(self) -> None:
        self._claims: dict[TopicPartition, Claim] = {}
        self._buffers: dict[TopicPartition, list[SinkRecord]] = {}
        self._records_max = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Create the folder."""
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
        """Claim the partitions, which removes their earlier owners' unfinished files."""
        for tp in partitions:
            try:
                self._claims[tp] = Claim(self._folder, tp)
            except OSError as e:
                raise ConnectError(f"{self._folder} cannot be written: {e}") from e

    def statistics(self) -> dict[str, float]:
        """Return the counts of claims and of buffered records, and the bound of a partition's records."""
        return {
            "claims": len(self._claims),
            "held_records": sum(map(len, list(self._buffers.values()))),
            "partition_held_records_max": self._records_max,
        }

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Buffer records. Write the files that are complete."""
        size = self._records_max
        tp: TopicPartition | None = None
        for record in records:
            if tp is None or record.partition != tp.partition or record.topic != tp.topic:
                tp = TopicPartition(record.topic, record.partition)
                buffer = self._buffers.setdefault(tp, [])
                block = (buffer or [record])[0].offset // size
            if record.offset // size != block:
                self._write_out(tp)
                buffer = self._buffers[tp] = []
                block = record.offset // size
            buffer.append(record)

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write all buffered records to files."""
        for tp in list(self._buffers):
            self._write_out(tp)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Discard the partitions' records that were not flushed, and release the tasks' claims to them.

        The discarded records are delivered again: their offsets were not committed.
        """
        for tp in partitions:
            self._buffers.pop(tp, None)
            if (claim := self._claims.pop(tp, None)) is not None:
                claim.release()

    def stop(self) -> None:
        """Close the partitions that are still open."""
        self.close(list(self._claims))

    def _write_out(self, tp: TopicPartition) -> None:
        records = self._buffers[tp]
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
        del self._buffers[tp]


class FilesSink(SinkConnector):
    """The connector of the files sink; each task writes its assigned partitions."""

    CONFIG = FilesSinkConfig
    VERSION = "1"
    task_class = FilesSinkTask


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
