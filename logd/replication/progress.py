"""How far one follower has come, as its leader knows it from its fetches."""

from __future__ import annotations

UNKNOWN = -1
"""As an offset: the follower has not fetched in this leader epoch yet. As a broker epoch: it did not say."""
NEVER_MS = -(1 << 62)
"""As a time: not in this leader epoch."""


class Progress:
    """A follower that fetches at an offset holds everything before it.

    ``last_caught_up_ms`` is the last time at which it was known to hold all that the leader held: the time of
    a fetch at the log end; of the fetch before, where it has come to what was the log end then; and of the
    append that found it at the log end (a follower's fetch that waits for records tells nothing meanwhile).

    ``removal_offset`` is 1 + the highest offset of a deletion or marker removed from the leader's log since
    the follower began to copy it from its start; UNKNOWN where it did not do so in this leader epoch.
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
        """It fetched at ``offset`` when the leader's log ended at ``leader_end``."""
        if offset >= leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)
        elif offset >= self.last_fetch_leader_end:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.log_end_offset = offset
        self.last_fetch_ms = now_ms
        self.last_fetch_leader_end = leader_end

    def caught_up(self, now_ms: int) -> None:
        """It holds all there is at this time."""
        self.last_caught_up_ms = max(self.last_caught_up_ms, now_ms)

    def is_caught_up(self, leader_end: int, now_ms: int, lag_time_max_ms: int) -> bool:
        """Whether it holds all there is, or did within the last ``lag_time_max_ms``."""
        return self.log_end_offset == leader_end or now_ms - self.last_caught_up_ms <= lag_time_max_ms
