"""FilesSink: writes topics to files. `FilesSinkConfig` declares and documents its settings.

Redelivery writes no record twice. A partition's records are delivered from its committed offset on. Files
begin at committed offsets or at multiples of `file.records.max`, and none crosses such a multiple. After a
crash the first file begins at the committed offset again, the next ones at the same multiples. So files of
the earlier attempt are overwritten under their own names, by a rename.

A file is named by where it begins, not by its first record: compaction may have removed that record when
the file is written again. `leftovers` removes the earlier files that are cut at other offsets all the same.
`claims` keeps earlier owners of a partition from overwriting files.
"""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from connect.api import (
    ColumnarSinkTask,
    ColumnBatch,
    ConnectError,
    JsonBatch,
    JsonSinkTask,
    SinkConnector,
    SinkRecord,
    TopicPartition,
)
from plugins.files.buffers import NO_ID, Buffer, name_end, source_of
from plugins.files.claims import Claim
from plugins.files.config import FilesSinkConfig
from plugins.files.json_lines import LineFormat, line_format
from plugins.files.leftovers import Leftovers
from plugins.files.parquet import ColumnWriter, parquet_writer
from plugins.files.writers import Writer, avro_writer, size_of

Key = tuple[TopicPartition, str]
"""The partition that records were read from, and the topic in the records."""


class FilesSinkTask(ColumnarSinkTask, JsonSinkTask):
    """A task that buffers records per partition and writes them to a file at each cut.

    Parquet files are written from columns, JSON lines from JSON texts, Avro files from records.
    """

    def __init__(self) -> None:
        self._claims: dict[TopicPartition, Claim] = {}
        self._buffers: dict[Key, Buffer] = {}
        self._leftovers: dict[TopicPartition, Leftovers] = {}
        self._opened: set[TopicPartition] = set()
        """Partitions whose leftovers have not been looked for yet."""
        self._records_max = 0

    def start(self, config: Mapping[str, str]) -> None:
        """Create the folder."""
        self._config = FilesSinkConfig.parse(config)
        self._folder = Path(self._config.path)
        self._records_max = self._config.file_records_max
        self._write: Writer
        self._write_columns: ColumnWriter
        self._lines: LineFormat
        if self._config.format == "json":
            self._suffix, self._lines = "jsonl", line_format(self._config)
        elif self._config.format == "avro":
            self._suffix, self._write = "avro", avro_writer(self._config)
        else:
            self._suffix, self._write_columns = "parquet", parquet_writer(self._config)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as e:
            raise ConnectError(f"{self._folder} cannot be made: {e.strerror}") from e

    @property
    def takes_columns(self) -> bool:
        """True for Parquet."""
        return self._config.format == "parquet"

    @property
    def takes_json(self) -> bool:
        """True for JSON lines."""
        return self._config.format == "json"

    def open(self, partitions: Collection[TopicPartition]) -> None:
        """Claim the partitions, which removes their earlier owners' unfinished files."""
        for tp in partitions:
            try:
                self._claims[tp] = Claim(self._folder, tp)
            except OSError as e:
                raise ConnectError(f"{self._folder} cannot be written: {e}") from e
        self._opened.update(partitions)

    def statistics(self) -> dict[str, float]:
        """Return the counts of claims and of buffered records, and the bound of a partition's records."""
        return {
            "claims": len(self._claims),
            "held_records": sum(buffer.count for buffer in list(self._buffers.values())),
            "partition_held_records_max": self._records_max,
        }

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Buffer records. Write the files that are complete."""
        topic, partition, last, end = "", -1, -1, -1
        for record in records:
            offset = record.offset
            # Records that a transform makes of one record have its offset.
            if not last <= offset < end or record.partition != partition or record.topic != topic:
                topic, partition = record.topic, record.partition
                buffer = self._buffer(source_of(record), topic, offset)
                end = buffer.end
            buffer.records.append(record)
            buffer.last_offset = last = offset
        if self._config.file_bytes_max and records:
            buffer.bytes += size_of(records)
        self._ask_for_commit()

    def put_columns(self, batches: Sequence[ColumnBatch]) -> None:
        """Buffer columns. Write the files that are complete."""
        for batch in batches:
            offsets, start = batch.offsets.to_numpy(), 0
            while start < len(batch):
                buffer = self._buffer(batch.source, batch.topic, int(offsets[start]))
                stop = bisect_left(offsets, buffer.end, start)
                part = batch.slice(start, stop)
                buffer.columns.append(part)
                buffer.last_offset = int(offsets[stop - 1])
                if self._config.file_bytes_max:
                    buffer.bytes += part.values.get_total_buffer_size() * len(part) // len(batch)
                start = stop
        self._ask_for_commit()

    def put_json(self, batches: Sequence[JsonBatch]) -> None:
        """Buffer JSON lines. Write the files that are complete."""
        for batch in batches:
            offsets, start = batch.offsets, 0
            while start < len(batch):
                buffer = self._buffer(batch.source, batch.topic, offsets[start])
                stop = bisect_left(offsets, buffer.end, start)
                buffer.add_lines(self._lines(batch.slice(start, stop)), stop - start)
                buffer.last_offset = offsets[stop - 1]
                start = stop
        self._ask_for_commit()

    def pre_commit(self, offsets: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int] | None:
        """Write the files that are due, and return the offsets before the others.

        Without `file.interval.ms` every file is due at every commit.
        """
        if not self._config.file_interval_ms:
            return None
        safe = dict(offsets)
        for key, buffer in list(self._buffers.items()):
            if self._is_due(buffer):
                self._write_out(key)
            else:
                safe[buffer.tp] = min(safe.get(buffer.tp, buffer.begin), buffer.begin)
        self._remove_leftovers(safe)
        return safe

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write all buffered records to files."""
        for key in list(self._buffers):
            self._write_out(key)
        self._remove_leftovers(offsets)

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Discard the partitions' records that were not flushed, and release the tasks' claims to them.

        The discarded records are delivered again: their offsets were not committed.
        """
        closed = set(partitions)
        self._buffers = {key: each for key, each in self._buffers.items() if each.tp not in closed}
        self._opened -= closed
        for tp in partitions:
            self._leftovers.pop(tp, None)
            if (claim := self._claims.pop(tp, None)) is not None:
                claim.release()

    def stop(self) -> None:
        """Close the partitions that are still open."""
        self.close(list(self._claims))

    def _buffer(self, tp: TopicPartition, topic: str, offset: int) -> Buffer:
        """Return the buffer that takes the record. A buffer that cannot is written out before."""
        size = self._records_max
        key = (tp, topic)
        buffer = self._buffers.get(key)
        if buffer is not None:
            if buffer.last_offset < offset < buffer.end:
                return buffer
            self._write_out(key)
        block = offset - offset % size
        # A position behind the record is that of a topic which was made again meanwhile.
        begin = max(block, min(offset, self.context.positions.get(tp, offset)))
        topic_id = self.context.topic_ids.get(tp.topic, NO_ID)
        self._buffers[key] = buffer = Buffer(tp, topic, topic_id, begin, block + size)
        return buffer

    def _leftovers_of(self, tp: TopicPartition) -> Leftovers:
        """Return the leftovers, which know the partition's first position from now on."""
        if tp in self._opened:
            self._leftovers.update(dict.fromkeys(self._opened, Leftovers(self._folder, self._opened)))
            self._opened.clear()
        leftovers = self._leftovers[tp]
        position, topic_id = self.context.positions.get(tp), self.context.topic_ids.get(tp.topic)
        if position is not None and topic_id is not None:
            leftovers.begin(tp, position, name_end(topic_id, self._suffix))
        return leftovers

    def _remove_leftovers(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Remove what an earlier attempt has left before offsets that are about to be committed.

        No record may be left there in the log, and so no file is written over them.
        """
        for tp, offset in offsets.items():
            if (claim := self._claims.get(tp)) is not None:
                try:
                    self._leftovers_of(tp).remove(claim, offset)
                except OSError as e:
                    claim.check()
                    raise ConnectError(f"files in {self._folder} cannot be removed: {e}") from e

    def _ask_for_commit(self) -> None:
        """Ask for a commit if a file is due before the next one."""
        config = self._config
        if (config.file_bytes_max or config.file_interval_ms) and any(
            map(self._is_due, self._buffers.values())
        ):
            self.context.request_commit()

    def _is_due(self, buffer: Buffer) -> bool:
        config = self._config
        if config.file_bytes_max and buffer.bytes >= config.file_bytes_max:
            return True
        interval = config.file_interval_ms
        return bool(interval) and time.monotonic() - buffer.created_at >= interval / 1000

    def _write_out(self, key: Key) -> None:
        buffer = self._buffers[key]
        claim = self._claims[buffer.tp]
        folder = self._folder / buffer.topic
        path = folder / buffer.name(self._suffix)
        temporary = claim.temporary(path.name)
        try:
            leftovers = self._leftovers_of(buffer.tp)
            folder.mkdir(exist_ok=True)
            with temporary.open("wb") as file:
                if self.takes_columns:
                    self._write_columns(file, buffer.columns)
                elif self.takes_json:
                    file.writelines(buffer.lines)
                else:
                    self._write(file, buffer.records)
                file.flush()
                os.fsync(file.fileno())
            # First, so that at no moment a record is in two files.
            leftovers.remove(claim, buffer.last_offset + 1, keep=path)
            temporary.replace(path)
            _sync_folder(folder)
        except OSError as e:
            claim.check()
            raise ConnectError(f"{path} cannot be written: {e}") from e
        finally:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)  # there only after a failure
        del self._buffers[key]


class FilesSink(SinkConnector):
    """The connector of the files sink; each task writes its assigned partitions."""

    CONFIG = FilesSinkConfig
    VERSION = "1"
    task_class = FilesSinkTask

    def check_target(self, config: Mapping[str, str]) -> None:
        """Check that the folder can be made, or written if it exists."""
        folder = Path(FilesSinkConfig.parse(config).path).absolute()
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
        if not nearest.is_dir():
            raise ConnectError(f"{folder} cannot be made: {nearest} is no folder")
        if not os.access(nearest, os.W_OK | os.X_OK):
            raise ConnectError(f"{folder} cannot be written: the user may not write to {nearest}")


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
