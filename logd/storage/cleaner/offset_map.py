"""The last offset of each key, in memory of a fixed size.

    slot:  first 64 bits of the key's hash │ its other 64 bits │ offset       24 bytes in three arrays

Open addressing with linear probing; no Python object is kept per key (a dict would take seven times as much).
Keys are told apart by 128 bits of BLAKE2b, so two keys are taken for one with a probability of n²/2^129, and
nobody can make such keys on purpose. An entry's first number 0 means it is free.
"""

from __future__ import annotations

import struct
from array import array
from hashlib import blake2b

SLOT_BYTES = 24
_copy = blake2b(digest_size=16).copy  # half the price of a new one
_halves = struct.Struct("=QQ").unpack


class OffsetMap:
    """Filled with rising offsets. `latest` is the offset up to which all keys are in.

    It has room for `load_factor` of the slots that fit `max_bytes`, or for `keys_max` if that is less.
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
        """Note a key; False, and nothing noted, if it is a new one and there is no room."""
        state = _copy()
        state.update(key)
        first, second = _halves(state.digest())
        first = first or 1
        firsts, slot = self._first, first % self._slots
        while (found := firsts[slot]) != first or self._second[slot] != second:
            if not found:
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
        """The key's last offset, -1 if it is not in."""
        state = _copy()
        state.update(key)
        first, second = _halves(state.digest())
        first = first or 1
        firsts, slot = self._first, first % self._slots
        while (found := firsts[slot]) != first or self._second[slot] != second:
            if not found:
                return -1
            slot += 1
            if slot == self._slots:
                slot = 0
        return self._offsets[slot]
