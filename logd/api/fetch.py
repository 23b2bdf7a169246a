"""Fetch, 4 to 18: batches as they lie in the log, as slices of its files.

The first partition with data gives at least one batch, however small the limits; a position in the middle of
a batch gives the whole batch. Below ``min_bytes`` the request waits up to ``max_wait_ms`` as a delayed
operation of its partitions. Pages that are not in memory are read in by a thread first, while the connection
waits and others are served.

From version 7 on a client may keep a session (KIP-227, see `broker.fetch_sessions`): it says once what it
wants, and is told only of partitions with news. Partitions are answered in the order asked, as Kafka does:
clients without a session rotate them themselves, in a session those that gave records go to the end. In a
session only those are looked at that are ready, which goes by what was appended: an idle one costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from logd.broker.delayed import Cold, Delayed
from logd.broker.fetch_sessions import (
    CLOSING_EPOCH,
    NO_SESSION,
    OPENING_EPOCH,
    FetchSession,
    SessionPartition,
)
from logd.broker.partition import AppendWaiter, LogDiverged, Partition
from logd.broker.topic import Topic
from logd.broker.warming import ROUNDS_MAX, Job
from logd.errors import ErrorCode, KafkaError
from logd.records.slice import FileSlice
from logd.storage import NotResident, is_resident, warm
from logd.storage.disk import CACHED_ONLY
from logd.wire.fetch import (
    TOPIC_IDS,
    FetchPartition,
    PartitionFetched,
    ReceivedFetch,
    decode_fetch_request,
    encode_fetch_response,
)
from logd.wire.fetch import Topic as TopicKey

if TYPE_CHECKING:
    from logd.api.answer import Answer
    from logd.api.context import RequestContext
    from logd.broker.broker import Broker

PIECE_ROUNDS_MAX = 2
"""How often the records of one answer are read in; what memory does not keep is sent as it comes."""


def serve(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | Delayed[Answer]:
    """Answer at once when there is enough, an error, or nothing to wait for; otherwise wait."""
    request = decode_fetch_request(view, version, pos, end)
    broker = context.broker
    session = None
    if request.session_epoch not in (OPENING_EPOCH, CLOSING_EPOCH):
        try:
            session = broker.fetch_sessions.next(
                request, by_topic_ids=version >= TOPIC_IDS, now_ms=broker.loop.time() * 1000
            )
        except KafkaError as error:
            return encode_fetch_response([], version, correlation_id, error_code=error.code)
    elif request.session_id != NO_SESSION:
        broker.fetch_sessions.close(request.session_id)
    read = FetchRead(broker, request, version, correlation_id, session)
    outcome = read(request.max_wait_ms <= 0)
    if outcome is None or isinstance(outcome, Cold):
        return Delayed(broker.loop, broker.warmer, broker.wakeups, request.max_wait_ms, read, outcome)
    return outcome


Answers: TypeAlias = "list[tuple[TopicKey, list[PartitionFetched[FileSlice]]]]"
Look: TypeAlias = "tuple[list[PartitionFetched[FileSlice]], Partition, FetchPartition, FileSlice]"
"""Records that are to be looked at before they are sent, and the list their answer stands in."""


class FetchRead:
    """One request's reading; called again whenever there is news, until it answers.

    Without a session every call looks at all that was asked for, in a session at what is ready there.
    """

    __slots__ = (
        "_broker",
        "_committed",
        "_correlation_id",
        "_epoch",
        "_failure",
        "_find",
        "_found",
        "_missing",
        "_piece_rounds",
        "_request",
        "_rounds",
        "_session",
        "_version",
        "_wanted",
    )

    def __init__(
        self,
        broker: Broker,
        request: ReceivedFetch,
        version: int,
        correlation_id: int,
        session: FetchSession | None,
    ) -> None:
        self._broker = broker
        self._request = request
        self._version = version
        self._correlation_id = correlation_id
        self._session = session
        self._epoch = session.epoch if session is not None else 0
        self._committed = request.is_committed
        catalog = broker.catalog
        self._find: Callable[[Any], Topic | None]
        self._find = catalog.topics.get if version < TOPIC_IDS else catalog.topics_by_id.get
        self._wanted: Sequence[tuple[TopicKey, FetchPartition, None]] = ()
        if session is None:
            self._wanted = [(name, asked, None) for name, wanted in request.topics for asked in wanted]
        self._rounds = self._piece_rounds = 0
        self._failure: OSError | None = None
        self._found: list[Partition] = []
        self._missing = -1
        """Partitions that were not there when the wait began; below zero before that."""

    def watch(self, waiter: AppendWaiter) -> None:
        """See `Attempt`."""
        if self._session is not None:
            self._session.waiter = waiter
        for partition in self._found:
            partition.waiters.add(waiter)

    def unwatch(self, waiter: AppendWaiter) -> None:
        """See `Attempt`."""
        if self._session is not None and self._session.waiter is waiter:
            self._session.waiter = None
        for partition in self._found:
            partition.waiters.discard(waiter)

    def warmed(self, error: OSError | None) -> None:
        """See `Attempt`."""
        self._rounds += 1
        self._failure = error

    def __call__(self, final: bool) -> Answer | Cold | None:
        """The response frame; None when there is too little, no error and ``final`` is false."""
        session, request = self._session, self._request
        if session is not None and session.epoch != self._epoch:
            return self._overtaken(session)
        left = min(request.max_bytes, self._broker.config.fetch_max_bytes)
        size, missing, committed = 0, 0, self._committed
        answers: Answers = []
        found: list[Partition] = []
        looks: list[tuple[int, Look]] = []
        jobs: list[Job] = []
        last_name: TopicKey | None = None
        fetched: list[PartitionFetched[FileSlice]] = []
        for name, asked, held in self._to_look_at():
            if name != last_name:
                fetched = []
                answers.append((name, fetched))
                last_name = name
            try:
                partition = self._partition(name, asked.partition)
            except KafkaError as error:
                missing += 1
                fetched.append(PartitionFetched(asked.partition, error.code))
                continue
            bound = partition.last_stable_offset if committed else partition.high_watermark
            piece, is_recent = None, True
            try:
                piece, is_recent = self._read(partition, asked, bound, left - size, size == 0)
            except KafkaError as error:
                final = True
                fetched.append(PartitionFetched(asked.partition, error.code))
                continue
            except LogDiverged as end:
                final = True
                fetched.append(_diverged(partition, end))
                continue
            except NotResident as need:
                jobs.append(need.job)
            if piece is not None:
                size += piece.length
                if committed or not is_recent:
                    looks.append((len(fetched), (fetched, partition, asked, piece)))
            elif held is not None and held.knows(partition):
                if asked.fetch_offset >= bound:
                    held.watch(partition)
                else:
                    found.append(partition)
                continue
            found.append(partition)
            fetched.append(
                PartitionFetched(
                    asked.partition,
                    0,
                    partition.high_watermark,
                    partition.last_stable_offset,
                    partition.log_start_offset,
                    piece if piece is not None else b"",
                    () if committed else None,
                )
            )
        if jobs:
            return Cold(jobs)
        if not final and size < request.min_bytes and self._may_wait(missing):
            self._found, self._missing = found, missing
            return None
        if looks and (jobs := self._look(looks)):
            return Cold(jobs)
        if session is not None:
            answers = [(name, told) for name, told in answers if told]
        elif request.session_epoch != OPENING_EPOCH:
            return encode_fetch_response(answers, self._version, self._correlation_id)
        return self._encode(answers, 0, self._tell(answers))

    def _to_look_at(self) -> Sequence[tuple[TopicKey, FetchPartition, SessionPartition | None]]:
        session = self._session
        if session is None:
            return self._wanted
        return [(held.topic, held.asked, held) for held in session.in_turn()]

    def _partition(self, name: TopicKey, index: int) -> Partition:
        topic = self._find(name)
        if topic is None:
            raise _unknown(name)
        return topic.partition(index)

    def _may_wait(self, missing: int) -> bool:
        """What is not there neither ends the wait nor is waited for, unless it went meanwhile."""
        held = self._session.partitions if self._session is not None else self._wanted
        return missing < len(held) and (self._missing < 0 or missing <= self._missing)

    def _overtaken(self, session: FetchSession) -> Answer:
        """The session went on with another request while this one waited, or had to give way."""
        if session.is_open:
            return self._encode([], ErrorCode.INVALID_FETCH_SESSION_EPOCH, session.id)
        return self._encode([], ErrorCode.FETCH_SESSION_ID_NOT_FOUND, NO_SESSION)

    def _read(
        self, partition: Partition, asked: FetchPartition, bound: int, left: int, first: bool
    ) -> tuple[FileSlice | None, bool]:
        """The records below ``bound``, and whether they were appended lately. Raises KafkaError, NotResident,
        LogDiverged.

        ``left`` is below zero once the limit is passed.
        """
        if asked.current_leader_epoch >= 0:
            partition.check_leader_epoch(asked.current_leader_epoch)
        offset = asked.fetch_offset
        if asked.last_fetched_epoch >= 0:
            partition.check_last_fetched(asked.last_fetched_epoch, offset)
        if offset == bound and not partition.is_offline:
            return None, True  # where most partitions of a large request are
        limit = asked.max_bytes if asked.max_bytes < left else left
        if limit <= 0:
            if not first:
                return None, True
            limit = 0
        log = partition.log
        if log.reader.is_recent(offset):
            return log.reader.read(offset, limit, upper_bound=bound, min_one_batch=first), True
        try:
            return partition.read(
                offset,
                limit,
                committed=self._committed,
                min_one_batch=first,
                wants_records=self._request.replica_id < 0,
            ), False
        except NotResident:
            self._check_patience(partition)
            raise

    def _check_patience(self, partition: Partition) -> None:
        """Raise KafkaError(KAFKA_STORAGE_ERROR) when reading pages in has failed, or was no use too often."""
        if self._failure is not None or self._rounds >= ROUNDS_MAX:
            reason = self._failure or "its pages do not stay in memory"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{partition} cannot be read in: {reason}")

    # The answer

    def _look(self, looks: Sequence[tuple[int, Look]]) -> list[Job]:
        """See that records can be sent without waiting for the disk, and which of them were aborted; returns
        what has to be read in for that.
        """
        jobs: list[Job] = []
        for place, (fetched, partition, asked, piece) in looks:
            try:
                self._check_resident(partition, asked, piece)
                if self._committed:
                    aborted = self._aborted(partition, asked.fetch_offset, piece)
                    fetched[place] = fetched[place]._replace(aborted=aborted)
            except KafkaError as error:
                fetched[place] = PartitionFetched(asked.partition, error.code)
            except NotResident as need:
                jobs.append(need.job)
        if jobs:
            self._piece_rounds += 1
        return jobs

    def _check_resident(self, partition: Partition, asked: FetchPartition, piece: FileSlice) -> None:
        """Raise NotResident where sending would wait for the disk; the end of the log is not looked at."""
        if partition.log.reader.is_recent(asked.fetch_offset) or is_resident(piece):
            return
        if self._failure is not None:
            self._check_patience(partition)
        if self._piece_rounds < PIECE_ROUNDS_MAX:
            raise NotResident(partial(warm, piece))

    def _aborted(self, partition: Partition, start: int, piece: FileSlice) -> list[tuple[int, int]]:
        """Aborted transactions with records in the piece, by their first offsets."""
        try:
            with CACHED_ONLY:
                end = partition.log.reader.end_of(piece, start)
            return [(entry.producer_id, entry.first_offset) for entry in partition.aborted(start, end)]
        except NotResident:
            self._check_patience(partition)
            raise

    def _tell(self, topics: Sequence[tuple[TopicKey, Sequence[PartitionFetched[FileSlice]]]]) -> int:
        """Note in the session what the client is told, opening one if it wants that; the session's id."""
        request, session = self._request, self._session
        if session is None and request.session_epoch == OPENING_EPOCH:
            session = self._broker.fetch_sessions.open(
                [(name, asked) for name, asked, _ in self._wanted],
                by_topic_ids=self._version >= TOPIC_IDS,
                privileged=request.replica_id >= 0,
                now_ms=self._broker.loop.time() * 1000,
            )
        if session is None:
            return NO_SESSION
        for name, partitions in topics:
            for fetched in partitions:
                session.told(name, fetched)
        return session.id

    def _encode(
        self,
        topics: Sequence[tuple[TopicKey, Sequence[PartitionFetched[FileSlice]]]],
        error_code: int,
        session_id: int,
    ) -> Answer:
        return encode_fetch_response(
            topics, self._version, self._correlation_id, error_code=error_code, session_id=session_id
        )


def _diverged(partition: Partition, end: LogDiverged) -> PartitionFetched[FileSlice]:
    return PartitionFetched(
        partition.index,
        high_watermark=partition.high_watermark,
        last_stable_offset=partition.last_stable_offset,
        log_start_offset=partition.log_start_offset,
        diverging=(end.epoch, end.end_offset),
    )


def _unknown(name: TopicKey) -> KafkaError:
    if isinstance(name, bytes):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {name.hex()}")
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
