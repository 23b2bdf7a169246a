"""Fetch sessions (KIP-227): what a client fetches is remembered, so that it only has to say what changed.

A session is named by its id, from any connection. Its epoch grows with each of its requests: 0 opens one (in
an answer, if there is room), -1 closes it, and any other has to be the next one.

    sessions ≤ slots;  every session is in `_sessions`, least recently used first
    partitions of all sessions ≤ PARTITIONS_MAX
    a follower has one session at most
    evictable by a follower: unprivileged ones, and what is older than EVICTION_MS
    evictable by anybody:    what is older than EVICTION_MS

If all slots are used, a new session replaces one unused for EVICTION_MS. Otherwise it replaces the smallest
evictable session, if that one has fewer partitions than the new one. Ages are as of a session's last request,
as in Kafka. Time and session ids are handed in. What a session holds is `fetch_session`'s.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.fetching.fetch_session import EPOCH_MAX, NO_SESSION, OPENING_EPOCH, FetchSession

if TYPE_CHECKING:
    from kafka_client.wire.fetch import FetchPartition, ReceivedFetch, Topic

NO_BROKER = -1
"""The replica id of clients."""
EVICTION_MS = 120_000
"""min.incremental.fetch.session.eviction.ms of KIP-227, a constant in Kafka too."""
PARTITIONS_MAX = 500_000
"""Most partitions all sessions hold together, some 250 MB; Kafka has no such bound."""


class FetchSessions:
    """All sessions, ``slots`` of them at most (max.incremental.fetch.session.cache.slots)."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self.slots = slots
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self._of_followers: dict[int, FetchSession] = {}
        """By broker id. It may have been closed."""
        self._by_anybody: list[tuple[bool, int, int]] = []
        self._by_followers: list[tuple[bool, int, int]] = []
        self._partition_count = 0
        self._evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def statistics(self) -> dict[str, int]:
        """Return the counts of sessions and their partitions, with bounds, and of evictions so far."""
        return {
            "sessions": len(self._sessions),
            "sessions_max": self.slots,
            "partitions": self._partition_count,
            "partitions_max": PARTITIONS_MAX,
            "evictions": self._evictions,
        }

    def open(
        self,
        partitions: Sequence[tuple[Topic, FetchPartition]],
        *,
        by_topic_ids: bool,
        privileged: bool,
        now_ms: float,
        is_prompt: bool = False,
        follower: int = NO_BROKER,
    ) -> FetchSession | None:
        """Return a new session for ``partitions``, or None if there is no room for it. See `FetchSession`."""
        if follower >= 0:
            self.close_of(follower)
        size = len(partitions)
        if self._partition_count + size > PARTITIONS_MAX:
            return None
        if len(self._sessions) >= self.slots and not self._evict(privileged, size, now_ms):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(
            session_id,
            partitions,
            by_topic_ids=by_topic_ids,
            privileged=privileged,
            now_ms=now_ms,
            is_prompt=is_prompt,
        )
        self._sessions[session_id] = session
        self._rank(session)
        if follower >= 0:
            self._of_followers[follower] = session
        return session

    def close_of(self, follower: int) -> None:
        """Close a follower's session: the follower's next full request says its offsets again.

        That request may have come late, by a connection that the follower has given up. Requests in a session
        name changes only. A session left open would therefore count the follower as being at old offsets
        until something is appended.
        """
        session = self._of_followers.pop(follower, None)
        if session is not None and self._sessions.get(session.id) is session:
            self.close(session.id)

    def close(self, session_id: int) -> None:
        """Forget a session; one that is not there is fine."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._unrank(session)
            session.close()

    def next(self, request: ReceivedFetch, *, by_topic_ids: bool, now_ms: float) -> FetchSession | None:
        """Return the session with the request's changes made, or None if no partition is left, which closes
        it.

        Raises KafkaError: FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH,
        FETCH_SESSION_TOPIC_ID_ERROR; the session is as before then, or gone where its id is not found.
        """
        session = self._sessions.get(request.session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {request.session_id}")
        if request.session_epoch != session.epoch:
            raise _wrong_epoch(session, request.session_epoch)
        if session.by_topic_ids != by_topic_ids:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
                f"fetch session {session.id} {'has' if session.by_topic_ids else 'has no'} topic ids",
            )
        session.change(request)
        size = len(session.partitions)
        if not size:
            self.close(session.id)
            return None
        if self._partition_count + size - session.rank[1] > PARTITIONS_MAX:
            self.close(session.id)
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no room for {size} partitions")
        session.epoch = session.epoch + 1 if session.epoch < EPOCH_MAX else OPENING_EPOCH + 1
        self._touch(session, now_ms)
        return session

    def _touch(self, session: FetchSession, now_ms: float) -> None:
        was_old = _is_old(session)
        session.used_ms = now_ms
        self._sessions[session.id] = self._sessions.pop(session.id)
        if len(session.partitions) != session.rank[1] or was_old != _is_old(session):
            self._unrank(session)
            self._rank(session)

    def _rank(self, session: FetchSession) -> None:
        """Enter a session among those that may have to give way, if it is one of them."""
        session.rank = (session.privileged, len(session.partitions), session.id)
        self._partition_count += session.rank[1]
        old = _is_old(session)
        if old:
            insort(self._by_anybody, session.rank)
        if old or not session.privileged:
            insort(self._by_followers, session.rank)

    def _unrank(self, session: FetchSession) -> None:
        self._partition_count -= session.rank[1]
        for ranks in (self._by_anybody, self._by_followers):
            index = bisect_left(ranks, session.rank)
            if index < len(ranks) and ranks[index] == session.rank:
                del ranks[index]

    def _evict(self, privileged: bool, size: int, now_ms: float) -> bool:
        """Make room for a session of ``size`` partitions, if it is worth more than another one."""
        if not self._sessions:
            return False
        unused = next(iter(self._sessions.values()))
        if now_ms - unused.used_ms > EVICTION_MS:
            self.close(unused.id)
        else:
            ranks = self._by_followers if privileged else self._by_anybody
            if not ranks or (privileged, size, 0) < ranks[0]:
                return False
            self.close(ranks[0][2])
        self._evictions += 1
        return True


def _is_old(session: FetchSession) -> bool:
    return session.used_ms - session.created_ms > EVICTION_MS


def _wrong_epoch(session: FetchSession, epoch: int) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        f"fetch session {session.id} is at epoch {session.epoch}, the request says {epoch}",
    )


def random_id() -> int:
    """Return an unpredictable session id, 1 to 2³¹ - 1; rarely 0, which the caller rejects."""
    return int.from_bytes(os.urandom(4)) & EPOCH_MAX
