"""Fetch sessions (KIP-227): what a client fetches is remembered, so that it only has to say what changed.

A session belongs to whoever names its id, on any connection. Its epoch grows with each of its requests: 0
opens one (in an answer, if there is room), -1 closes it, and any other has to be the next one.

    sessions ≤ slots;  every session is in `_sessions`, least recently used first
    partitions of all sessions ≤ PARTITIONS_MAX
    evictable by a follower: unprivileged ones, and what is older than EVICTION_MS
    evictable by anybody:    what is older than EVICTION_MS

Who comes new takes the place of a session unused for EVICTION_MS, or else of the smallest evictable one if
that has fewer partitions than itself. Ages are as of a session's last request, as in Kafka. Time and session
ids are handed in.

A session knows which of its partitions an answer has to look at, since the others tell it of their news:
what a request costs goes by what is active, not by what the session holds.
"""

from __future__ import annotations

import os
from bisect import bisect_left, insort
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

from logd.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from logd.broker.partition import AppendWaiter, Partition
    from logd.wire.fetch import FetchPartition, PartitionFetched, ReceivedFetch, Topic

NO_SESSION = 0
OPENING_EPOCH = 0
CLOSING_EPOCH = -1
EPOCH_MAX = 2**31 - 1

EVICTION_MS = 120_000
"""min.incremental.fetch.session.eviction.ms of KIP-227, a constant in Kafka too."""
PARTITIONS_MAX = 500_000
"""Most partitions all sessions hold together, some 250 MB; Kafka has no such bound."""

Key: TypeAlias = "tuple[Topic, int]"
"""A partition by its topic's name or id, whichever the session's requests use."""


class SessionPartition:
    """What a client asks of a partition, and what it was told of it last.

    ``turn`` is its place in the row. ``watched`` is the partition that is to tell of its news; None while the
    session's next answer is to look at it anyway.
    """

    __slots__ = ("asked", "high_watermark", "log_start_offset", "session", "topic", "turn", "watched")

    def __init__(self, session: FetchSession, topic: Topic, asked: FetchPartition, turn: int) -> None:
        self.session = session
        self.topic = topic
        self.asked = asked
        self.turn = turn
        self.high_watermark = -1
        self.log_start_offset = -1
        self.watched: Partition | None = None

    def knows(self, partition: Partition) -> bool:
        """Whether the client has been told how far the partition reaches: without records no news then."""
        return (
            partition.high_watermark == self.high_watermark
            and partition.log_start_offset == self.log_start_offset
        )

    def told(self, fetched: PartitionFetched[Any]) -> None:
        """The client is told; after an error it will be told again once that is over."""
        self.high_watermark = -1 if fetched.error_code else fetched.high_watermark
        self.log_start_offset = fetched.log_start_offset

    def watch(self, partition: Partition) -> None:
        """There is nothing to tell of it: it is not looked at again before it has news."""
        del self.session.ready[self]
        self.watched = partition
        partition.waiters.add(self)

    def on_append(self) -> None:
        """See `AppendWaiter`: the session's next answer is to look at the partition."""
        self.watched = None
        self.session.is_ready(self)

    def unwatch(self) -> None:
        """Leave the partition watched, if there is one."""
        if self.watched is not None:
            self.watched.waiters.discard(self)
            self.watched = None


class FetchSession:
    """``epoch`` is the one the next request has to carry.

    A partition is among those that are ``ready``, which every answer looks at, or is watched: nothing was to
    be told of it when it was looked at last, and it has had no news since.

        ready ──(at its end, and the client knows)──▶ watched ──(news, or asked for anew)──▶ ready
    """

    __slots__ = (
        "by_topic_ids",
        "committed",
        "created_ms",
        "epoch",
        "id",
        "partitions",
        "privileged",
        "rank",
        "ready",
        "turns",
        "used_ms",
        "waiter",
    )

    def __init__(
        self,
        session_id: int,
        wanted: Sequence[tuple[Topic, FetchPartition]],
        *,
        by_topic_ids: bool,
        privileged: bool,
        now_ms: float,
    ) -> None:
        self.id = session_id
        self.turns = 0
        self.partitions: dict[Key, SessionPartition] = {}
        self.ready: dict[SessionPartition, None] = {}
        self.waiter: AppendWaiter | None = None
        """The request that waits."""
        self.committed = False
        """Whether the last request read committed records only."""
        self.by_topic_ids = by_topic_ids
        self.privileged = privileged
        self.epoch = OPENING_EPOCH + 1
        self.created_ms = self.used_ms = now_ms
        for topic, asked in wanted:
            self._want(topic, asked)
        self.rank = (privileged, len(self.partitions), session_id)

    @property
    def is_open(self) -> bool:
        """Whether requests may still come for it."""
        return self.epoch != CLOSING_EPOCH

    def change(self, request: ReceivedFetch) -> None:
        """Take what a request adds, alters and forgets. One that waits is answered: this one is the next."""
        for topic, wanted in request.topics:
            for asked in wanted:
                self._want(topic, asked)
        for topic, indexes in request.forgotten:
            for index in indexes:
                held = self.partitions.pop((topic, index), None)
                if held is not None:
                    held.unwatch()
                    self.ready.pop(held, None)
        if self.committed is not request.is_committed:
            # What ends at the last stable offset for one reader has records for another.
            self.committed = request.is_committed
            for held in self.partitions.values():
                self._look_at(held)
        self._wake()

    def _want(self, topic: Topic, asked: FetchPartition) -> None:
        held = self.partitions.get((topic, asked.partition))
        if held is None:
            held = SessionPartition(self, topic, asked, self._next_turn())
            self.partitions[topic, asked.partition] = held
        held.asked = asked
        self._look_at(held)

    def _look_at(self, held: SessionPartition) -> None:
        held.unwatch()
        self.ready[held] = None

    def _next_turn(self) -> int:
        self.turns += 1
        return self.turns

    def is_ready(self, held: SessionPartition) -> None:
        """The partition has news."""
        self.ready[held] = None
        self._wake()

    def _wake(self) -> None:
        if self.waiter is not None:
            self.waiter.on_append()

    def in_turn(self) -> list[SessionPartition]:
        """What an answer has to look at, in the order of answering: who gave records goes to the end."""
        return sorted(self.ready, key=_turn)

    def told(self, topic: Topic, fetched: PartitionFetched[Any]) -> None:
        """Note what the client is told; a partition with records goes to the end of the row."""
        held = self.partitions[topic, fetched.partition]
        held.told(fetched)
        if fetched.records:
            held.turn = self._next_turn()

    def close(self) -> None:
        """No request may come for it any more; one that waits is answered."""
        self.epoch = CLOSING_EPOCH
        for held in self.partitions.values():
            held.unwatch()
        # They refer back: memory would be held until the next garbage collection.
        self.partitions.clear()
        self.ready.clear()
        self._wake()


_turn = attrgetter("turn")


class FetchSessions:
    """All sessions, ``slots`` of them at most (max.incremental.fetch.session.cache.slots)."""

    def __init__(self, slots: int, new_id: Callable[[], int]) -> None:
        self.slots = slots
        self._new_id = new_id
        self._sessions: dict[int, FetchSession] = {}
        self._by_anybody: list[tuple[bool, int, int]] = []
        self._by_followers: list[tuple[bool, int, int]] = []
        self._held = 0
        self._evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    def statistics(self) -> dict[str, int]:
        """sessions, slots, partitions (of all sessions), evictions (so far)."""
        return {
            "sessions": len(self._sessions),
            "slots": self.slots,
            "partitions": self._held,
            "evictions": self._evictions,
        }

    def open(
        self,
        wanted: Sequence[tuple[Topic, FetchPartition]],
        *,
        by_topic_ids: bool,
        privileged: bool,
        now_ms: float,
    ) -> FetchSession | None:
        """A new session for ``wanted``; None when there is no room for it."""
        size = len(wanted)
        if self._held + size > PARTITIONS_MAX:
            return None
        if len(self._sessions) >= self.slots and not self._evict(privileged, size, now_ms):
            return None
        session_id = self._new_id()
        while session_id == NO_SESSION or session_id in self._sessions:
            session_id = self._new_id()
        session = FetchSession(
            session_id,
            wanted,
            by_topic_ids=by_topic_ids,
            privileged=privileged,
            now_ms=now_ms,
        )
        self._sessions[session_id] = session
        self._rank(session)
        return session

    def close(self, session_id: int) -> None:
        """Forget a session; one that is not there is fine."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._unrank(session)
            session.close()

    def next(self, request: ReceivedFetch, *, by_topic_ids: bool, now_ms: float) -> FetchSession | None:
        """The session with the request's changes made, or None when nothing is left in it, which closes it.

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
        if self._held + size - session.rank[1] > PARTITIONS_MAX:
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
        self._held += session.rank[1]
        old = _is_old(session)
        if old:
            insort(self._by_anybody, session.rank)
        if old or not session.privileged:
            insort(self._by_followers, session.rank)

    def _unrank(self, session: FetchSession) -> None:
        self._held -= session.rank[1]
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
    """A session id nobody can foresee, 1 to 2³¹ - 1; 0 now and then, which is not taken."""
    return int.from_bytes(os.urandom(4)) & EPOCH_MAX
