"""Kafka's own FileStreamSource and FileStreamSink, with their keys: `file`, `topic`, `batch.size`, `topics`.

Introductions to Connect use these two. For production, use FilesSource and FilesSink: the stream sink
appends, so records that are redelivered after a crash are in the file twice.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from connect.api import (
    Config,
    ConnectError,
    SinkConnector,
    SinkRecord,
    SinkTask,
    SourceBatch,
    SourceConnector,
    TopicPartition,
    at_least,
    schema,
    setting,
)
from plugins.files.console import ConsoleLines
from plugins.files.source import FilesSourceTask


class FileStreamSourceConfig(Config):
    """Reads every line of a text file into a topic, as it grows.

    The source partition is `{"filename": path}`, the source offset `{"position": byte, "line": number}`.
    Without `file` it reads standard input to its end, and keeps no offsets.
    """

    topic: str = setting("The topic to write to.", importance="HIGH")
    file: str | None = setting(
        "The file to read; standard input if not set.", default=None, importance="HIGH"
    )
    batch_size: int = setting("Records per poll at most.", default=2000, check=at_least(1))


class FileStreamSourceTask(FilesSourceTask):
    """A task that reads lines; its values have the schema of a string, and the time at which they are read.

    Kafka's have both: InsertField finds a `timestamp.field`, which a record without a time does not have.
    """

    value_schema = schema.string()
    _console: ConsoleLines | None = None

    def start(self, config: Mapping[str, str]) -> None:
        """Parse the config and open the file; it is read from its committed offset."""
        self._stream_config = FileStreamSourceConfig.parse(config)
        if self._stream_config.file is None:
            self._console = ConsoleLines(sys.stdin.fileno())
        else:
            super().start({**config, "format": "text"})
            self._stamp = _read_times

    def poll(self) -> SourceBatch | None:
        """Return the next lines, or None if there are none now. Standard input ends the source with it."""
        if self._console is None:
            return super().poll()
        values = self._console.read(self._stream_config.batch_size)
        if self._console.has_ended:
            self.context.finished()
        if not values:
            return None
        times = _read_times(values)
        return SourceBatch(
            self._stream_config.topic, values, timestamps=times, value_schema=self.value_schema
        )


def _read_times(values: Sequence[str]) -> list[int | None]:
    """Return the present for each line, ms since the epoch."""
    return [time.time_ns() // 1_000_000] * len(values)


class FileStreamSource(SourceConnector):
    """A source of every line of a text file, as it grows, or of standard input."""

    CONFIG = FileStreamSourceConfig
    VERSION = "1"
    task_class = FileStreamSourceTask

    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        """Return True for a file, False for standard input, which is read once only."""
        return bool(config.get("file"))


class FileStreamSinkConfig(Config):
    """Appends every value as a line."""

    file: str | None = setting(
        "The file to append to; standard output if not set.", default=None, importance="HIGH"
    )


class FileStreamSinkTask(SinkTask):
    """A task that appends lines."""

    def start(self, config: Mapping[str, str]) -> None:
        """Open the file."""
        path = FileStreamSinkConfig.parse(config).file
        self._file: TextIO = sys.stdout
        if path is not None:
            try:
                self._file = Path(path).open("a", encoding="utf-8")  # noqa: SIM115
            except OSError as e:
                raise ConnectError(f"{path} cannot be written: {e.strerror}") from e

    def put(self, records: Sequence[SinkRecord]) -> None:
        """Append a line per record; a value that is no string is written as JSON."""
        for record in records:
            value = record.value
            self._file.write(value if isinstance(value, str) else msgspec.json.encode(value).decode())
            self._file.write("\n")

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Write the buffered lines to the file."""
        self._file.flush()

    def stop(self) -> None:
        """Close the file."""
        file = getattr(self, "_file", sys.stdout)
        if file is not sys.stdout:
            file.close()


class FileStreamSink(SinkConnector):
    """A sink of lines into one file for all tasks."""

    CONFIG = FileStreamSinkConfig
    VERSION = "1"
    task_class = FileStreamSinkTask
