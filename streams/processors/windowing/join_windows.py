"""`JoinWindows`: how far apart in time two joined records may be."""

from __future__ import annotations

from dataclasses import dataclass

from streams.errors import TopologyError
from streams.processors.windowing.windows import Duration, milliseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinWindows:
    """The window of a join: a left record at ``t`` matches right ones in ``[t - before, t + after]``.

    ``before`` or ``after`` may be negative, for right records that are always later, or earlier. ``grace``:
    how long after the window's end, by stream time, records out of order are still joined. Left and outer
    joins forward records without a match after that.
    """

    before: Duration
    after: Duration
    grace: Duration = 0

    def __post_init__(self) -> None:
        if self.size_ms < 0:
            raise TopologyError(
                f"JoinWindows: before {self.before} and after {self.after} together must not be negative"
            )
        if self.grace_ms < 0:
            raise TopologyError(f"JoinWindows: grace is {self.grace}, it must not be negative")

    @classmethod
    def of(cls, difference: Duration, grace: Duration = 0) -> JoinWindows:
        """Return windows with the same ``difference`` before and after."""
        return cls(before=difference, after=difference, grace=grace)

    @property
    def before_ms(self) -> int:
        """How much earlier the right record may be, ms."""
        return milliseconds(self.before)

    @property
    def after_ms(self) -> int:
        """How much later the right record may be, ms."""
        return milliseconds(self.after)

    @property
    def size_ms(self) -> int:
        """Length of the window, ms."""
        return self.before_ms + self.after_ms

    @property
    def grace_ms(self) -> int:
        """How long after its end a window takes records, ms of stream time."""
        return milliseconds(self.grace)
