"""The wall clock, for sessions: when somebody sets it, or the machine wakes from sleep, nobody's session
ends.
"""

from __future__ import annotations

from collections.abc import Callable

JUMP_MS = 1_000
"""A difference this large between the clocks is a jump; small ones add up until they are one."""


class GroupClock:
    """Wall time in milliseconds, watched against a clock that only ticks."""

    def __init__(
        self, wall_ms: Callable[[], int], steady_s: Callable[[], float], on_jump: Callable[[int], None]
    ) -> None:
        self._wall_ms = wall_ms
        self._steady_s = steady_s
        self._on_jump = on_jump
        self._ahead_ms = self._difference(wall_ms())

    def now_ms(self) -> int:
        """Return the wall clock's time in ms, after calling `on_jump(by_ms)` if the clock was set since the
        last call.
        """
        now_ms = self._wall_ms()
        ahead_ms = self._difference(now_ms)
        jump_ms = ahead_ms - self._ahead_ms
        if abs(jump_ms) > JUMP_MS:
            self._ahead_ms = ahead_ms
            self._on_jump(jump_ms)
        return now_ms

    def _difference(self, wall_ms: int) -> int:
        return wall_ms - int(self._steady_s() * 1000)
