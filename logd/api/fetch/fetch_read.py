"""The reading for one Fetch request, from the first attempt to answer to the last.

`fetch_attempt` reads the partitions. This module decides when there is enough to answer, and notes in the
fetch session what is sent. `broker.fetching.delayed` does the waiting.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from kafka_client.errors import ErrorCode
from kafka_client.records.slice import FileSlice
from kafka_client.wire.fetch import NODES, TOPIC_IDS, PartitionFetched, encode_fetch_response
from logd.api.current_leaders import tell_leaders
from logd.api.fetch.fetch_attempt import FetchAttempt
from logd.api.fetch.fetch_reader import FetchReader
from logd.broker.fetching.delayed import NeedsColdRead
from logd.broker.fetching.fetch_session import NO_SESSION, OPENING_EPOCH, FetchSession

if TYPE_CHECKING:
    from kafka_client.errors import KafkaError
    from kafka_client.wire.fetch import FetchPartition, ReceivedFetch, Topic
    from logd.api.fetch.follower_fetch import Refused
    from logd.api.request.answer import Answer
    from logd.broker.broker import Broker
    from logd.broker.partition.partition import FollowerWaiter, Partition
    from logd.broker.topics.cluster_view import Node
    from logd.broker.topics.topic import Topic as BrokerTopic
    from logd.config.listeners import Endpoint

    Answers: TypeAlias = list[tuple[Topic, list[PartitionFetched[FileSlice]]]]

_MISLED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
"""Errors of a client with old metadata, to which the response adds the current leader."""


class FetchRead:
    """Called again whenever there is news, until it answers: an `Attempt`.

    Without a session every call looks at all that was asked for, in a session at what is ready there.
    """

    __slots__ = (
        "_asked_on",
        "_broker",
        "_correlation_id",
        "_epoch",
        "_missing",
        "_reader",
        "_request",
        "_requested",
        "_session",
        "_version",
        "_watched",
    )

    def __init__(
        self,
        broker: Broker,
        request: ReceivedFetch,
        version: int,
        correlation_id: int,
        session: FetchSession | None,
        asked_on: Endpoint,
    ) -> None:
        self._broker = broker
        self._asked_on = asked_on
        self._request = request
        self._version = version
        self._correlation_id = correlation_id
        self._session = session
        self._epoch = session.epoch if session is not None else 0
        self._reader = FetchReader(broker, request, version, asked_on)
        self._requested: Sequence[tuple[Topic, FetchPartition, None]] = ()
        if session is None:
            self._requested = [
                (name, partition, None) for name, partitions in request.topics for partition in partitions
            ]
        self._watched: list[Partition] = []
        """Partitions that are watched: those that existed when the wait began and may have news."""
        self._missing = -1
        """Partitions that were not there when the wait began; below zero before that."""

    def authorize(self, refusal_of: Callable[[Topic, BrokerTopic | None], KafkaError | None] | None) -> None:
        """Set the function that returns why a topic may not be read."""
        self._reader.refusal_of = refusal_of

    def refuse(self, refused: Refused) -> None:
        """Answer these partitions with their error codes, without reading them."""
        self._reader.refused = refused

    def watch(self, waiter: FollowerWaiter) -> None:
        """See `Attempt`."""
        if self._session is not None:
            self._session.waiter = waiter
        follower = self._request.replica_id >= 0
        for partition in self._watched:
            partition.wait_for_append(waiter, follower=follower)

    def unwatch(self, waiter: FollowerWaiter) -> None:
        """See `Attempt`."""
        if self._session is not None and self._session.waiter is waiter:
            self._session.waiter = None
        for partition in self._watched:
            partition.forget_waiter(waiter)

    def warmed(self, error: OSError | None) -> None:
        """See `Attempt`."""
        self._reader.rounds.ended(error)

    def __call__(self, final: bool) -> Answer | NeedsColdRead | None:
        """Return the response, or None if there is too little, no error and ``final`` is false."""
        session, request = self._session, self._request
        if session is not None and session.epoch != self._epoch:
            return self._overtaken(session)
        bytes_max = min(request.max_bytes, self._broker.config.fetch_max_bytes)
        throttle = self._reader.throttle
        if throttle is not None:
            throttle.size = 0
        attempt = FetchAttempt(self._reader, bytes_max)
        answers: Answers = []
        fetched: list[PartitionFetched[FileSlice]] = []
        last_name: Topic | None = None
        for name, requested, session_partition in self._requested if session is None else session.in_turn():
            if name != last_name:
                fetched = []
                answers.append((name, fetched))
                last_name = name
            attempt.read(name, requested, session_partition, fetched)
        if attempt.jobs:
            return NeedsColdRead(attempt.jobs)
        has_news = attempt.has_failed or attempt.has_news
        is_enough = final or has_news or attempt.size >= request.min_bytes
        if not is_enough and self._may_wait(attempt.missing):
            self._watched, self._missing = attempt.watchable, attempt.missing
            return None
        if attempt.looks and (jobs := attempt.look()):
            return NeedsColdRead(jobs)
        if session is not None:
            answers = [(name, partitions) for name, partitions in answers if partitions]
        if self._request.replica_id < 0:
            self._broker.bytes_out += attempt.size
        else:
            self._broker.replication_bytes_out += attempt.size
            if throttle is not None:
                throttle.quota.record(throttle.size)
        nodes = self._tell_leaders(answers) if attempt.has_failed else ()
        if session is None and request.session_epoch != OPENING_EPOCH:
            return encode_fetch_response(answers, self._version, self._correlation_id, nodes=nodes)
        return self._encode(answers, 0, self._tell(answers), nodes)

    def _tell_leaders(self, answers: Answers) -> Sequence[Node]:
        if self._version < NODES:
            return ()
        return tell_leaders(answers, _MISLED, self._reader.find, self._broker.cluster, self._asked_on)

    def _may_wait(self, missing: int) -> bool:
        """Return True unless all partitions are missing, or one disappeared since the wait began."""
        requested = self._session.partitions if self._session is not None else self._requested
        return missing < len(requested) and (self._missing < 0 or missing <= self._missing)

    def _overtaken(self, session: FetchSession) -> Answer:
        """Return the error for a request whose session has moved on to another request or was evicted."""
        if session.is_open:
            return self._encode([], ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
        return self._encode([], ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION)

    def _tell(self, topics: Answers) -> int:
        """Note in the session what the client is told, opening one if it wants that; the session's id."""
        request, session = self._request, self._session
        if session is None and request.session_epoch == OPENING_EPOCH:
            session = self._broker.fetch_sessions.open(
                [(name, partition) for name, partition, _ in self._requested],
                by_topic_ids=self._version >= TOPIC_IDS,
                privileged=request.replica_id >= 0,
                is_prompt=self._reader.is_prompt,
                follower=request.replica_id,
                now_ms=self._broker.loop.time() * 1000,
            )
        if session is None:
            return NO_SESSION
        for name, partitions in topics:
            for fetched in partitions:
                session.note_sent(name, fetched)
        return session.id

    def _encode(
        self,
        topics: Answers,
        error_code: int,
        session_id: int,
        nodes: Sequence[Node] = (),
    ) -> Answer:
        return encode_fetch_response(
            topics,
            self._version,
            self._correlation_id,
            error_code=error_code,
            session_id=session_id,
            nodes=nodes,
        )
