"""Window definitions. Durations are ``timedelta`` or milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

from streams.errors import TopologyError
from streams.serdes.windowed import FOREVER

Duration: TypeAlias = timedelta | int

EmitStrategy: TypeAlias = Literal["on_window_update", "on_window_close"]
"""When a window's result goes on: with each update, or once, when it cannot change any more (KIP-825)."""


def milliseconds(duration: Duration) -> int:
    """A duration as whole milliseconds."""
    return duration if isinstance(duration, int) else duration // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows ``[start, start + size)``, aligned to the epoch: one every ``advance``, which is ``size``
    unless given. A record is in all windows that it falls into.

    A record is late for a window, and dropped there, once the window ended ``grace`` or longer before the
    stream's time.
    """

    size: Duration
    grace: Duration = 0
    advance: Duration | None = None

    def __post_init__(self) -> None:
        if self.size_ms <= 0:
            raise TopologyError(f"TimeWindows: size is {self.size}, it must be longer than 0")
        if not 0 < self.advance_ms <= self.size_ms:
            raise TopologyError(
                f"TimeWindows: advance is {self.advance}, it must be longer than 0, and at most {self.size}"
            )
        _check_grace(self, self.grace)

    @property
    def size_ms(self) -> int:
        """Length of a window, ms."""
        return milliseconds(self.size)

    @property
    def advance_ms(self) -> int:
        """From the start of a window to the next one's, ms."""
        return self.size_ms if self.advance is None else milliseconds(self.advance)

    @property
    def grace_ms(self) -> int:
        """How long after its end a window takes records, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def closing_ms(self) -> int:
        """How long after its end a window is final, ms of stream time."""
        return self.grace_ms

    @property
    def closed_after_ms(self) -> int:
        """How far behind a window's start stream time is when it is closed, ms."""
        return self.size_ms + self.grace_ms

    @property
    def retention_ms(self) -> int:
        """How long a window is needed at least, ms from its start."""
        return self.size_ms + self.grace_ms

    def starts(self) -> Callable[[int], Sequence[int]]:
        """From a timestamp to the starts (ms) of the windows that it is in, in order."""
        advance = self.advance_ms
        before = self.size_ms - advance

        def starts(timestamp: int) -> range:
            first = timestamp - before
            return range(first - first % advance if first > 0 else 0, timestamp + 1, advance)

        return starts


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """For each record, the window ``[timestamp - time_difference, timestamp]`` that ends with it, and the one
    that begins right behind it, if it has records: all sets of records that are ``time_difference`` apart
    (KIP-450).

    A record is late, and dropped, once all its windows ended longer than ``grace`` before the stream's time.
    """

    time_difference: Duration
    grace: Duration = 0

    def __post_init__(self) -> None:
        if self.time_difference_ms < 0:
            raise TopologyError(
                f"SlidingWindows: time_difference is {self.time_difference}, it must not be negative"
            )
        _check_grace(self, self.grace)

    @property
    def time_difference_ms(self) -> int:
        """The end of a window less its start, both included, ms."""
        return milliseconds(self.time_difference)

    @property
    def grace_ms(self) -> int:
        """How long after its end a window takes records, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def closing_ms(self) -> int:
        """How long after its end a window is final, ms of stream time."""
        return self.grace_ms

    @property
    def closed_after_ms(self) -> int:
        """How far behind a window's start stream time is when it is closed, ms: its end is in it."""
        return self.time_difference_ms + self.grace_ms + 1

    @property
    def retention_ms(self) -> int:
        """How long a window is needed at least, ms from its start: its neighbours are made of it."""
        return 2 * self.time_difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """A key's records as far as no more than ``inactivity_gap`` lies between two; both bounds are included.

    A record may merge sessions. It is late, and dropped, once the session it would be in ended longer than
    gap and grace before the stream's time.
    """

    inactivity_gap: Duration
    grace: Duration = 0

    def __post_init__(self) -> None:
        if self.inactivity_gap_ms < 0:
            raise TopologyError(
                f"SessionWindows: inactivity_gap is {self.inactivity_gap}, it must not be negative"
            )
        _check_grace(self, self.grace)

    @property
    def inactivity_gap_ms(self) -> int:
        """The longest time between two records of a session, ms."""
        return milliseconds(self.inactivity_gap)

    @property
    def grace_ms(self) -> int:
        """How much longer than the gap a session takes records after its end, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def closing_ms(self) -> int:
        """How long after its end a session is final, ms of stream time."""
        return self.inactivity_gap_ms + self.grace_ms

    @property
    def closed_after_ms(self) -> int:
        """How far behind a session's end stream time is when it is closed, ms: the end is in it."""
        return self.closing_ms + 1

    @property
    def retention_ms(self) -> int:
        """How long a session is needed at least, ms from its end."""
        return self.inactivity_gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """One window per key that begins with ``start`` (ms since the epoch, or an aware datetime) and never
    ends. Records before it are in none.
    """

    start: datetime | int = 0

    def __post_init__(self) -> None:
        if self.start_ms < 0:
            raise TopologyError(f"UnlimitedWindows: start is {self.start}, it must not be before 1970")

    @property
    def start_ms(self) -> int:
        """Where the window begins, ms since the epoch."""
        return self.start if isinstance(self.start, int) else int(self.start.timestamp() * 1000)

    @property
    def size_ms(self) -> int:
        """As long as there is."""
        return FOREVER

    advance_ms = size_ms

    @property
    def grace_ms(self) -> int:
        """Nothing is late."""
        return 0

    closing_ms = grace_ms

    @property
    def retention_ms(self) -> int:
        """It is kept for good."""
        return FOREVER

    def starts(self) -> Callable[[int], Sequence[int]]:
        """From a timestamp to the start of the window, if it is in it."""
        start = self.start_ms
        return lambda timestamp: (start,) if timestamp >= start else ()


def _check_grace(windows: TimeWindows | SlidingWindows | SessionWindows, grace: Duration) -> None:
    if milliseconds(grace) < 0:
        raise TopologyError(f"{type(windows).__name__}: grace is {grace}, it must not be negative")
