"""Keys in byte order with cheap additions, for a store's range scans while keys are added.

The keys are in a list of short sorted lists. An addition or removal moves a few thousand entries at most,
whatever the number of keys.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator

CHUNK_KEYS = 1000
"""The length of a new short list; a list of twice this length is divided."""


class SortedKeys:
    """A set of keys in byte order."""

    def __init__(self, keys: Iterable[bytes] = ()) -> None:
        ordered = sorted(keys)
        self._chunks = [ordered[at : at + CHUNK_KEYS] for at in range(0, len(ordered), CHUNK_KEYS)]
        self._highest = [chunk[-1] for chunk in self._chunks]

    def add(self, key: bytes) -> None:
        """Add a key, unless the set has it."""
        if not self._chunks:
            self._chunks, self._highest = [[key]], [key]
            return
        number = min(bisect_left(self._highest, key), len(self._chunks) - 1)
        chunk = self._chunks[number]
        at = bisect_left(chunk, key)
        if at < len(chunk) and chunk[at] == key:
            return
        chunk.insert(at, key)
        if len(chunk) >= 2 * CHUNK_KEYS:
            self._chunks[number : number + 1] = [chunk[:CHUNK_KEYS], chunk[CHUNK_KEYS:]]
            self._highest.insert(number, chunk[CHUNK_KEYS - 1])
            number += 1
        self._highest[number] = self._chunks[number][-1]

    def remove(self, key: bytes) -> None:
        """Remove a key, if the set has it."""
        number = bisect_left(self._highest, key)
        if number == len(self._chunks):
            return
        chunk = self._chunks[number]
        at = bisect_left(chunk, key)
        if chunk[at] != key:
            return
        del chunk[at]
        if chunk:
            self._highest[number] = chunk[-1]
        else:
            del self._chunks[number], self._highest[number]

    def range(
        self, lower: bytes | None = None, upper: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[bytes]:
        """Yield the keys in ``lower <= key < upper``, in order or from the last to the first.

        The set must not change during the iteration.
        """
        if backwards:
            yield from self._range_backwards(lower, upper)
            return
        number = 0 if lower is None else bisect_left(self._highest, lower)
        for chunk in self._chunks[number:]:
            begin = 0 if lower is None else bisect_left(chunk, lower)
            end = len(chunk) if upper is None else bisect_left(chunk, upper)
            yield from chunk[begin:end]
            if end < len(chunk):
                return

    def _range_backwards(self, lower: bytes | None, upper: bytes | None) -> Iterator[bytes]:
        number = len(self._chunks) if upper is None else bisect_left(self._highest, upper) + 1
        for chunk in reversed(self._chunks[:number]):
            begin = 0 if lower is None else bisect_left(chunk, lower)
            end = len(chunk) if upper is None else bisect_left(chunk, upper)
            yield from reversed(chunk[begin:end])
            if begin > 0:
                return
