"""Probing rebalances (KIP-441): while state is warmed up, the leader assigns again at an interval."""

from __future__ import annotations

import asyncio

from kafka_client import GroupMember


class Probing:
    """A timer that makes the member join again, if the member is the leader by then."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._timer: asyncio.TimerHandle | None = None

    def set(self, after_ms: int | None) -> None:
        """Join again after this time, or never if it is None. Replaces an earlier timer."""
        self.cancel()
        if after_ms is not None:
            self._timer = asyncio.get_running_loop().call_later(after_ms / 1000, self._look)

    def cancel(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._member.is_leader:
            self._member.request_rejoin()
