"""Reads lines with the byte position after each, from plain files, gzip, zstd, and zip archives of one file.

Positions count uncompressed bytes. A seek in a compressed file decompresses everything before the position.
"""

from __future__ import annotations

import codecs
import io
import itertools
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from connect.api import ConnectError
from plugins.files.decompressed import BUFFER, COMPRESSED, LineBound, open_decompressed
from plugins.files.identity import Identity

_MARK_BYTES = 256
_STATELESS = frozenset({"utf-8", "ascii", "iso8859-1"})
"""Codecs, by Python's names, of which lines in a row can be decoded at once."""


Signature = tuple[int, int, int, int]
"""Device, inode, size and time of the last change in ns: an unchanged file has the same signature."""


def signature(status: os.stat_result) -> Signature:
    """Return a file's signature."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


class Replaced(ConnectError):
    """An error for a file whose content was replaced: there is nothing to go on with."""


class Renamed(ConnectError):
    """An error for a name that another file has now; the file that was read may have another name."""


class EndOfFile(Exception):
    """A signal that a growing file has no more complete lines now."""


class Lines:
    """The lines of a file, as an iterator of text. `position` and `line` are those after the last line
    returned.

    With `tail`, the end of the file raises EndOfFile instead of ending the iteration, and a last line without
    its newline is not returned yet. Call `rest` then; once it `has_changed`, `wake` it and iterate again. A
    resting file may `release` its descriptor.
    """

    def __init__(self, path: Path, encoding: str, *, tail: bool, name: Path | None = None) -> None:
        """Open the file at `path`; a renamed file's old name is `name`, and ends when a new file has it."""
        self.path = path
        self._name = name or path
        self.position = 0
        self.line = 0
        self._encoding = encoding
        self._codec = codecs.lookup(encoding).name
        self._compressed = path.suffix in (*COMPRESSED, ".zip")
        self.tail = tail and not self._compressed
        """True if the file may grow."""
        self._archive: zipfile.ZipFile | None = None
        self._file = self._open()
        self.signature_at_open = signature(os.fstat(self._file.fileno())) if self.tail else None
        """A growing file's signature when it was opened."""
        self._read_to = 0
        self._resting: Signature | None = None
        self._mark = b""

    def _open(self) -> BinaryIO:
        try:
            if self.path.suffix == ".zip":
                return self._open_zip()
            return open_decompressed(self.path)
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
        return cast(BinaryIO, io.BufferedReader(LineBound(cast(io.RawIOBase, member), self.path), BUFFER))

    def seek(self, position: int, line: int) -> None:
        """Seek to an earlier position. Raises Replaced if the file is shorter now."""
        reached = self._file.seek(position)  # a compressed file stops at its end, a plain one does not
        if not self._compressed:
            reached = min(reached, os.fstat(self._file.fileno()).st_size)
        if reached < position:
            raise self._replaced(f"is shorter than byte {position}, where reading should go on")
        self.position, self.line = position, line

    def go_on(self, position: int, line: int) -> None:
        """Seek in a file that may have been replaced.

        Raises Replaced unless a line ends at the position.
        """
        self.seek(position, line)
        self._file.seek(position - 1)
        before, after = self._file.read(1), self._file.read(1)
        if before != b"\n" and after not in (b"", b"\n", b"\r"):  # a last line may have had no newline
            raise self._replaced(f"has no line that ends at byte {position}, where reading should go on")
        self._file.seek(position)

    def rest(self) -> None:
        """Record the file's signature, unless it has grown since its end was read.

        Raises Replaced if the file was truncated, Renamed if its name is another file's now.
        """
        status = os.fstat(self._file.fileno())
        if status.st_size < self.position:
            raise self._replaced(f"was cut to {status.st_size} bytes, {self.position} were read")
        if self._is_another(status):
            raise Renamed(f"{self._name} is another file now")
        if status.st_size == self._read_to:
            self._resting = signature(status)
            self._mark = self._read_mark()

    def release(self) -> None:
        """Close a resting file's descriptor. A file that is renamed afterwards is not followed."""
        self._file.close()

    @property
    def is_released(self) -> bool:
        """True if the descriptor is closed."""
        return self._file.closed

    @property
    def is_resting(self) -> bool:
        """True if `wake` must be called before the next line is read."""
        return self._resting is not None

    def has_changed(self) -> bool:
        """Return True if a resting file has changed since `rest`."""
        if not self._file.closed:
            status = os.fstat(self._file.fileno())
            return signature(status) != self._resting or self._is_another(status)
        try:
            status = os.stat(self.path)
            return signature(status) != self._resting or self._is_another(status)
        except FileNotFoundError:
            return False

    def wake(self) -> bool:
        """Resume reading a resting file. Return False if it does not exist now.

        Raises Replaced or Renamed if it was replaced. The last bytes read are compared, because a file may be
        rewritten in place, and another file may get the inode after the descriptor was closed.
        """
        assert self._resting is not None
        if self._file.closed:
            try:
                self._file = self._open()
            except FileNotFoundError:
                return False
            if self._resting[:2] != signature(os.fstat(self._file.fileno()))[:2]:
                self._file.close()
                raise Renamed(f"{self._name} is another file now")
        self._file.seek(0, os.SEEK_END)  # drop what was buffered before
        self.seek(self.position, self.line)
        if self._read_mark() != self._mark:
            raise self._replaced(f"has other contents before byte {self.position}")
        self._resting = None
        return True

    def _read_mark(self) -> bytes:
        """Return the bytes before the position; the file is at the position afterwards."""
        begin = max(0, self.position - _MARK_BYTES)
        self._file.seek(begin)
        return self._file.read(self.position - begin)

    def _is_another(self, status: os.stat_result) -> bool:
        """Return True if the path is another file now, False if it does not exist (yet)."""
        try:
            return signature(os.stat(self._name))[:2] != signature(status)[:2]
        except FileNotFoundError:
            return False

    def _replaced(self, how: str) -> Replaced:
        return Replaced(f"{self.path} {how}: it was replaced")

    def identity(self) -> Identity | None:
        """Return the identity of a plain file by what was read of it; None for a compressed one."""
        if self._compressed or not self.position:
            return None
        return Identity.of(self._file.fileno(), self.position)

    @property
    def is_compressed(self) -> bool:
        """True if the file is compressed, and so does not grow."""
        return self._compressed

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
        joined = b"".join(raws)
        texts = self._decoded(joined, raws)
        if texts and not self.position:
            texts[0] = texts[0].removeprefix("\ufeff")  # a byte order mark
        self.position += len(joined)
        self.line += len(raws)
        self._read_to = self.position + len(unfinished)
        return texts

    def _decoded(self, joined: bytes, raws: list[bytes]) -> list[str]:
        """Return lines as text, without their ends; `joined` is all of `raws`.

        A UnicodeDecodeError leaves `position` and `line` after the last line before it.
        """
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

    def skip(self) -> bytes:
        """Return the next line undecoded, with its end; empty at the end of the file."""
        self.seek(self.position, self.line)
        raw = self._file.readline()
        self.position += len(raw)
        self.line += bool(raw)
        return raw

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._archive is not None:
            self._archive.close()
