"""A broker with fetch sessions (KIP-227), for one topic, at the end of a `FakeBroker`'s Fetch script.

    sessions = SessionBroker(broker)          # topic "t"; its partitions are the broker's
    sessions.append(3, b"a", b"b")            # partition 3
    sessions.fail_next(ErrorCode.FETCH_SESSION_ID_NOT_FOUND)

What each request said stands in `requests`. Answers tell only of what has news, as a real broker's do; the
session's epoch and its partitions are checked as there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch
from kafka_client.wire import ApiKey
from kafka_client.wire.fetch import TOPIC_IDS, PartitionFetched, Topic, encode_fetch_response
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.kafka_client.fake_broker import TOPIC_ID, FakeBroker, ReceivedRequest
from tests.kafka_client.running import QUICK, run

Key = tuple[Topic, int]


@dataclass
class FetchSummary:
    """A fetch request: its session id and epoch, and the partitions that it names."""

    session_id: int
    epoch: int
    fetch_offsets: dict[int, int]
    """Partition → fetch offset."""
    forgotten: list[int]
    version: int
    rack_id: str = ""


@dataclass
class Session:
    """The broker's side of a fetch session: fetch offsets, and the high watermarks last reported."""

    epoch: int = 1
    offsets: dict[Key, int] = field(default_factory=dict)
    high_watermarks: dict[Key, int] = field(default_factory=dict)


class SessionBroker:
    """A broker of single-record batches in one topic; without `keeps` it opens no fetch sessions."""

    def __init__(self, broker: FakeBroker, topic: str = "t", *, keeps: bool = True) -> None:
        self.broker = broker
        self.topic = topic
        self.topic_id = TOPIC_ID
        self.keeps = keeps
        self.logs: dict[int, list[bytes]] = {}
        self.errors: dict[int, int] = {}
        """Partition → error code answered in place of records."""
        self.replicas: dict[int, int] = {}
        """Partition → replica to be read from, answered in place of records."""
        self.diverging: dict[int, tuple[int, int]] = {}
        """Partition → (epoch, its end), answered to those who have read beyond that (KIP-320)."""
        self.sessions: dict[int, Session] = {}
        self.requests: list[FetchSummary] = []
        self.closed: list[int] = []
        self.failures: list[Any] = []
        """Error codes or script answers for the next requests."""
        self._ids = iter(range(100, 10_000))
        self._news = asyncio.Event()
        broker.on(ApiKey.FETCH, self._fetch)
        broker.on(ApiKey.LIST_OFFSETS, self._list_offsets)

    def append(self, partition: int, *values: bytes) -> None:
        """Write records."""
        self.logs.setdefault(partition, []).extend(values)
        self.news()

    def news(self) -> None:
        """Wake the requests that wait for records."""
        self._news.set()

    def fail_next(self, *failures: Any) -> None:
        """Answer the next requests with these error codes, or with answers of a `FakeBroker` script."""
        self.failures += failures
        self.news()

    @property
    def incremental(self) -> list[FetchSummary]:
        """The incremental requests, those that continue a session."""
        return [request for request in self.requests if request.epoch > 0]

    @property
    def full(self) -> list[FetchSummary]:
        """The full requests, those that name every partition."""
        return [request for request in self.requests if request.epoch <= 0 and not self._closes(request)]

    @staticmethod
    def _closes(request: FetchSummary) -> bool:
        return request.epoch == -1 and request.session_id != 0

    async def _fetch(self, request: ReceivedRequest) -> Any:
        message, named = request.message, {}
        for topic in message.topics:
            key: Topic = topic.topic_id if request.version >= TOPIC_IDS else topic.topic
            for p in topic.partitions:
                named[key, p.partition] = p.fetch_offset
        forgotten: list[Key] = [
            (topic.topic_id if request.version >= TOPIC_IDS else topic.topic, p)
            for topic in message.forgotten_topics_data
            for p in topic.partitions
        ]
        summary = FetchSummary(
            message.session_id,
            message.session_epoch,
            {p: offset for (_, p), offset in named.items()},
            [p for _, p in forgotten],
            request.version,
            message.rack_id,
        )
        self.requests.append(summary)
        if self._closes(summary):
            self.closed.append(summary.session_id)
            self.sessions.pop(summary.session_id, None)
            return self._answer(request, {}, 0)
        if self.failures:
            failure = self.failures.pop(0)
            return failure if isinstance(failure, str | bytes) else self._answer(request, {}, 0, failure)
        if summary.epoch <= 0:
            return await self._fetch_all(request, summary, named)
        session = self.sessions.get(summary.session_id)
        if session is None:
            return self._answer(request, {}, 0, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if summary.epoch != session.epoch:
            return self._answer(request, {}, 0, ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        session.epoch += 1
        session.offsets.update(named)
        for partition in forgotten:
            del session.offsets[partition]
            session.high_watermarks.pop(partition, None)
        answers = await self._wait(session.offsets, session.high_watermarks)
        return self._answer(request, answers, summary.session_id)

    async def _fetch_all(
        self, request: ReceivedRequest, summary: FetchSummary, named: dict[Key, int]
    ) -> bytes:
        self.sessions.pop(summary.session_id, None)
        if not self.keeps or summary.epoch < 0:
            await self._wait(named, {key: self._end(key) for key in named})
            return self._answer(request, {key: self._look(key, at) for key, at in named.items()}, 0)
        session_id = next(self._ids)
        session = self.sessions[session_id] = Session(offsets=dict(named))
        answers = {key: self._look(key, at) for key, at in named.items()}
        session.high_watermarks = {key: fetched.high_watermark for key, fetched in answers.items()}
        return self._answer(request, answers, session_id)

    async def _wait(
        self, offsets: dict[Key, int], reported: dict[Key, int]
    ) -> dict[Key, PartitionFetched[Any]]:
        """Return the partitions with records, errors or a new high watermark; wait 20 ms for the first."""
        for _ in range(2):
            answers = {}
            for key, at in offsets.items():
                fetched = self._look(key, at)
                end = fetched.high_watermark
                is_news = fetched.records or fetched.error_code or fetched.diverging is not None
                if is_news or fetched.preferred_read_replica >= 0 or reported.get(key) != end:
                    answers[key] = fetched
                    reported[key] = end
            if answers or self.failures:
                return answers
            self._news.clear()
            try:
                await asyncio.wait_for(self._news.wait(), 0.02)
            except TimeoutError:
                pass
        return {}

    def _end(self, key: Key) -> int:
        return len(self.logs.get(key[1], []))

    def _look(self, key: Key, offset: int) -> PartitionFetched[Any]:
        topic, partition = key
        if isinstance(topic, bytes) and topic != self.topic_id:
            return PartitionFetched(partition, ErrorCode.UNKNOWN_TOPIC_ID)
        if partition in self.errors:
            return PartitionFetched(partition, self.errors[partition])
        end = self._end(key)
        if partition in self.diverging and offset > self.diverging[partition][1]:
            return PartitionFetched(partition, 0, end, end, 0, diverging=self.diverging[partition])
        if offset > end:
            return PartitionFetched(partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        if partition in self.replicas:
            return PartitionFetched(
                partition, 0, end, end, 0, b"", preferred_read_replica=self.replicas[partition]
            )
        records = b""
        if offset < end:
            records = build_batch([(0, None, self.logs[partition][offset], ())], base_offset=offset)
        return PartitionFetched(partition, 0, end, end, 0, records)

    def _answer(
        self,
        request: ReceivedRequest,
        answers: dict[Key, PartitionFetched[Any]],
        session_id: int,
        error_code: int = 0,
    ) -> bytes:
        topics: dict[Topic, list[PartitionFetched[Any]]] = {}
        for (topic, _), fetched in answers.items():
            topics.setdefault(topic, []).append(fetched)
        chunks = encode_fetch_response(
            list(topics.items()),
            request.version,
            request.correlation_id,
            error_code=error_code,
            session_id=session_id,
        )
        return b"".join(chunk for chunk in chunks if isinstance(chunk, bytes))

    def _list_offsets(self, request: ReceivedRequest) -> ListOffsetsResponse:
        partitions = [
            ListOffsetsPartitionResponse(
                partition_index=p.partition_index,
                offset=0 if p.timestamp == -2 else self._end((self.topic, p.partition_index)),
            )
            for p in request.message.topics[0].partitions
        ]
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name=self.topic, partitions=partitions)])


Case = Callable[[SessionBroker, Client], Coroutine[Any, Any, None]]


def tp(partition: int) -> TopicPartition:
    return TopicPartition("t", partition)


def with_sessions(
    case: Case, *, partitions: int = 3, fetch: tuple[int, int] = (4, 17), keeps: bool = True
) -> None:
    async def test() -> None:
        async with FakeBroker() as broker:
            broker.served[ApiKey.FETCH] = fetch
            broker.topics["t"] = dict.fromkeys(range(partitions), 1)
            sessions = SessionBroker(broker, keeps=keeps)
            async with Client(broker.bootstrap, **QUICK) as client:
                await case(sessions, client)

    run(test())


async def read(fetcher: BatchFetcher, count: int) -> list[tuple[int, int, bytes | None]]:
    """Return (partition, offset, value) of the next `count` records."""
    records: list[tuple[int, int, bytes | None]] = []
    while len(records) < count:
        for fetched in await fetcher.fetch():
            records += [(fetched.tp.partition, record[0], record[3]) for record in fetched.records()]
    return records
