"""The last offset of each key, in memory of a fixed size.

    slot:  first 64 bits of the key's hash │ its other 64 bits │ offset       24 bytes in three arrays

Open addressing with linear probing, without a Python object per key (a dict would take seven times as much).
Keys are compared by 128 bits of BLAKE2b. So two of n keys are taken for the same with a probability of
n²/2^129, and nobody can construct such keys. An entry whose first number is 0 is free.
"""

from __future__ import annotations

import struct
from array import array
from hashlib import blake2b

SLOT_BYTES = 24
_copy = blake2b(digest_size=16).copy  # a copy takes half the time of a new one
_halves = struct.Struct("=QQ").unpack


class OffsetMap:
    """A map from keys to their last offsets, filled in rising order. All keys up to offset `latest` are in
    it.

    It has room for `load_factor` of the slots in `max_bytes`, or for `keys_max` keys if that is less.
    """

    __slots__ = ("_first", "_offsets", "_second", "_slots", "count", "latest", "room")

    def __init__(self, max_bytes: int, load_factor: float, keys_max: int) -> None:
        self.room = max(min(int(max_bytes // SLOT_BYTES * load_factor), keys_max), 1)
        self._slots = int(self.room / load_factor) + 1
        zeros = array("Q", [0])
        self._first, self._second = zeros * self._slots, zeros * self._slots
        self._offsets = array("q", [0]) * self._slots
        self.count = 0
        self.latest = -1

    def put(self, key: bytes, offset: int) -> bool:
        """Set the key's last offset; return False, and change nothing, if the key is new and there is no
        room.
        """
        state = _copy()
        state.update(key)
        first, second = _halves(state.digest())
        first = first or 1
        firsts, slot = self._first, first % self._slots
        while (occupant := firsts[slot]) != first or self._second[slot] != second:
            if not occupant:
                if self.count >= self.room:
                    return False
                self.count += 1
                firsts[slot] = first
                self._second[slot] = second
                break
            slot += 1
            if slot == self._slots:
                slot = 0
        self._offsets[slot] = offset
        self.latest = offset
        return True

    def get(self, key: bytes) -> int:
        """Return the key's last offset, -1 if the key is not in the map."""
        state = _copy()
        state.update(key)
        first, second = _halves(state.digest())
        first = first or 1
        firsts, slot = self._first, first % self._slots
        while (occupant := firsts[slot]) != first or self._second[slot] != second:
            if not occupant:
                return -1
            slot += 1
            if slot == self._slots:
                slot = 0
        return self._offsets[slot]
