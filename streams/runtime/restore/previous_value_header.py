"""The header of a changelog record with the value of its key at the last commit.

    "millstream.previous":  int64 cut | nothing more              the key was absent
                            int64 cut | int64 timestamp | value bytes ...

The cut is the changelog offset of that last commit. A header with another cut is not used: it comes from a
member that had lost the task.

Commits of more than one batch have the header, except for keys that were absent at the cut. The log before
the cut has no record that could be mistaken for the value of such a key. A cleaner never removes a tombstone
and leaves an older record.

A commit of one batch needs no header: the batch is appended completely or not at all. It stays in the active
segment, which is not cleaned, until this task writes again.

After a failed commit the next one repairs it, and has the header whatever its size and its keys. From then on
the cleaner may remove the earlier values of the first one's keys, and the repair is valid only once it is
committed. One case remains: the repair of one batch takes several batches, fails between them, and is cleaned
before the next start.
"""

from __future__ import annotations

import struct

from kafka_client.records import Headers

HEADER = "millstream.previous"

_CUT = struct.Struct(">q")


def with_previous(cut: int, stored: bytes | None) -> Headers:
    """Return the headers of a record whose key had ``stored`` (a backend's value) at ``cut``."""
    return ((HEADER, _CUT.pack(cut) + (stored or b"")),)


def previous_of(headers: Headers, cut: int) -> tuple[bool, bytes | None]:
    """Return True and the key's value at ``cut``, or False if the record does not have the value."""
    for name, value in headers:
        if name == HEADER and value is not None and value.startswith(_CUT.pack(cut)):
            return True, value[_CUT.size :] or None
    return False, None
