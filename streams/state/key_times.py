"""`KeyTimes`: what windows or sessions a store has of each key in use, without looking for them on disk.

An aggregation that depends on a key's other windows asks for them with every record. So they are looked up on
disk once, and kept here, in order of time, while the store's entries are in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from typing import Any

KEY_BYTES = 200
"""About what a key and its list take in memory, and each time in it a fraction of that."""


class KeyTimes:
    """Sorted times by key bytes. ``load`` finds those that are on disk."""

    def __init__(self, load: Callable[[bytes], list[Any]]) -> None:
        self._load = load
        self._times: dict[bytes, list[Any]] = {}

    def of(self, key: bytes) -> list[Any]:
        """The times of a key, in order; the list is this one's own."""
        times = self._times.get(key)
        if times is None:
            times = self._times[key] = self._load(key)
        return times

    def peek(self, key: bytes) -> list[Any] | None:
        """As `of`, for who asks from outside: None if the key is not in use."""
        return self._times.get(key)

    def add(self, key: bytes, time: Any) -> bool:
        """Add a time; whether it was not there."""
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
        """Remove a time, if it is there; of a key that is not in use there is nothing to remove."""
        times = self._times.get(key)
        if times is None:
            return
        at = bisect_left(times, time)
        if at < len(times) and times[at] == time:
            del times[at]

    def take_before(self, key: bytes, time: Any) -> list[Any]:
        """Remove and return the times before this one."""
        times = self.of(key)
        at = bisect_left(times, time)
        taken = times[:at]
        del times[:at]
        return taken

    def drop_before(self, time: Any) -> None:
        """Remove the times before this one of all keys in use."""
        for times in self._times.values():
            if times and times[0] < time:
                del times[: bisect_left(times, time)]

    def keep(self, keys: Iterable[bytes]) -> None:
        """Forget all keys but these; of the others everything must be on disk."""
        times = self._times
        self._times = {key: times[key] for key in keys if key in times}

    @property
    def bytes(self) -> int:
        """About what it takes in memory."""
        return len(self._times) * KEY_BYTES
