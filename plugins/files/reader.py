"""Reads one file batch by batch, and tracks the position after the last complete row."""

from __future__ import annotations

import csv
import itertools
import logging
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

from connect.api import ConnectError, DataError
from plugins.files.config import FilesSourceConfig
from plugins.files.formats import Format, format_of
from plugins.files.identity import Identity
from plugins.files.known import KnownFiles
from plugins.files.lines import EndOfFile, Lines, Renamed, Replaced, Signature, signature

_log = logging.getLogger(__name__)
START = {"position": 0, "line": 0}
"""The source offset of the start of a file."""


class FileReader:
    """A reader of one file, from a source offset on. It opens the file at the first batch.

    A growing file that was read to its end `is_waiting` until it `has_changed()`, and may be released.
    """

    def __init__(
        self,
        path: Path,
        config: FilesSourceConfig,
        offset: Mapping[str, Any] | None,
        registry: KnownFiles | None = None,
    ) -> None:
        self.path = path
        self.partition = {"filename": str(path)}
        self.ended = False
        """True if the file was read to its end and will not grow."""
        self._config = config
        self._registry = registry or KnownFiles()
        self._identity: Identity | None = None
        """The file that the position is in; None at its head, and for compressed files."""
        self._go_to(offset or START)
        self._is_leaving = False
        """True if the name is another file's now, so that this one is read to its end for the last time."""
        self._is_left = False
        """True if that end was reached."""
        self.left: dict[str, dict[str, Any]] = {}
        """The offsets at the ends of renamed files, by their new names; the task takes them."""
        self._format: Format = format_of(config, path.name)
        self._lines: Lines | None = None
        self._unready: Signature | None = None
        self.is_waiting = False
        """True if a growing file was read to its current end, or does not exist yet."""
        self._rows: Iterator[Any] = iter(())

    @property
    def is_open(self) -> bool:
        """True if the file's descriptor is open."""
        return self._lines is not None and not self._lines.is_released

    @property
    def offset(self) -> dict[str, Any]:
        """The source offset after the last batch."""
        offset: dict[str, Any] = {"position": self._position, "line": self._line}
        if self._identity is not None:
            offset["file"] = str(self._identity)
        return offset

    def batch(self) -> list[Any]:
        """Return the next values, at most `batch.size`, or an empty list if there are none now.

        In tail mode the file may not exist yet. Raises ConnectError or DataError if it cannot be read.
        """
        if self.ended:
            return []
        if self._is_left:
            self._leave()
        try:
            self.is_waiting = not self._is_open()
            if self.is_waiting:
                return []
            first_line = self._line
            rows, numbers = self._pull()
        except Renamed:
            self._follow()
            return []
        except Replaced as e:
            _log.warning("%s; it is read from its head", e)
            self._begin_again()
            return []
        except UnicodeDecodeError as e:
            raise ConnectError(f"{self.path}, after line {self._lines_read()}: {e}; see encoding") from e
        except (csv.Error, DataError, OSError, EOFError, zlib.error, zipfile.BadZipFile) as e:
            raise ConnectError(f"{self.path}, after line {self._lines_read()}: {e}") from e
        try:
            values = self._format.values(rows) if rows else []
        except DataError as e:
            message, index = e.args
            raise DataError(f"{self.path}, about line {first_line + index + 1}: {message}") from e
        if numbers is not None:
            self._add_lines(values, rows, numbers)
        self._identify()
        if self.ended and self._is_leaving:
            self.ended, self._is_left = False, True
        return values

    def _identify(self) -> None:
        """Note which file the position is in, as long as its first bytes were not all read."""
        if self._lines is None or (self._identity is not None and self._identity.is_final):
            return
        self._identity = self._lines.identity()
        if self._identity is not None:
            self._registry.reads(self.path, self._identity)

    def _go_to(self, offset: Mapping[str, Any]) -> None:
        self._position: int = offset.get("position", 0)
        self._line: int = offset.get("line", 0)
        self._identity = Identity.parse(offset.get("file"))
        if self._identity is not None:
            self._registry.reads(self.path, self._identity)

    def _follow(self) -> None:
        """Read a renamed file to its end, for the last time. A closed one is looked for when it is opened."""
        self.is_waiting = False
        if self._lines is None or self._lines.is_released:
            self.close()
            return
        self._is_leaving = True
        self._lines.tail = False
        self._rows = self._format.rows(self._lines)

    def _leave(self) -> None:
        """Go on to the file that has the name now, after the renamed one's end."""
        if self._identity is not None:
            self._registry.finished(self.path, self._identity, self.offset)
            if (now := self._identity.path_now(self.path)) is not None and now != self.path:
                self.left[str(now)] = self.offset
        _log.info("%s: the renamed file was read to its end, the new one follows", self.path)
        self._begin_again()

    def _begin_again(self) -> None:
        """Go to the head of the file that has the name now."""
        self.close()
        self._registry.forget(self.path, self._identity)
        self._go_to(START)
        self._format = format_of(self._config, self.path.name)
        self.is_waiting = self._is_leaving = self._is_left = False
        self._unready = None

    def has_changed(self) -> bool:
        """Return True if a waiting file has changed."""
        if self._lines is not None:
            return self._lines.has_changed()
        try:
            return signature(os.stat(self.path)) != self._unready
        except FileNotFoundError:
            return False

    def _is_open(self) -> bool:
        if self._lines is None:
            return self._open()
        return not self._lines.is_resting or self._lines.wake()

    def _lines_read(self) -> int:
        return self._lines.line if self._lines else 0

    def _add_lines(self, values: list[Any], rows: list[Any], numbers: list[int]) -> None:
        field = self._config.line_field
        if len(values) < len(rows):  # the format has skipped empty ones
            numbers = [
                number for number, row in zip(numbers, rows, strict=True) if row and not _is_blank(row)
            ]
        for value, number in zip(values, numbers, strict=True):
            if not isinstance(value, dict):
                raise DataError(f"{self.path}, line {number}: no object to add line.field={field} to")
            value[field] = number

    def _open(self) -> bool:
        tail = not self._config.stop_at_eof
        if self._identity is None and not self._position and not self._take_over():
            return False
        path = self.path
        if self._identity is not None:
            now = self._identity.path_now(self.path)
            if now is None and path.exists():
                raise Replaced(f"{path} is another file now, the one that was read is gone")
            path = now or path
        try:
            lines = Lines(path, self._config.encoding, tail=tail, name=self.path)
        except FileNotFoundError as e:
            if tail:
                return False
            raise ConnectError(f"{self.path} does not exist") from e
        self._lines = lines
        try:
            self._format.begin(lines)
        except EndOfFile:  # its header is still being written
            self._unready = lines.signature_at_open
            self.close()
            return False
        if self._position > lines.position:
            lines.go_on(self._position, self._line)
        self._position, self._line = lines.position, lines.line
        self._rows = self._format.rows(lines)
        if path != self.path and self.path.exists():
            self._follow()
        return True

    def _take_over(self) -> bool:
        """Return False if the file was renamed, and is still read under its old name.

        A file that was read to its end under its old name goes on there.
        """
        if self._registry.is_read_elsewhere(self.path):
            self._unready = None
            return False
        if (offset := self._registry.end_of(self.path)) is not None:
            self._go_to(offset)
        return True

    def _pull(self) -> tuple[list[Any], list[int] | None]:
        """Return up to a batch of rows, and with `line.field` the lines they end on."""
        assert self._lines is not None
        lines, size = self._lines, self._config.batch_size
        if self._format.by_line:
            return self._pull_lines(lines)
        if lines.tail:
            return self._pull_growing(lines)
        numbers: list[int] | None = None
        if self._config.line_field is None:
            rows = list(itertools.islice(self._rows, size))
        else:
            numbered = [(row, lines.line) for row in itertools.islice(self._rows, size)]
            rows, numbers = [row for row, _ in numbered], [number for _, number in numbered]
        self.ended = len(rows) < size
        self._position, self._line = lines.position, lines.line
        return rows, numbers

    def _pull_lines(self, lines: Lines) -> tuple[list[Any], list[int] | None]:
        """Return the rows and lines of a format whose rows are lines."""
        size, first = self._config.batch_size, self._line + 1
        rows = lines.take(size)
        self._position, self._line = lines.position, lines.line
        if len(rows) < size:
            if lines.tail:
                self._rest(lines, rows)
            else:
                self.ended = True
        numbers = None if self._config.line_field is None else list(range(first, first + len(rows)))
        return rows, numbers

    def _pull_growing(self, lines: Lines) -> tuple[list[Any], list[int] | None]:
        """Return the rows and lines of a growing file; an incomplete row at its end is not read yet."""
        rows, numbers = [], []
        try:
            for row in self._rows:
                rows.append(row)
                numbers.append(lines.line)
                self._position, self._line = lines.position, lines.line
                if len(rows) == self._config.batch_size:
                    break
        except EndOfFile:
            self._rest(lines, rows)
        return rows, None if self._config.line_field is None else numbers

    def _rest(self, lines: Lines, rows: list[Any]) -> None:
        """Start waiting for the file to grow, after its current end was read."""
        lines.seek(self._position, self._line)
        self._rows = self._format.rows(lines)
        with suppress(ConnectError) if rows else nullcontext():  # the next call raises it again
            lines.rest()
        self.is_waiting = lines.is_resting

    def release(self) -> None:
        """Free a waiting file's descriptor and the format's caches until the file grows."""
        self._format.forget()
        if self._lines is not None:
            self._lines.release()

    def forget(self) -> None:
        """Close the file, which is gone, and forget its identity."""
        self._registry.forget(self.path, self._identity)
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._lines is not None:
            self._lines.close()
            self._lines = None


def _is_blank(row: Any) -> bool:
    return isinstance(row, str) and row.isspace()
