"""Sources of records: stdin or files, with a record a line or a record a file."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from kafka_client.errors import ConfigError
from kafka_client.records import NewRecord
from millstream.commands.produce.pipe import Pipe
from millstream.commands.produce.splitter import Splitter
from millstream.data_types.data_type import WrongData

RecordFormat: TypeAlias = Callable[[Sequence[bytes], int], list[NewRecord]]
"""A function that makes records of lines and the time in ms. Raises WrongData for a malformed line."""

STDIN = 0
RECORD_BYTES_MAX = 1 << 27
"""The maximum size of a line or file, which is held in memory."""
_TOO_LONG = f"more than {RECORD_BYTES_MAX:,} bytes, which is too long for a record"


@dataclass(frozen=True, slots=True)
class Chunk:
    """The records of one read. `first`: the line number of the first record, from 1, in `place`.

    `size`: the bytes read for the chunk; `longest`: the size of its longest line. `error`: why the line after
    the records is malformed. Nothing follows an error unless errors are skipped.
    """

    place: str
    first: int
    records: list[NewRecord]
    size: int
    longest: int
    error: str | None = None


class LineSource:
    """The lines of files one after the other, or of stdin without files.

    Iterate in a thread, since the iterator waits for input. `stop` ends the iteration from another thread.
    """

    def __init__(self, files: Sequence[Path], delimiter: bytes, make: RecordFormat, *, skip: bool) -> None:
        self._files = files
        self._delimiter = delimiter
        self._make = make
        self._skip = skip
        self._pipe: Pipe | None = None
        self._stopped = False

    @property
    def total(self) -> int | None:
        """The number of bytes to read; None for a pipe or a terminal."""
        if self._files:
            return sum(map(_size, self._files))
        status = os.fstat(STDIN)
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def stop(self) -> None:
        """End the iteration, also while it waits."""
        self._stopped = True
        if (pipe := self._pipe) is not None:
            pipe.stop()

    def __iter__(self) -> Iterator[Chunk]:
        if not self._files:
            yield from self._read(STDIN, "stdin")
        for path in self._files:
            descriptor = open_file(path)
            try:
                yield from self._read(descriptor, str(path))
            finally:
                os.close(descriptor)

    def _read(self, descriptor: int, place: str) -> Iterator[Chunk]:
        splitter, line = Splitter(self._delimiter), 1
        pipe = self._pipe = Pipe(descriptor)
        try:
            while not self._stopped and (data := pipe.read()):
                lines = splitter.feed(data)
                yield from self._chunks(place, line, lines, len(data))
                line += len(lines)
                if splitter.pending > RECORD_BYTES_MAX:
                    self._stopped = True
                    yield Chunk(place, line, [], 0, 0, f"line {line} of {place}: {_TOO_LONG}")
            if not self._stopped:
                yield from self._chunks(place, line, splitter.finish(), 0)
        finally:
            self._pipe = None
            pipe.close()

    def _chunks(self, place: str, first: int, lines: list[bytes], size: int) -> Iterator[Chunk]:
        """Yield one chunk, or several that each end before a malformed line."""
        while lines:
            now_ms = time.time_ns() // 1_000_000
            try:
                yield Chunk(place, first, self._make(lines, now_ms), size, max(map(len, lines)))
                return
            except WrongData:
                chunk = self._up_to_error(place, first, lines, now_ms, size)
            yield chunk
            if not self._skip:
                self._stopped = True
                return
            done = len(chunk.records) + 1
            first, lines, size = first + done, lines[done:], 0

    def _up_to_error(self, place: str, first: int, lines: list[bytes], now_ms: int, size: int) -> Chunk:
        """Return the records before the first malformed line, with the error of that line."""
        records: list[NewRecord] = []
        for number, line in enumerate(lines, first):
            try:
                records += self._make([line], now_ms)
            except WrongData as error:
                return Chunk(
                    place, first, records, size, max(map(len, lines)), f"line {number} of {place}: {error}"
                )
        raise AssertionError("lines are records one by one, and none together")


class FileSource:
    """A source in which each file is the value of one record."""

    def __init__(self, files: Sequence[Path], make: RecordFormat) -> None:
        self._files = files
        self._make = make
        self._stopped = False

    @property
    def total(self) -> int | None:
        """The number of bytes to read."""
        return sum(map(_size, self._files))

    def stop(self) -> None:
        """End the iteration."""
        self._stopped = True

    def __iter__(self) -> Iterator[Chunk]:
        for path in self._files:
            if self._stopped:
                return
            descriptor = open_file(path)
            with os.fdopen(descriptor, "rb") as file:
                data = file.read(RECORD_BYTES_MAX + 1)
            if len(data) > RECORD_BYTES_MAX:
                yield Chunk(str(path), 1, [], 0, 0, f"{path}: {_TOO_LONG}")
                return
            try:
                records = self._make([data], time.time_ns() // 1_000_000)
            except WrongData as error:
                yield Chunk(str(path), 1, [], 0, 0, f"{path}: {error}")
                return
            yield Chunk(str(path), 1, records, len(data), len(data))


def _size(path: Path) -> int:
    """Return the size of a file in bytes. Raises ConfigError if the file cannot be read."""
    try:
        return path.stat().st_size
    except OSError as error:
        raise ConfigError("FILE", path, f"cannot be read: {error.strerror}") from None


def open_file(path: Path) -> int:
    """Return a descriptor to read the file. Raises ConfigError if it cannot be read."""
    try:
        return os.open(path, os.O_RDONLY)
    except OSError as error:
        raise ConfigError("FILE", path, f"cannot be read: {error.strerror}") from None
