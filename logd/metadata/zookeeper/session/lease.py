"""The time up to which a session is surely alive, as far as this side can know.

ZooKeeper's client reports an expired session only when it is connected again. A process that was stopped
would continue as a leader until then. A check of the lease at the moment of an acknowledgement prevents that.
The time comes from a clock that counts suspension (CLOCK_BOOTTIME), and is passed in here.

The proof that the session lives:

- The ensemble's leader ends a session of which it has received no news for the session's timeout. A follower
  reports the active sessions to the leader each half tick. It serves reads even while it is cut off. So only
  writes count, which are answered once a majority has them.
- Take an answered write that was sent at `t`. With it, the leader knows all that the follower received until
  half a tick before `t`. The session therefore lives for its timeout from the last request before
  that. Half a tick is at most a quarter of a timeout, since no server grants less than two ticks.
- A newly elected leader gives all sessions their whole timeout.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Final

SAFE_PART: Final = 0.95
"""The part of a timeout that counts; the rest allows for clocks of different speeds."""
TOLD_WITHIN: Final = 0.25
"""The longest time until a follower reports a session to the leader, as a part of the timeout."""
APART: Final = 0.05
"""Requests closer together than this part of a timeout count as one."""


class Lease:
    """The lease of one session, which began at `begun_at` or later; times are in seconds.

    A lease that is over is never held again: the next session has a lease of its own.
    """

    __slots__ = ("_sent", "_timeout", "_until", "session_id")

    def __init__(self, session_id: int = 0, begun_at: float = -math.inf, timeout: float = 0.0) -> None:
        self.session_id = session_id
        self._timeout = timeout
        self._sent = deque([begun_at])
        """The times when requests were sent; the lease counts from the first one."""
        self._until = begun_at + timeout * SAFE_PART

    @property
    def until(self) -> float:
        """The time up to which the lease is held; minus infinity when it is over."""
        return self._until

    def renew(self, sent_at: float) -> None:
        """Renew the lease after the answer to a write that was sent at `sent_at` or later, in seconds.

        An older write than the last one does not shorten the lease.
        """
        sent, delivered_by = self._sent, sent_at - self._timeout * TOLD_WITHIN
        if sent_at >= sent[-1] + self._timeout * APART:
            sent.append(sent_at)
        while len(sent) > 1 and sent[1] <= delivered_by:
            sent.popleft()
        if not self.is_over:
            self._until = sent[0] + self._timeout * SAFE_PART

    @property
    def is_over(self) -> bool:
        """True if the session is known to be over."""
        return self._until == -math.inf

    def end(self) -> None:
        """Note that the session is over."""
        self._until = -math.inf

    def is_held(self, now: float) -> bool:
        """Return True if the session is alive at `now`, a time just read from the clock."""
        return now < self._until
