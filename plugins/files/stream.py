"""Kafka's own FileStreamSource and FileStreamSink, with their keys: `file`, `topic`, `batch.size`, `topics`.

Introductions to Connect use these two. For production, use FilesSource and FilesSink: the stream sink
appends, so records that are redelivered after a crash are in the file twice.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from connect.api import Config, ConnectError, SinkConnector, SinkRecord, SinkTask, TopicPartition, setting
from plugins.files.source import FilesSource


class FileStreamSource(FilesSource):
    """A source of every line of a text file, as it grows."""

    def start(self, config: Mapping[str, str]) -> None:
        """Start the files source with the format text."""
        super().start({**config, "format": "text"})


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
