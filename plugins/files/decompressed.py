"""Opens files to be read: plain, gzip or zstd, by their names; with a bound on the length of their lines."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from typing import IO, BinaryIO, cast

from connect.api import DataError

BUFFER = 1 << 20
COMPRESSED = (".gz", ".zst")
"""Suffixes of compressed files; zip archives are opened elsewhere."""
LINE_BYTES_MAX = 64 << 20
"""About how long a line may be. Without this bound a file without line ends would be read into memory."""


def open_decompressed(path: Path, *, lines: bool = True) -> BinaryIO:
    """Return the file's content; with `lines`, reading a line that is too long raises DataError."""
    raw = _opened(path)
    return cast(BinaryIO, io.BufferedReader(LineBound(raw, path) if lines else raw, BUFFER))


def _opened(path: Path) -> io.RawIOBase:
    if path.suffix == ".gz":
        return cast(io.RawIOBase, gzip.open(path, "rb"))
    if path.suffix == ".zst":
        if sys.version_info >= (3, 14):
            from compression.zstd import ZstdFile
        else:
            from backports.zstd import ZstdFile
        return cast(io.RawIOBase, ZstdFile(path, "rb"))
    return path.open("rb", buffering=0)


class LineBound(io.RawIOBase):
    """A reader that refuses lines of more than LINE_BYTES_MAX; it checks a buffer at a time."""

    def __init__(self, raw: io.RawIOBase | IO[bytes], path: Path) -> None:
        super().__init__()
        self._raw = cast(io.RawIOBase, raw)
        self._path = path
        self._since_end = 0
        """Bytes since the last line end."""

    def readinto(self, buffer: memoryview) -> int | None:  # type: ignore[override]
        """Read into the buffer. Raises DataError within a line that is too long."""
        count: int | None = self._raw.readinto(buffer)
        if count:
            end = bytes(buffer[:count]).rfind(b"\n")
            self._since_end = self._since_end + count if end < 0 else count - end - 1
            if self._since_end > LINE_BYTES_MAX:
                raise DataError(f"{self._path}: a line of more than {LINE_BYTES_MAX >> 20} MiB")
        return count

    def seek(self, position: int, whence: int = 0) -> int:
        """Seek; a line is measured from there."""
        self._since_end = 0
        return self._raw.seek(position, whence)

    def tell(self) -> int:
        """Return the position."""
        return self._raw.tell()

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True if the content is."""
        return self._raw.seekable()

    def fileno(self) -> int:
        """Return the file's descriptor."""
        return self._raw.fileno()

    def close(self) -> None:
        """Close the file."""
        self._raw.close()
        super().close()
