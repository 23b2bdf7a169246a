"""What one broker remembers of what it was asked for (KIP-227), so that a request only says what changed.

    id, epoch   the next request
    0,  0       says everything, and asks for a session
    n,  0       the same, and has the broker drop session n
    n,  1…      says what changed, what came and what is to be forgotten
    n,  -1      drops the session
    0,  -1      says everything, and wants no session

A session whose state may differ from the broker's (no answer, an error, an answer that does not fit) is never
gone on with: everything is said again. As Kafka's FetchSessionHandler. Sending and receiving are `node`'s.
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
NOTHING_SAID = -1
"""In place of an offset."""


class Position(Protocol):
    """Where fetching of a partition stands: a consumer's position, or a follower's replica."""

    @property
    def fetch_offset(self) -> int: ...

    @property
    def leader_epoch(self) -> int: ...

    @property
    def fetch_epoch(self) -> int:
        """The leader epoch of the record before; -1 if it is not known."""

    @property
    def topic_id(self) -> bytes: ...

    @property
    def version(self) -> int:
        """An answer to a question of an older one is stale."""

    @property
    def own_log_start(self) -> int:
        """Where a follower's own log begins; a consumer has none: -1."""

    def succeed(self, before: Self, /) -> None:
        """It takes the place of another one of the same partition, of which the broker has said what it says
        only once.
        """


P = TypeVar("P", bound=Position)


class Asked(NamedTuple, Generic[P]):
    """What was said of a partition; `version` is the position's at that time."""

    fetch_offset: int
    leader_epoch: int
    fetch_epoch: int
    own_log_start: int
    topic_id: bytes
    version: int
    held: P

    @classmethod
    def of(cls, held: P) -> Asked[P]:
        """What is to be said now."""
        return Asked(
            held.fetch_offset,
            held.leader_epoch,
            held.fetch_epoch,
            held.own_log_start,
            held.topic_id,
            held.version,
            held,
        )


class Changes(NamedTuple):
    """What a request has to say."""

    topics: list[FetchTopic]
    forgotten: list[ForgottenTopic]


class FetchSession(Generic[P]):
    """`asked` is what the broker answers for, the next request's changes included once they are made."""

    def __init__(self, *, is_wanted: bool, partition_max_bytes: int) -> None:
        self.id = NO_SESSION
        self._first_epoch = OPENING_EPOCH if is_wanted else CLOSING_EPOCH
        self.epoch = self._first_epoch
        self.asked: dict[TopicPartition, Asked[P]] = {}
        self._by_topic_ids = False
        self._names: dict[bytes, str] = {}
        self._partition_max_bytes = partition_max_bytes

    @property
    def is_full(self) -> bool:
        """Whether the next request says everything."""
        return self.epoch <= OPENING_EPOCH

    # --- asking ---

    def changes(
        self,
        wanted: Mapping[TopicPartition, P],
        touched: Iterable[TopicPartition],
        *,
        by_topic_ids: bool,
    ) -> Changes:
        """What the next request says, where `wanted` is asked for and nothing but `touched` has changed."""
        if by_topic_ids != self._by_topic_ids:
            self._by_topic_ids = by_topic_ids
            self.restart()
        if self.is_full:
            self.asked, self._names = {}, {}
            touched = wanted
        topics: dict[tuple[str, bytes], FetchTopic] = {}
        forgotten: dict[tuple[str, bytes], ForgottenTopic] = {}
        for tp in touched:
            held, before = wanted.get(tp), self.asked.get(tp)
            now = None if held is None else Asked.of(held)
            if before is not None and (now is None or (by_topic_ids and before.topic_id != now.topic_id)):
                self._forget(tp, before, forgotten)
                before = None
            if now is None:
                continue
            self.asked[tp] = now
            if before is None or before[:4] != now[:4]:
                self._ask(tp, now, topics)
            if before is not None and before.held is not now.held:
                now.held.succeed(before.held)
        return Changes(list(topics.values()), list(forgotten.values()))

    def _ask(self, tp: TopicPartition, asked: Asked[P], topics: dict[tuple[str, bytes], FetchTopic]) -> None:
        key = (tp.topic, asked.topic_id)
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchTopic(topic=tp.topic, topic_id=asked.topic_id, partitions=[])
            self._names[asked.topic_id] = tp.topic
        topic.partitions.append(
            FetchPartition(
                partition=tp.partition,
                current_leader_epoch=asked.leader_epoch,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.fetch_epoch,
                log_start_offset=asked.own_log_start,
                partition_max_bytes=self._partition_max_bytes,
            )
        )

    def _forget(
        self, tp: TopicPartition, asked: Asked[P], forgotten: dict[tuple[str, bytes], ForgottenTopic]
    ) -> None:
        del self.asked[tp]
        key = (tp.topic, asked.topic_id)
        topic = forgotten.get(key)
        if topic is None:
            topic = forgotten[key] = ForgottenTopic(topic=tp.topic, topic_id=asked.topic_id, partitions=[])
        topic.partitions.append(tp.partition)

    def repeat(self, tp: TopicPartition) -> None:
        """The broker has refused the partition: where it is asked for again all is said of it again."""
        asked = self.asked.get(tp)
        if asked is not None:
            self.asked[tp] = asked._replace(fetch_offset=NOTHING_SAID)

    # --- hearing ---

    def find(self, topic: Topic, partition: int) -> Asked[P] | None:
        """What was asked of a partition that is answered for; None: nothing."""
        if isinstance(topic, str):
            return self.asked.get(TopicPartition(topic, partition))
        asked = self.asked.get(TopicPartition(self._names.get(topic, ""), partition))
        return asked if asked is not None and asked.topic_id == topic else None

    def answered(self, session_id: int, error_code: int = ErrorCode.NONE) -> None:
        """The broker's word on the session. With an error it names none."""
        if error_code and error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self.restart()
        elif error_code or not session_id or self._first_epoch == CLOSING_EPOCH:
            self.id, self.epoch = NO_SESSION, self._first_epoch
        elif self.is_full:
            self.id, self.epoch = session_id, OPENING_EPOCH + 1
        else:
            self.epoch = self.epoch + 1 if self.epoch < EPOCH_MAX else OPENING_EPOCH + 1

    def restart(self) -> None:
        """Say everything next time, and have the broker drop the session there was."""
        self.epoch = self._first_epoch
