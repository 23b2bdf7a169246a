"""Keys of source offsets: many spellings of one source partition, and the normal form that they share.

A Java worker writes a partition's fields in its map's order, ours sorts them. A store looks a key up by its
normal form, and writes it as it was first seen: compaction would keep a second spelling beside the first.
"""

from __future__ import annotations

from typing import Any

from connect.stores import json_documents


def normal_form(key: bytes) -> bytes:
    """Return the key with sorted fields and no spaces; what is no JSON is its own normal form."""
    try:
        return json_documents.encode(json_documents.decode(key), sort_keys=True) if key else key
    except (ValueError, TypeError):
        return key


def read_key(key: bytes) -> tuple[str, dict[str, Any]] | None:
    """Return the connector and the source partition of a key; None if it is of something else."""
    try:
        match json_documents.decode(key):
            case [str(connector), dict(partition)]:
                return connector, partition
    except ValueError:
        pass
    return None
