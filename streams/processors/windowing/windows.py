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
"""When a window's result is forwarded: with each update, or once, when it is final (KIP-825)."""


def milliseconds(duration: Duration) -> int:
    """Return a duration in whole milliseconds."""
    return duration if isinstance(duration, int) else duration // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Windows ``[start, start + size)``, aligned to the epoch, with a start every ``advance``.

    ``advance`` is ``size`` by default. A record is in all windows that contain its timestamp. It is late for
    a window, and dropped there, once the window ended ``grace`` or longer before stream time.
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
        """The time from the start of a window to that of the next one, ms."""
        return self.size_ms if self.advance is None else milliseconds(self.advance)

    @property
    def grace_ms(self) -> int:
        """How long after its end a window accepts records, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def closing_ms(self) -> int:
        """How long after its end a window is final, ms of stream time."""
        return self.grace_ms

    @property
    def closed_after_ms(self) -> int:
        """How long after its start a window is closed, ms of stream time."""
        return self.size_ms + self.grace_ms

    @property
    def retention_ms(self) -> int:
        """The least time for which a window must be kept, ms from its start."""
        return self.size_ms + self.grace_ms

    def starts(self) -> Callable[[int], Sequence[int]]:
        """Return a function of a timestamp that returns the starts (ms) of its windows, in order."""
        advance = self.advance_ms
        before = self.size_ms - advance

        def starts(timestamp: int) -> range:
            first = timestamp - before
            return range(first - first % advance if first > 0 else 0, timestamp + 1, advance)

        return starts


@dataclass(frozen=True, slots=True)
class SlidingWindows:
    """Windows for all sets of records that are at most ``time_difference`` apart (KIP-450).

    For each record there is the window ``[timestamp - time_difference, timestamp]`` that ends with it. There
    is also the window that begins 1 ms after it, if that has records. A record is late, and dropped, once all
    its windows ended longer than ``grace`` before stream time.
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
        """How long after its end a window accepts records, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def closing_ms(self) -> int:
        """How long after its end a window is final, ms of stream time."""
        return self.grace_ms

    @property
    def closed_after_ms(self) -> int:
        """How long after its start a window is closed, ms of stream time; its end is inclusive."""
        return self.time_difference_ms + self.grace_ms + 1

    @property
    def retention_ms(self) -> int:
        """The least time for which a window must be kept, ms from its start: new windows copy its value."""
        return 2 * self.time_difference_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class SessionWindows:
    """Sessions of a key's records, with at most ``inactivity_gap`` from each one to the next.

    A record may merge sessions. It is late, and dropped, once its session ended longer than gap and grace
    before stream time. Start and end of a session are inclusive.
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
        """How much longer than the gap a session accepts records after its end, ms of stream time."""
        return milliseconds(self.grace)

    @property
    def closing_ms(self) -> int:
        """How long after its end a session is final, ms of stream time."""
        return self.inactivity_gap_ms + self.grace_ms

    @property
    def closed_after_ms(self) -> int:
        """How long after its end a session is closed, ms of stream time; its end is inclusive."""
        return self.closing_ms + 1

    @property
    def retention_ms(self) -> int:
        """The least time for which a session must be kept, ms from its end."""
        return self.inactivity_gap_ms + self.grace_ms


@dataclass(frozen=True, slots=True)
class UnlimitedWindows:
    """A window per key that begins with ``start`` and never ends. Earlier records are in no window.

    ``start``: ms since the epoch, or an aware datetime.
    """

    start: datetime | int = 0

    def __post_init__(self) -> None:
        if self.start_ms < 0:
            raise TopologyError(f"UnlimitedWindows: start is {self.start}, it must not be before 1970")

    @property
    def start_ms(self) -> int:
        """The start of the window, ms since the epoch."""
        return self.start if isinstance(self.start, int) else int(self.start.timestamp() * 1000)

    @property
    def size_ms(self) -> int:
        """The length of the window: the longest there is, ms."""
        return FOREVER

    advance_ms = size_ms

    @property
    def grace_ms(self) -> int:
        """The grace period: 0, as no record is late."""
        return 0

    closing_ms = grace_ms

    @property
    def retention_ms(self) -> int:
        """The time for which the window is kept: for ever."""
        return FOREVER

    def starts(self) -> Callable[[int], Sequence[int]]:
        """Return a function of a timestamp that returns the window's start, if the window contains it."""
        start = self.start_ms
        return lambda timestamp: (start,) if timestamp >= start else ()


def _check_grace(windows: TimeWindows | SlidingWindows | SessionWindows, grace: Duration) -> None:
    if milliseconds(grace) < 0:
        raise TopologyError(f"{type(windows).__name__}: grace is {grace}, it must not be negative")
