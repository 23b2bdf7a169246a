"""A fetch session: the partitions that one broker remembers (KIP-227), so that a request only names changes.

    id, epoch   the next request
    0,  0       names everything, and opens a session
    n,  0       names everything, opens a session, and has the broker drop session n
    n,  1…      names changed, added and removed partitions
    n,  -1      drops the session
    0,  -1      names everything, without a session

The state may differ from the broker's after no response, an error, or a response that does not match. Then
the session is not continued: everything is named again. Kafka's FetchSessionHandler does the same. `node`
sends and receives.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from kafka_client.errors import ErrorCode
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.fetch import Topic
from kafka_client.wire.messages.fetch import FetchPartition, FetchTopic, ForgottenTopic

NO_SESSION = 0
OPENING_EPOCH = 0
CLOSING_EPOCH = -1
EPOCH_MAX = 2**31 - 1
NO_OFFSET = -1
"""In place of an offset: the partition must be named again."""


class Position(Protocol):
    """A position in a partition: a consumer's position, or a follower's replica."""

    @property
    def fetch_offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def fetch_epoch(self) -> int:
        """The leader epoch of the record before; -1 if it is unknown."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def version(self) -> int:
        """The version: a response to a request of an older one is stale."""

    @property
    def own_log_start(self) -> int:
        """The start of a follower's own log; -1 for a consumer."""

    def succeed(self, before: Self, /) -> None:
        """Take over from the partition's previous position what the broker only sends once."""


P = TypeVar("P", bound=Position)


class RequestedPartition(NamedTuple, Generic[P]):
    """The request for a partition; `version` is the position's at that time."""

    fetch_offset: int
    leader_epoch: int
    fetch_epoch: int
    own_log_start: int
    topic_id: bytes
    version: int
    position: P

    @classmethod
    def of(cls, position: P) -> RequestedPartition[P]:
        """Return the request for the current state of `position`."""
        return RequestedPartition(
            position.fetch_offset,
            position.leader_epoch,
            position.fetch_epoch,
            position.own_log_start,
            position.topic_id,
            position.version,
            position,
        )


class Changes(NamedTuple):
    """The partitions to name in a request."""

    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSession(Generic[P]):
    """A fetch session; `requested` are its partitions, including those of the next request once `changes`
    made it.
    """

    def __init__(self, *, is_wanted: bool, partition_max_bytes: int) -> None:
        self.id = NO_SESSION
        self._first_epoch = OPENING_EPOCH if is_wanted else CLOSING_EPOCH
        self.epoch = self._first_epoch
        self.requested: dict[TopicPartition, RequestedPartition[P]] = {}
        self._by_topic_ids = False
        self._names: dict[bytes, str] = {}
        self._partition_max_bytes = partition_max_bytes

    @property
    def is_full(self) -> bool:
        """True if the next request names everything."""
        return self.epoch <= OPENING_EPOCH

    # --- requests ---

    def changes(
        self,
        positions: Mapping[TopicPartition, P],
        touched: Iterable[TopicPartition],
        *,
        by_topic_ids: bool,
    ) -> Changes:
        """Return the partitions that the session's next request must name, and those that it drops.

        The request fetches from `positions`. Only partitions in `touched` differ from the last request.
        """
        if by_topic_ids != self._by_topic_ids:
            self._by_topic_ids = by_topic_ids
            self.restart()
        if self.is_full:
            self.requested, self._names = {}, {}
            touched = positions
        topics: dict[tuple[str, bytes], FetchTopic] = {}
        forgotten: dict[tuple[str, bytes], ForgottenTopic] = {}
        for tp in touched:
            position, before = positions.get(tp), self.requested.get(tp)
            now = None if position is None else RequestedPartition.of(position)
            if before is not None and (now is None or (by_topic_ids and before.topic_id != now.topic_id)):
                self._forget(tp, before, forgotten)
                before = None
            if now is None:
                continue
            self.requested[tp] = now
            if before is None or before[:4] != now[:4]:
                self._ask(tp, now, topics)
            if before is not None and before.position is not now.position:
                now.position.succeed(before.position)
        return Changes(list(topics.values()), list(forgotten.values()))

    def _ask(
        self,
        tp: TopicPartition,
        requested: RequestedPartition[P],
        topics: dict[tuple[str, bytes], FetchTopic],
    ) -> None:
        key = (tp.topic, requested.topic_id)
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchTopic(topic=tp.topic, topic_id=requested.topic_id, partitions=[])
            self._names[requested.topic_id] = tp.topic
        topic.partitions.append(
            FetchPartition(
                partition=tp.partition,
                current_leader_epoch=requested.leader_epoch,
                fetch_offset=requested.fetch_offset,
                last_fetched_epoch=requested.fetch_epoch,
                log_start_offset=requested.own_log_start,
                partition_max_bytes=self._partition_max_bytes,
            )
        )

    def _forget(
        self,
        tp: TopicPartition,
        requested: RequestedPartition[P],
        forgotten: dict[tuple[str, bytes], ForgottenTopic],
    ) -> None:
        del self.requested[tp]
        key = (tp.topic, requested.topic_id)
        topic = forgotten.get(key)
        if topic is None:
            topic = forgotten[key] = ForgottenTopic(
                topic=tp.topic, topic_id=requested.topic_id, partitions=[]
            )
        topic.partitions.append(tp.partition)

    def repeat(self, tp: TopicPartition) -> None:
        """Have the partition named again if it is requested again: the broker has refused it."""
        requested = self.requested.get(tp)
        if requested is not None:
            self.requested[tp] = requested._replace(fetch_offset=NO_OFFSET)

    # --- responses ---

    def find(self, topic: Topic, partition: int) -> RequestedPartition[P] | None:
        """Return the request for an answered partition; None if there is none."""
        if isinstance(topic, str):
            return self.requested.get(TopicPartition(topic, partition))
        requested = self.requested.get(TopicPartition(self._names.get(topic, ""), partition))
        return requested if requested is not None and requested.topic_id == topic else None

    def answered(self, session_id: int, error_code: int = ErrorCode.NONE) -> None:
        """Update the session from a response. With an error it has no session id."""
        if error_code and error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.restart()
        elif error_code or not session_id or self._first_epoch == CLOSING_EPOCH:
            self.id, self.epoch = NO_SESSION, self._first_epoch
        elif self.is_full:
            self.id, self.epoch = session_id, OPENING_EPOCH + 1
        else:
            self.epoch = self.epoch + 1 if self.epoch < EPOCH_MAX else OPENING_EPOCH + 1

    def restart(self) -> None:
        """Name everything in the next request, and have the broker drop the current session."""
        self.epoch = self._first_epoch
