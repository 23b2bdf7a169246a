"""A piece of a file: what storage returns for a read, and what a server sends with `sendfile`.

The bytes in it are whole or cut batches, and were not checked.
"""

from __future__ import annotations

from typing import NamedTuple


class FileSlice(NamedTuple):
    """`length` bytes of descriptor `fd` from `position` on.

    `fd` stays open for as long as `owner` is referenced, though its log be deleted or closed
    meanwhile: keep the slice itself until it is sent, not only its numbers.
    """

    fd: int
    position: int
    length: int
    owner: object = None
