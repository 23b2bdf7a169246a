"""Probing rebalances (KIP-441): while state is warmed up elsewhere, the leader looks again now and then."""

from __future__ import annotations

import asyncio

from kafka_client import GroupMember


class Probing:
    """One member's timer; it acts if the member leads the group when it is due."""

    def __init__(self, member: GroupMember) -> None:
        self._member = member
        self._timer: asyncio.TimerHandle | None = None

    def set(self, after_ms: int | None) -> None:
        """Look again after so long; None: there is no need. What was set before does not count any more."""
        self.cancel()
        if after_ms is not None:
            self._timer = asyncio.get_running_loop().call_later(after_ms / 1000, self._look)

    def cancel(self) -> None:
        """Do not look again."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._member.is_leader:
            self._member.request_rejoin()
