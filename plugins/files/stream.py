"""Kafka's own FileStreamSource and FileStreamSink, with their keys: `file`, `topic`, `batch.size`, `topics`.

They are what introductions to Connect use. For work, take FilesSource and FilesSink: the stream sink
appends, so records that come again after a crash are in the file twice.
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
    """Every line of one text file, as it grows."""

    def start(self, config: Mapping[str, str]) -> None:
        """The files source, reading text."""
        super().start({**config, "format": "text"})


class FileStreamSinkConfig(Config):
    """Appends every value as a line."""

    file: str | None = setting(
        "The file to append to; standard output if not set.", default=None, importance="HIGH"
    )


class FileStreamSinkTask(SinkTask):
    """Appends lines."""

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
        """A line each; what is no string as JSON."""
        for record in records:
            value = record.value
            self._file.write(value if isinstance(value, str) else msgspec.json.encode(value).decode())
            self._file.write("\n")

    def flush(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Hand the lines to the system."""
        self._file.flush()

    def stop(self) -> None:
        """Close the file."""
        file = getattr(self, "_file", sys.stdout)
        if file is not sys.stdout:
            file.close()


class FileStreamSink(SinkConnector):
    """One file for all tasks."""

    CONFIG = FileStreamSinkConfig
    VERSION = "1"
    task_class = FileStreamSinkTask
