"""Window definitions. Durations are ``timedelta`` or milliseconds."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from streams.errors import TopologyError

Duration: TypeAlias = timedelta | int


def milliseconds(duration: Duration) -> int:
    """A duration as whole milliseconds."""
    return duration if isinstance(duration, int) else duration // timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class TimeWindows:
    """Tumbling windows ``[start, start + size)``, aligned to the epoch.

    A record is late, and dropped, once its window ended ``grace`` or longer before the stream's time.
    """

    size: Duration
    grace: Duration = 0

    def __post_init__(self) -> None:
        if self.size_ms <= 0:
            raise TopologyError(f"TimeWindows: size is {self.size}, it must be longer than 0")
        if self.grace_ms < 0:
            raise TopologyError(f"TimeWindows: grace is {self.grace}, it must not be negative")

    @property
    def size_ms(self) -> int:
        """Length of a window, ms."""
        return milliseconds(self.size)

    @property
    def grace_ms(self) -> int:
        """How long after its end a window takes records, ms of stream time."""
        return milliseconds(self.grace)
