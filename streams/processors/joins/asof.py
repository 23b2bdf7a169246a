"""`AsOf`: the settings of an as-of join, the choice of a record's match, and when that choice is final."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from streams.errors import TopologyError
from streams.processors.windowing.windows import Duration, milliseconds

Direction: TypeAlias = Literal["backward", "forward", "nearest"]
Match: TypeAlias = tuple[int, Any]
"""Timestamp (ms) and value of the matching record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """The settings of an as-of join, like pandas' ``merge_asof``: a record has at most one match."""

    tolerance: Duration
    """The longest time between a record and its match."""
    direction: Direction = "backward"
    """The side on which the match is.

    `backward`: the last record that is not later. `forward`: the first record that is not earlier. `nearest`:
    the nearer of the two, or the earlier one if both are equally near. Among several of the same time, the
    match is the last to arrive, or the first if it is later than the record.
    """
    allow_exact_matches: bool = True
    """False: a record of the same time is no match."""
    grace: Duration = 0
    """How far behind stream time the other stream's records may be."""

    def __post_init__(self) -> None:
        if self.direction not in ("backward", "forward", "nearest"):
            raise TopologyError(
                f"direction is {self.direction!r}, it may be 'backward', 'forward' or 'nearest'"
            )
        for what, duration in (("tolerance", self.tolerance), ("grace", self.grace)):
            if milliseconds(duration) < 0:
                raise TopologyError(f"as-of join: {what} is {duration}, it must not be negative")

    @property
    def tolerance_ms(self) -> int:
        """The longest time between a record and its match, ms."""
        return milliseconds(self.tolerance)

    @property
    def grace_ms(self) -> int:
        """How long a record waits for others that are out of order, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def waits(self) -> bool:
        """True if a record may have to wait for later ones."""
        return self.direction != "backward" or self.grace_ms > 0

    @property
    def retention_ms(self) -> int:
        """How long the other stream's records are kept, ms.

        It is the time from a record's earliest possible match until the record need not wait any longer.
        """
        ways = 2 if self.direction == "nearest" else 1
        return ways * self.tolerance_ms + self.grace_ms + 1

    def span(self, timestamp: int) -> tuple[int, int]:
        """Return the first and last time (ms) of possible matches of a record of this time."""
        exact = 0 if self.allow_exact_matches else 1
        first = timestamp + exact if self.direction == "forward" else timestamp - self.tolerance_ms
        last = timestamp - exact if self.direction == "backward" else timestamp + self.tolerance_ms
        return max(first, 0), last

    def meets(self, timestamp: int, other: int) -> bool:
        """Return True if a record of the ``other`` time is a possible match of a record of this time."""
        first, last = self.span(timestamp)
        return first <= other <= last and (self.allow_exact_matches or other != timestamp)

    def choose(self, timestamp: int, candidates: list[Match]) -> Match | None:
        """Return the match of a record of this time, None if there is none.

        ``candidates``: the records in its `span`, by time and order of arrival.
        """
        if not candidates or self.direction == "backward":
            return candidates[-1] if candidates else None
        if self.direction == "forward":
            return candidates[0]
        at = bisect_right if self.allow_exact_matches else bisect_left
        before = at(candidates, timestamp, key=_time)
        after = bisect_right(candidates, timestamp, key=_time)
        if after == len(candidates):
            return candidates[before - 1] if before else None
        if before == 0:
            return candidates[after]
        earlier, later = candidates[before - 1], candidates[after]
        return earlier if timestamp - earlier[0] <= later[0] - timestamp else later

    def due(self, timestamp: int, match_time: int | None) -> int:
        """Return the stream time (ms) from which on no record can be a better match, except late ones.

        ``match_time``: the time (ms) of the match so far, None if there is none.
        """
        if self.direction == "backward":
            return timestamp + self.grace_ms
        if match_time is None:
            return timestamp + self.tolerance_ms + self.grace_ms + 1
        return timestamp + abs(match_time - timestamp) + self.grace_ms


def time_of(match: Match | None) -> int | None:
    """Return the time of a match, ms; None if there is no match."""
    return None if match is None else match[0]


_time: Callable[[Match], int] = lambda match: match[0]  # noqa: E731
