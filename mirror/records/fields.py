"""Packs and unpacks the fields of MirrorMaker 2's records: STRING, INT16, INT32 and INT64, big-endian.

A STRING is an INT16 length in bytes and UTF-8. Bytes after the last field are ignored, as in Kafka, so that a
later version may append fields.
"""

from __future__ import annotations

import struct

STRING_LIMIT = 0x7FFF
"""The most bytes of a STRING."""

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


def string(text: str) -> bytes:
    """Return a STRING. Raises ValueError if it has more than `STRING_LIMIT` bytes or is no valid Unicode."""
    data = text.encode()
    if len(data) > STRING_LIMIT:
        raise ValueError(f"a string of {len(data)} bytes, at most {STRING_LIMIT}: {text[:40]!r}...")
    return _INT16.pack(len(data)) + data


def int16(value: int) -> bytes:
    """Return an INT16. Raises ValueError if the value does not fit."""
    return _pack(_INT16, value)


def int32(value: int) -> bytes:
    """Return an INT32. Raises ValueError if the value does not fit."""
    return _pack(_INT32, value)


def int64(value: int) -> bytes:
    """Return an INT64. Raises ValueError if the value does not fit."""
    return _pack(_INT64, value)


def _pack(form: struct.Struct, value: int) -> bytes:
    try:
        return form.pack(value)
    except struct.error:
        raise ValueError(f"{value} does not fit into {form.size} bytes") from None


class FieldReader:
    """A reader of one field after the other. Its methods raise ValueError where the bytes end early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def string(self) -> str:
        """Return the next STRING. Raises ValueError if its length is negative or it is not UTF-8."""
        size = self.int16()
        if not 0 <= size <= len(self._data) - self._at:
            left = len(self._data) - self._at
            raise ValueError(f"a string of {size} bytes where {left} are left")
        start, self._at = self._at, self._at + size
        return self._data[start : self._at].decode()

    def int16(self) -> int:
        """Return the next INT16."""
        return self._unpack(_INT16)

    def int32(self) -> int:
        """Return the next INT32."""
        return self._unpack(_INT32)

    def int64(self) -> int:
        """Return the next INT64."""
        return self._unpack(_INT64)

    def version(self, name: str, latest: int) -> int:
        """Return the next INT16, a version. Raises ValueError if this is not a version up to `latest`."""
        version = self.int16()
        if not 0 <= version <= latest:
            raise ValueError(
                f"{name} of version {version}: this program reads versions up to {latest}, update it"
            )
        return version

    def _unpack(self, form: struct.Struct) -> int:
        try:
            (value,) = form.unpack_from(self._data, self._at)
        except struct.error:
            raise ValueError(
                f"{form.size} bytes are needed at {self._at}, the record has {len(self._data)}"
            ) from None
        self._at += form.size
        return int(value)
