"""The names of a table's columns that come from the record, and the prefix before them."""

from __future__ import annotations

from collections.abc import Sequence

RECORD_COLUMNS = ("key", "topic", "partition", "offset", "timestamp")
"""The first columns of every table, in this order."""
TOMBSTONE = "_tombstone"
"""A hidden column: true if the record had no value, which deletes its key."""
GENERATION = "_generation"
"""A hidden column: how often the topic had been made again when the record was read.

Offsets of two generations of a topic are not comparable. Null, in files of earlier versions, is 0.
"""


def record_prefix(columns: Sequence[str]) -> str | None:
    """Return the prefix of the record's columns in a table, or None if these columns are not its first."""
    first = columns[0] if columns else ""
    prefix = first.removesuffix("key")
    expected = [prefix + name for name in RECORD_COLUMNS]
    return prefix if list(columns[: len(RECORD_COLUMNS)]) == expected else None
