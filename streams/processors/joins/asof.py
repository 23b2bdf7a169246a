"""`AsOf`: which of the other stream's records a record meets in an as-of join, and when that is known."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from streams.errors import TopologyError
from streams.processors.windowing.windows import Duration, milliseconds

Direction: TypeAlias = Literal["backward", "forward", "nearest"]
Match: TypeAlias = tuple[int, Any]
"""Timestamp (ms) and value of the record that is met."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AsOf:
    """As pandas' ``merge_asof``: a record meets at most one of the other stream's.

    `backward`: the last one that is not later; `forward`: the first one that is not earlier; `nearest`: the
    nearer of the two, the earlier one if they are as near. Of several at that time it is the last that came,
    looking forward the first. It is no further than `tolerance`, and not of the same time unless
    `allow_exact_matches`. `grace`: how much later than stream time the other stream's records may be.
    """

    tolerance: Duration
    direction: Direction = "backward"
    allow_exact_matches: bool = True
    grace: Duration = 0

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
        """How far apart two records may be, ms."""
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
        """How long the other stream's records are needed, ms: from the earliest one that a record may meet
        until the record need not wait any longer.
        """
        ways = 2 if self.direction == "nearest" else 1
        return ways * self.tolerance_ms + self.grace_ms + 1

    def span(self, timestamp: int) -> tuple[int, int]:
        """The first and last time (ms) of what a record of this time may meet."""
        exact = 0 if self.allow_exact_matches else 1
        first = timestamp + exact if self.direction == "forward" else timestamp - self.tolerance_ms
        last = timestamp - exact if self.direction == "backward" else timestamp + self.tolerance_ms
        return max(first, 0), last

    def meets(self, timestamp: int, other: int) -> bool:
        """Return True if a record of this time may meet one of the ``other`` time."""
        first, last = self.span(timestamp)
        return first <= other <= last and (self.allow_exact_matches or other != timestamp)

    def choose(self, timestamp: int, found: list[Match]) -> Match | None:
        """The one that a record of this time meets, of those in its `span`, by time and as they came."""
        if not found or self.direction == "backward":
            return found[-1] if found else None
        if self.direction == "forward":
            return found[0]
        at = bisect_right if self.allow_exact_matches else bisect_left
        before = at(found, timestamp, key=_time)
        behind = bisect_right(found, timestamp, key=_time)
        if before == 0 or behind == len(found):
            return found[before - 1] if before else (found[behind] if behind < len(found) else None)
        earlier, later = found[before - 1], found[behind]
        return earlier if timestamp - earlier[0] <= later[0] - timestamp else later

    def due(self, timestamp: int, met: int | None) -> int:
        """The stream time (ms) from which on nothing on time can be a better match than one of the time
        ``met``, None for none.
        """
        if self.direction == "backward":
            return timestamp + self.grace_ms
        if met is None:
            return timestamp + self.tolerance_ms + self.grace_ms + 1
        return timestamp + abs(met - timestamp) + self.grace_ms


def time_of(match: Match | None) -> int | None:
    """The time of a match, ms; None if there is none."""
    return None if match is None else match[0]


_time: Callable[[Match], int] = lambda match: match[0]  # noqa: E731
