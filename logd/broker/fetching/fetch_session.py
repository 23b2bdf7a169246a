"""A fetch session (KIP-227): the partitions a client fetches, and the offsets last sent to the client for
each.

A partition without news is watched: the partition reports news to its session. A request therefore costs time
in proportion to the active partitions, not to all partitions of the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from kafka_client.wire.fetch import FetchPartition, PartitionFetched, ReceivedFetch, Topic
    from logd.broker.partition.partition import FollowerWaiter, Partition

NO_SESSION = 0
OPENING_EPOCH = 0
CLOSING_EPOCH = -1
EPOCH_MAX = 2**31 - 1

Key: TypeAlias = "tuple[Topic, int]"
"""A partition by its topic's name or id, whichever the session's requests use."""

_turn = attrgetter("turn")


class SessionPartition:
    """A partition of a fetch session: the client's request for it, and the offsets last sent to the client.

    ``turn`` is the partition's place in the order of answering. ``watched`` is the partition that reports
    news to this entry. It is None while the session's next response has to read the partition anyway.
    """

    __slots__ = ("high_watermark", "log_start_offset", "request", "session", "topic", "turn", "watched")

    def __init__(self, session: FetchSession, topic: Topic, request: FetchPartition, turn: int) -> None:
        self.session = session
        self.topic = topic
        self.request = request
        self.turn = turn
        self.high_watermark = -1
        self.log_start_offset = -1
        self.watched: Partition | None = None

    def knows(self, partition: Partition) -> bool:
        """Return True if the client knows the partition's high watermark and log start offset already."""
        return (
            partition.high_watermark == self.high_watermark
            and partition.log_start_offset == self.log_start_offset
        )

    def note_sent(self, fetched: PartitionFetched[Any]) -> None:
        """Note the offsets sent to the client; after an error the high watermark is sent again once the error
        is over.
        """
        self.high_watermark = -1 if fetched.error_code else fetched.high_watermark
        self.log_start_offset = fetched.log_start_offset

    def watch(self, partition: Partition) -> None:
        """Watch the partition: no response reads it again until it has news."""
        self.session.ready.pop(self, None)
        self.watched = partition
        partition.wait_for_append(self, follower=self.session.privileged)

    def on_append(self) -> None:
        """Make the session's next response read the partition; see `AppendWaiter`."""
        self.watched = None
        self.session.is_ready(self)

    def on_commit(self) -> None:
        """Note that the high watermark has risen; see `FollowerWaiter`.

        The partition stays watched. The session's next response reports the new high watermark; if the
        session is prompt, that response is sent now.
        """
        session = self.session
        session.committed_since[self] = None
        if session.is_prompt:
            session.wake()

    def unwatch(self) -> None:
        """Stop watching the partition, if it is watched."""
        if self.watched is not None:
            self.watched.forget_waiter(self)
            self.watched = None


class FetchSession:
    """A client's fetch session. ``epoch`` is the epoch that the next request has to carry.

    ``is_prompt``: a waiting request is answered when a high watermark has risen (KIP-392). Without it, a
    follower's request waits for records.

    A partition is either ``ready``, so that every response reads it, or watched. It is watched once a
    response had nothing to report of it, until it has news.

        ready ──(at its end, and the client knows)──▶ watched ──(news, or requested again)──▶ ready
    """

    __slots__ = (
        "by_topic_ids",
        "committed",
        "committed_since",
        "created_ms",
        "epoch",
        "id",
        "is_prompt",
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
        partitions: Sequence[tuple[Topic, FetchPartition]],
        *,
        by_topic_ids: bool,
        privileged: bool,
        now_ms: float,
        is_prompt: bool = False,
    ) -> None:
        self.id = session_id
        self.is_prompt = is_prompt
        self.turns = 0
        self.partitions: dict[Key, SessionPartition] = {}
        self.ready: dict[SessionPartition, None] = {}
        self.committed_since: dict[SessionPartition, None] = {}
        """A follower's watched partitions whose high watermark has risen since the follower was last sent it.
        """
        self.waiter: FollowerWaiter | None = None
        """The request that waits."""
        self.committed = False
        """True if the last request read committed records only."""
        self.by_topic_ids = by_topic_ids
        self.privileged = privileged
        self.epoch = OPENING_EPOCH + 1
        self.created_ms = self.used_ms = now_ms
        for topic, request in partitions:
            self._want(topic, request)
        self.rank = (privileged, len(self.partitions), session_id)

    @property
    def is_open(self) -> bool:
        """True if the session still accepts requests."""
        return self.epoch != CLOSING_EPOCH

    def change(self, request: ReceivedFetch) -> None:
        """Apply the partitions that a request adds, changes and removes, and answer a request that waits."""
        for topic, partitions in request.topics:
            for partition_request in partitions:
                self._want(topic, partition_request)
        for topic, indexes in request.forgotten:
            for index in indexes:
                partition = self.partitions.pop((topic, index), None)
                if partition is not None:
                    partition.unwatch()
                    self.ready.pop(partition, None)
                    self.committed_since.pop(partition, None)
        if self.committed is not request.is_committed:
            # What ends at the last stable offset for one reader has records for another.
            self.committed = request.is_committed
            for partition in self.partitions.values():
                self._look_at(partition)
        self.wake()

    def _want(self, topic: Topic, request: FetchPartition) -> None:
        partition = self.partitions.get((topic, request.partition))
        if partition is None:
            partition = SessionPartition(self, topic, request, self._next_turn())
            self.partitions[topic, request.partition] = partition
        partition.request = request
        self._look_at(partition)

    def _look_at(self, partition: SessionPartition) -> None:
        partition.unwatch()
        self.ready[partition] = None

    def _next_turn(self) -> int:
        self.turns += 1
        return self.turns

    def is_ready(self, partition: SessionPartition) -> None:
        """Note that a partition has news, and wake the waiting request."""
        self.ready[partition] = None
        self.wake()

    def wake(self) -> None:
        """Make the request that waits read the partitions again."""
        if self.waiter is not None:
            self.waiter.on_append()

    def in_turn(self) -> list[tuple[Topic, FetchPartition, SessionPartition]]:
        """Return the partitions that a response has to read, in order; those that returned records last come
        last.
        """
        ready = {**self.ready, **self.committed_since} if self.committed_since else self.ready
        return [(partition.topic, partition.request, partition) for partition in sorted(ready, key=_turn)]

    def note_sent(self, topic: Topic, fetched: PartitionFetched[Any]) -> None:
        """Note what is sent to the client; a partition with records goes to the end of the order."""
        partition = self.partitions[topic, fetched.partition]
        partition.note_sent(fetched)
        self.committed_since.pop(partition, None)
        if fetched.records:
            partition.turn = self._next_turn()

    def close(self) -> None:
        """Close the session: no request may use it any more, and a waiting request is answered."""
        self.epoch = CLOSING_EPOCH
        for partition in self.partitions.values():
            partition.unwatch()
        # They refer back: memory would be held until the next garbage collection.
        self.partitions.clear()
        self.ready.clear()
        self.committed_since.clear()
        self.wake()
