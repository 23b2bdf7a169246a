"""The header of a changelog record that carries the value its key had at the last commit.

    "millstream.previous":  int64 cut | nothing more              the key was absent
                            int64 cut | int64 timestamp | value bytes ...

The cut is the changelog offset of that last commit; a header with another cut, of a member that had lost the
task, is not used. Commits of more than one batch have the header, but for keys that are known to have been
absent at the cut: of those the log has nothing before the cut that could be taken for their value, cleaned or
not, for a cleaner never takes a tombstone and leaves what lies before it. One batch needs none: it is
appended whole or not at all, and stays in the active segment, which is not cleaned, until this task writes
again. If it broke off, the commit behind it, which repairs it, has the header whatever its size and its keys:
the cleaner may take from now on what the first one's keys had before, and the repair counts only if it is
committed. What remains is a repair of one batch that takes several, breaks off between them, and is cleaned
before the next start.
"""

from __future__ import annotations

import struct

from kafka_client.records import Headers

HEADER = "millstream.previous"

_CUT = struct.Struct(">q")


def with_previous(cut: int, stored: bytes | None) -> Headers:
    """Headers of a record whose key had ``stored`` (a backend's value) at ``cut``."""
    return ((HEADER, _CUT.pack(cut) + (stored or b"")),)


def previous_of(headers: Headers, cut: int) -> tuple[bool, bytes | None]:
    """Whether the record says what its key had at ``cut``, and what."""
    for name, value in headers:
        if name == HEADER and value is not None and value.startswith(_CUT.pack(cut)):
            return True, value[_CUT.size :] or None
    return False, None
