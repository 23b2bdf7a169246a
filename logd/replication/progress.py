"""How far one follower has come, as its leader knows it from its fetches."""

from __future__ import annotations

UNKNOWN = -1
"""The offset of a follower that has not fetched in this leader epoch yet, or a broker epoch that was not
sent.
"""
NEVER_MS = -(1 << 62)
"""The time of an event that has not happened in this leader epoch."""


class Progress:
    """The progress of one follower. A follower that fetches at an offset holds everything before it.

    ``last_caught_up_ms`` is the last time at which the follower held everything that the leader held. That is
    the time of a fetch at the log end. A fetch that reached the log end of the previous fetch counts as the
    time of that previous fetch. An append counts too if the follower was at the log end before it: a fetch
    that waits for records reports nothing meanwhile.

    ``removal_offset`` is 1 + the highest offset of a deletion or marker removed from the leader's log since
    the follower started to copy that log from its start. UNKNOWN if it did not start there in this leader
    epoch.
    """

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "last_caught_up_ms",
        "last_fetch_leader_end",
        "last_fetch_ms",
        "log_end_offset",
        "log_start_offset",
        "removal_offset",
    )

    def __init__(self, broker_id: int, last_caught_up_ms: int = NEVER_MS) -> None:
        self.broker_id = broker_id
        self.broker_epoch = UNKNOWN
        self.log_start_offset = UNKNOWN
        self.log_end_offset = UNKNOWN
        self.last_caught_up_ms = last_caught_up_ms
        self.last_fetch_ms = NEVER_MS
        self.last_fetch_leader_end = 0
        self.removal_offset = UNKNOWN

    def fetched(self, offset: int, now_ms: int, leader_end: int) -> None:
        """Record a fetch at ``offset``, at which time the leader's log ended at ``leader_end``."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.last_fetch_ms = now_ms
        self.last_fetch_leader_end = leader_end

    def caught_up(self, now_ms: int) -> None:
        """Record that the follower holds everything at ``now_ms``."""
        self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)

    def is_caught_up(self, leader_end: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Return True if the follower holds everything, or did within the last ``lag_time_max_ms``."""
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_time_max_ms
