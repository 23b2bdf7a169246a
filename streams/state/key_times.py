"""`KeyTimes`: the times of a store's windows, sessions or versions, for each key in use, held in memory.

An aggregation that depends on a key's other windows looks them up with every record. So their times are read
from disk once, and kept here in order while the store's entries are in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

KEY_BYTES = 200
"""The approximate memory of a key and its list; each time in the list takes a fraction of that."""


class KeyTimes:
    """Sorted times by key bytes. ``load`` reads a key's times from disk."""

    def __init__(self, load: Callable[[bytes], list[Any]]) -> None:
        self._load = load
        self._times: dict[bytes, list[Any]] = {}

    def of(self, key: bytes) -> list[Any]:
        """Return the times of a key, in order, in the list that is kept here; load it if need be."""
        times = self._times.get(key)
        if times is None:
            times = self._times[key] = self._load(key)
        return times

    def peek(self, key: bytes) -> list[Any] | None:
        """Return the times of a key, for a query: None, without loading, if the key is not in use."""
        return self._times.get(key)

    def add(self, key: bytes, time: Any) -> bool:
        """Add a time. Return True if it is new."""
        times = self.of(key)
        if not times or time > times[-1]:
            times.append(time)
            return True
        at = bisect_left(times, time)
        if times[at] == time:
            return False
        times.insert(at, time)
        return True

    def remove(self, key: bytes, time: Any) -> None:
        """Remove a time, if the key is in use and has it."""
        times = self._times.get(key)
        if times is None:
            return
        at = bisect_left(times, time)
        if at < len(times) and times[at] == time:
            del times[at]

    def take_before(self, key: bytes, time: Any) -> list[Any]:
        """Remove and return a key's times before ``time``."""
        times = self.of(key)
        at = bisect_left(times, time)
        removed = times[:at]
        del times[:at]
        return removed

    def drop_before(self, time: Any) -> None:
        """Remove the times before ``time`` of all keys in use."""
        for times in self._times.values():
            if times and times[0] < time:
                del times[: bisect_left(times, time)]

    def keep(self, keys: Iterable[bytes]) -> None:
        """Drop all keys but these from memory; all times of the others must be on disk."""
        times = self._times
        self._times = {key: times[key] for key in keys if key in times}

    @property
    def bytes(self) -> int:
        """The approximate memory of all keys and their times."""
        return len(self._times) * KEY_BYTES
