"""Lines of a file with the byte position behind each: plain files, gzip, and zip archives of one file.

Positions count uncompressed bytes. Going to a position in a compressed file reads up to it, at the
speed of decompression.
"""

from __future__ import annotations

import gzip
import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

from connect.api import ConnectError

_BUFFER = 1 << 20


class EndOfFile(Exception):
    """A file that may still grow has no more whole lines now."""


class Lines:
    """Iterate for lines as text; `position` and `line` are those behind the last line given.

    With `tail`, the end of the file raises EndOfFile instead of ending the iteration, and a last line
    without its newline is left for later.
    """

    def __init__(self, path: Path, encoding: str, *, tail: bool) -> None:
        self.path = path
        self.position = 0
        self.line = 0
        self._encoding = encoding
        self._compressed = path.suffix in (".gz", ".zip")
        self.tail = tail and not self._compressed
        """Whether the file may grow."""
        self._archive: zipfile.ZipFile | None = None
        self._file = self._open()

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
            raise ConnectError(
                f"{self.path} is shorter than byte {position}, where reading should go on: it was replaced; "
                "reset the connector's offset to read it anew"
            )
        self.position, self.line = position, line

    def __iter__(self) -> Iterator[str]:
        encoding, tail = self._encoding, self.tail
        for raw in self._file:
            if tail and raw[-1:] != b"\n":
                self._file.seek(self.position)
                raise EndOfFile
            text = raw.decode(encoding)
            if text[:1] == "\ufeff" and not self.position:  # a byte order mark
                text = text[1:]
            self.position += len(raw)
            self.line += 1
            yield text
        if tail:
            raise EndOfFile

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        if self._archive is not None:
            self._archive.close()
