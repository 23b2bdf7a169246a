"""Lines of a file with the byte position behind each: plain files, gzip, and zip archives of one file.

Positions count uncompressed bytes. Going to a position in a compressed file reads up to it, at the
speed of decompression.
"""

from __future__ import annotations

import codecs
import gzip
import io
import itertools
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from connect.api import ConnectError

_BUFFER = 1 << 20
_MARK_BYTES = 256
_STATELESS = frozenset({"utf-8", "ascii", "iso8859-1"})
"""Codecs, by Python's names, of which lines in a row can be decoded at once."""


Signature = tuple[int, int, int, int]
"""Device, inode, size, time of the last change in ns: while these stay the same a file has nothing new."""


def signature(status: os.stat_result) -> Signature:
    """Of a file."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class EndOfFile(Exception):
    """A file that may still grow has no more whole lines now."""


class Lines:
    """Iterate for lines as text; `position` and `line` are those behind the last line given.

    With `tail`, the end of the file raises EndOfFile instead of ending the iteration, and a last line without
    its newline is left for later. Call `rest` then; once it `has_changed`, `wake` it and iterate again. A
    resting file may `release` its descriptor.
    """

    def __init__(self, path: Path, encoding: str, *, tail: bool) -> None:
        self.path = path
        self.position = 0
        self.line = 0
        self._encoding = encoding
        self._codec = codecs.lookup(encoding).name
        self._compressed = path.suffix in (".gz", ".zip")
        self.tail = tail and not self._compressed
        """Whether the file may grow."""
        self._archive: zipfile.ZipFile | None = None
        self._file = self._open()
        self.begun = signature(os.fstat(self._file.fileno())) if self.tail else None
        """A growing file's signature when it was opened."""
        self._read_to = 0
        self._resting: Signature | None = None
        self._mark = b""

    def _open(self) -> BinaryIO:
        try:
            if self.path.suffix == ".zip":
                return self._open_zip()
            if self.path.suffix == ".gz":
                return cast(BinaryIO, io.BufferedReader(gzip.open(self.path, "rb"), _BUFFER))
            return self.path.open("rb", buffering=_BUFFER)
        except FileNotFoundError:
            raise
        except (OSError, zipfile.BadZipFile) as e:
            raise ConnectError(f"{self.path} cannot be opened: {e}") from e

    def _open_zip(self) -> BinaryIO:
        self._archive = zipfile.ZipFile(self.path)
        members = [m for m in self._archive.infolist() if not m.is_dir()]
        if len(members) != 1:
            raise ConnectError(f"{self.path} holds {len(members)} files; an archive must hold exactly one")
        member = self._archive.open(members[0])
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, member), _BUFFER))

    def seek(self, position: int, line: int) -> None:
        """Go on from a position given earlier; ConnectError if the file does not reach that far any more."""
        reached = self._file.seek(position)  # a compressed file stops at its end, a plain one does not
        if not self._compressed:
            reached = min(reached, os.fstat(self._file.fileno()).st_size)
        if reached < position:
            raise self._replaced(f"is shorter than byte {position}, where reading should go on")
        self.position, self.line = position, line

    def go_on(self, position: int, line: int) -> None:
        """`seek`, in a file that may have been replaced: ConnectError unless a line ends at the position."""
        self.seek(position, line)
        self._file.seek(position - 1)
        before, after = self._file.read(1), self._file.read(1)
        if before != b"\n" and after not in (b"", b"\n", b"\r"):  # a last line may have had no newline
            raise self._replaced(f"has no line that ends at byte {position}, where reading should go on")
        self._file.seek(position)

    def rest(self) -> None:
        """Note how the file is, unless more has come behind the end that was read.

        ConnectError if it was replaced: a file that was truncated or renamed away would be waited for for
        ever.
        """
        held = os.fstat(self._file.fileno())
        if held.st_size < self.position:
            raise self._replaced(f"was cut to {held.st_size} bytes, {self.position} were read")
        if self._is_another(held):
            raise self._replaced("is another file now")
        if held.st_size == self._read_to:
            self._resting = signature(held)
            self._mark = self._read_mark()

    def release(self) -> None:
        """Give a resting file's descriptor back. Once renamed, the file is not followed any more."""
        self._file.close()

    @property
    def is_released(self) -> bool:
        """Whether it holds no descriptor."""
        return self._file.closed

    @property
    def is_resting(self) -> bool:
        """Whether `wake` must be called before the next line is read."""
        return self._resting is not None

    def has_changed(self) -> bool:
        """Whether a resting file has changed since `rest`."""
        if not self._file.closed:
            held = os.fstat(self._file.fileno())
            return signature(held) != self._resting or self._is_another(held)
        try:
            return signature(os.stat(self.path)) != self._resting
        except FileNotFoundError:
            return False

    def wake(self) -> bool:
        """Go on with a resting file where it was left; False if there is no such file now.

        ConnectError if it was replaced.

        Once the descriptor is closed another file may get the same inode, and a file may be rewritten in
        place: so the bytes read last are compared.
        """
        assert self._resting is not None
        if self._file.closed:
            try:
                self._file = self._open()
            except FileNotFoundError:
                return False
            if self._resting[:2] != signature(os.fstat(self._file.fileno()))[:2]:
                raise self._replaced("is another file now")
        self._file.seek(0, os.SEEK_END)  # drop what was buffered before
        self.seek(self.position, self.line)
        if self._read_mark() != self._mark:
            raise self._replaced(f"has other contents before byte {self.position}")
        self._resting = None
        return True

    def _read_mark(self) -> bytes:
        """The bytes before the position; leaves the file at the position."""
        begin = max(0, self.position - _MARK_BYTES)
        self._file.seek(begin)
        return self._file.read(self.position - begin)

    def _is_another(self, held: os.stat_result) -> bool:
        """Whether the path names another file now; False if it names none: it may be about to be replaced."""
        try:
            return signature(os.stat(self.path))[:2] != signature(held)[:2]
        except FileNotFoundError:
            return False

    def _replaced(self, how: str) -> ConnectError:
        return ConnectError(
            f"{self.path} {how}: it was replaced; to read it from its start, stop the worker and remove the "
            "file's line from offset.storage.file.filename"
        )

    def __iter__(self) -> Iterator[str]:
        encoding, tail = self._encoding, self.tail
        for raw in self._file:
            if tail and raw[-1:] != b"\n":
                self._read_to = self.position + len(raw)
                raise EndOfFile
            text = raw.decode(encoding)
            if text[:1] == "\ufeff" and not self.position:  # a byte order mark
                text = text[1:]
            self.position += len(raw)
            self.line += 1
            yield text
        if tail:
            self._read_to = self.position
            raise EndOfFile

    def take(self, count: int) -> list[str]:
        """Return the next lines without their ends, at most `count` of them.

        Fewer are the last ones, or the last for now: the end of a growing file raises nothing. This takes
        half the time of iterating.
        """
        raws = list(itertools.islice(self._file, count))
        unfinished = b""
        if self.tail and raws and raws[-1][-1:] != b"\n":
            unfinished = raws.pop()
        texts = self._decoded(raws)
        if texts and not self.position:
            texts[0] = texts[0].removeprefix("\ufeff")  # a byte order mark
        self.position += sum(map(len, raws))
        self.line += len(raws)
        self._read_to = self.position + len(unfinished)
        return texts

    def _decoded(self, raws: list[bytes]) -> list[str]:
        """Return lines as text, without their ends.

        A UnicodeDecodeError leaves `position` and `line` after the last line before it.
        """
        joined = b"".join(raws)
        try:
            text = joined.decode(self._encoding) if self._codec in _STATELESS else None
        except UnicodeDecodeError:
            text = None
        if text is None:
            return self._decoded_each(raws)
        texts = text.split("\n")
        if text.endswith("\n") or not text:
            texts.pop()
        return [each.rstrip("\r") for each in texts] if "\r" in text else texts

    def _decoded_each(self, raws: list[bytes]) -> list[str]:
        """Return the same, line by line: an encoding may keep a state up to the end of a line."""
        texts: list[str] = []
        try:
            for raw in raws:
                texts.append(raw.decode(self._encoding).rstrip("\r\n"))
        except UnicodeDecodeError:
            self.position += sum(map(len, raws[: len(texts)]))
            self.line += len(texts)
            raise
        return texts

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._archive is not None:
            self._archive.close()
