"""The sending of a source's polled records, and what follows when a record is acknowledged or refused.

Records go to the producer in batches, one per partition. With `errors.tolerance=all` a batch that is refused
is halved until the refused records are alone; these are left out (KIP-779), the others are sent again, behind
what was sent meanwhile.
"""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeAlias

from connect.api.records import SourceBatch, SourceRecord
from connect.errors import ConnectError
from connect.runtime.errors.failed_row import failed_source_row
from connect.runtime.errors.stages import Stage, StageError, class_name
from connect.runtime.pending_poll import PendingPoll
from connect.runtime.source_rows import Polled, TopicRows
from connect.runtime.submitted import SubmittedBatch
from connect.runtime.task_metrics import SourceMetrics
from connect.runtime.tolerance import Tolerance
from connect.runtime.topic_creation import TopicCreation
from kafka_client import BatchProducer, RecordMetadata, TransactionalProducer, partition_for_key
from kafka_client.errors import ConnectionClosed, ErrorCode, KafkaError, MillstreamError
from kafka_client.records import NewRecord

_OF_RECORDS = frozenset(
    (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.CORRUPT_MESSAGE,
    )
)
"""Errors of single records in a batch; any other is one of the whole batch."""
_OF_PRODUCERS = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED))
"""Errors after which the producer can send nothing more: no tolerance covers them."""
_REPAIRS_MAX = 8
"""Refused batches that are looked at while further records are sent."""
PartitionCount: TypeAlias = Callable[[Callable[[], Awaitable[int]]], Awaitable[int]]


class SourceSender:
    """Sends the polled records of one source task.

    `patiently` waits for a broker that is away. `on_failure` fails the task. `is_followed` if single records
    are followed for `SourceTask.commit_record`.
    """

    def __init__(
        self,
        producer: BatchProducer | TransactionalProducer,
        topics: TopicCreation,
        tolerance: Tolerance,
        metrics: SourceMetrics,
        *,
        patiently: PartitionCount,
        note_topic: Callable[[str], None],
        on_failure: Callable[[BaseException], None],
        is_followed: bool,
    ) -> None:
        self._producer = producer
        self._topics = topics
        self._tolerance = tolerance
        self._metrics = metrics
        self._patiently = patiently
        self._note_topic = note_topic
        self._on_failure = on_failure
        self._is_followed = is_followed
        self._unanswered: set[asyncio.Future[int | None]] = set()
        self._repairs: set[asyncio.Task[None]] = set()
        self.acknowledged: deque[tuple[Sequence[SourceRecord], list[RecordMetadata | None]]] = deque()
        """Polls to be told to `SourceTask.commit_record`, in the order of their acknowledgement."""
        self.repairs = True
        """False if a refused batch ends everything, as in a transaction."""
        self.refused_topic: str | None = None
        """A topic that the task may not write to, as that of its offsets in a transaction."""

    @property
    def unanswered(self) -> int:
        """The number of sends that are not acknowledged."""
        return len(self._unanswered)

    @property
    def acknowledgements(self) -> int:
        """The number of acknowledged polls whose `commit_record` calls are due."""
        return len(self.acknowledged)

    def forget_places(self, begin: int) -> None:
        """Have the plugin told, of the acknowledgements from this one on, that nothing is in the log."""
        for index in range(begin, len(self.acknowledged)):
            records, places = self.acknowledged[index]
            self.acknowledged[index] = (records, [None] * len(places))

    async def send(self, polled: Polled, batch: SubmittedBatch) -> None:
        """Leave out the bad records of a poll, pass the others to the producer. Waits for room in it."""
        while len(self._repairs) >= _REPAIRS_MAX:
            await asyncio.wait(self._repairs, return_when=asyncio.FIRST_COMPLETED)
        pending = PendingPoll(polled.records, batch, follows=self._is_followed, on_acked=self._acked)
        for row in polled.bad:
            self._watch_dead_letter(await self._tolerance.leave_out(row), pending)
        for topic, rows in polled.topics.items():
            await self._send_topic(topic, rows, pending)
        pending.seal()

    async def flush(self) -> None:
        """Wait until everything sent so far is acknowledged, or has failed."""
        await self._producer.flush()
        while self._unanswered or self._repairs:
            waiting: list[asyncio.Future[Any]] = [*self._unanswered, *self._repairs]
            await asyncio.wait(waiting)

    def _acked(self, pending: PendingPoll) -> None:
        self._metrics.acked += len(pending.records)
        self._metrics.written += pending.written
        if pending.metadata is not None:
            self.acknowledged.append((pending.records, pending.metadata))

    async def _send_topic(self, topic: str, rows: TopicRows, pending: PendingPoll) -> None:
        self._check_topic(topic)
        count = await self._patiently(lambda: self._topics.partition_count(topic))
        self._note_topic(topic)
        if self._is_followed:
            assert rows.polled is not None
            for index, record, converted in zip(rows.polled, rows.records, rows.converted, strict=True):
                partition = self._partition(topic, record.partition, converted, count)
                await self._send(topic, partition, [converted], rows, pending, index)
            return
        for partition, records in self._partitioned(topic, rows, count).items():
            await self._send(topic, partition, records, rows, pending)

    def _check_topic(self, topic: str) -> None:
        """Raise ConnectError for a topic that takes no records."""
        if topic == self.refused_topic:
            raise ConnectError(
                f"{topic} has the task's source offsets: with exactly-once source support it takes no records"
            )

    def _partitioned(self, topic: str, rows: TopicRows, count: int) -> Mapping[int, list[NewRecord]]:
        records = rows.records
        if isinstance(records, SourceBatch) or [source.partition for source in records].count(None) == len(
            records
        ):
            return self._producer.partitioned(topic, rows.converted, count)
        partitioned: dict[int, list[NewRecord]] = defaultdict(list)
        for source, converted in zip(records, rows.converted, strict=True):
            partitioned[self._partition(topic, source.partition, converted, count)].append(converted)
        return partitioned

    def _partition(self, topic: str, partition: int | None, converted: NewRecord, count: int) -> int:
        if partition is not None:
            return partition
        key = converted[1]
        if key is not None:
            return partition_for_key(key, count)
        return self._producer.partition_for(topic, None, count)

    async def _send(
        self,
        topic: str,
        partition: int,
        records: list[NewRecord],
        rows: TopicRows,
        pending: PendingPoll,
        index: int | None = None,
    ) -> None:
        """Pass records of one partition to the producer; `index` is that of the only record's polled one."""
        repair = (
            _Repair(self, topic, partition, rows, pending, index)
            if self.repairs and self._tolerance.tolerates_all
            else None
        )
        try:
            future = await self._producer.send(topic, partition, records)
        except KafkaError as e:
            if repair is not None and e.code in _OF_RECORDS:
                await repair.after(e, records)
                return
            if e.code is not ErrorCode.MESSAGE_TOO_LARGE:
                raise
            raise too_large(e) from e
        self._unanswered.add(future)
        pending.begin()
        place = (topic, partition, records[0][0], index)
        ended = self._ended if repair is None else functools.partial(self._ended, repair=(repair, records))
        future.add_done_callback(functools.partial(ended, count=len(records), place=place, pending=pending))

    def _ended(
        self,
        future: asyncio.Future[int | None],
        *,
        count: int,
        place: tuple[str, int, int, int | None],
        pending: PendingPoll,
        repair: tuple[_Repair, list[NewRecord]] | None = None,
    ) -> None:
        """Handle the end of a send: an acknowledgement, a refusal that is tolerated, or a failure."""
        self._unanswered.discard(future)
        error = ConnectError("sending was cancelled") if future.cancelled() else future.exception()
        if error is None:
            topic, partition, timestamp, index = place
            if index is not None:
                pending.note(index, RecordMetadata(topic, partition, future.result(), timestamp))
            pending.end(written=count)
        elif repair is not None and _is_tolerable(error):
            self._begin_repair(repair[0].after(error, repair[1]), pending)
        else:
            self._on_failure(error)

    def _begin_repair(self, repair: Coroutine[Any, Any, None], pending: PendingPoll) -> None:
        task = asyncio.get_running_loop().create_task(repair)
        self._repairs.add(task)

        def ended(task: asyncio.Task[None]) -> None:
            self._repairs.discard(task)
            error = ConnectError("sending was cancelled") if task.cancelled() else task.exception()
            if error is None:
                pending.end()
            else:
                self._on_failure(error)

        task.add_done_callback(ended)

    def _watch_dead_letter(self, writing: asyncio.Future[None] | None, pending: PendingPoll) -> None:
        """Have the poll wait for a dead letter; the tolerance fails the task if that cannot be written."""
        if writing is None:
            return
        pending.begin()

        def ended(writing: asyncio.Future[None]) -> None:
            if not writing.cancelled() and writing.exception() is None:
                pending.end()

        writing.add_done_callback(ended)

    async def repaired(self, topic: str, partition: int, records: list[NewRecord]) -> int | None:
        """Send records again and return the first one's offset. Raises MillstreamError if it is refused."""
        return await (await self._producer.send(topic, partition, records))

    async def leave_out(
        self, rows: TopicRows, records: Sequence[NewRecord], error: BaseException, pending: PendingPoll
    ) -> None:
        """Leave out records that the broker or the producer has refused."""
        sources = {id(new): source for new, source in zip(rows.converted, rows.records, strict=True)}
        for record in records:
            self._metrics.failed(again=False)
            refusal = StageError(Stage.KAFKA_PRODUCE, "send", class_name(self._producer), error)
            row = failed_source_row(sources[id(record)], refusal, record)
            self._watch_dead_letter(await self._tolerance.leave_out(row), pending)


class _Repair:
    """The second way of a batch that was refused: in halves, down to the single records at fault."""

    __slots__ = ("_index", "_partition", "_pending", "_rows", "_sender", "_topic")

    def __init__(
        self,
        sender: SourceSender,
        topic: str,
        partition: int,
        rows: TopicRows,
        pending: PendingPoll,
        index: int | None,
    ) -> None:
        self._sender = sender
        self._topic = topic
        self._partition = partition
        self._rows = rows
        self._pending = pending
        self._index = index

    async def after(self, error: BaseException, records: list[NewRecord]) -> None:
        """Send the records in halves after an error of single records, or leave them out."""
        if not (len(records) > 1 and isinstance(error, KafkaError) and error.code in _OF_RECORDS):
            await self._sender.leave_out(self._rows, records, error, self._pending)
            return
        middle = len(records) // 2
        for half in (records[:middle], records[middle:]):
            try:
                await self._sender.repaired(self._topic, self._partition, half)
            except MillstreamError as e:
                if not _is_tolerable(e):
                    raise
                await self.after(e, half)
            else:
                self._pending.written += len(half)


def too_large(error: KafkaError) -> ConnectError:
    """Return the error of a record or batch that is larger than a request may be, with its remedy."""
    return ConnectError(
        f"{error}; it is producer.override.max.request.size of the connector, and the topic's "
        "max.message.bytes has to allow as much"
    )


def _is_tolerable(error: BaseException) -> bool:
    """Return True if `errors.tolerance=all` covers an error of sending."""
    if isinstance(error, KafkaError):
        return error.code not in _OF_PRODUCERS
    return isinstance(error, MillstreamError) and not isinstance(error, (ConnectionClosed, ConnectError))
