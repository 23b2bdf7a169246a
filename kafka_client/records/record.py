"""The forms of a record: new, and as a log keeps it."""

from __future__ import annotations

from typing import TypeAlias

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
NewRecord: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp ms, key, value, headers."""
Record: TypeAlias = tuple[int, int, bytes | None, bytes | None, Headers]
"""Offset, timestamp ms, key, value, headers."""
