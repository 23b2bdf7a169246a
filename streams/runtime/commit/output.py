"""The output of tasks: partitions and sends records, and waits for them before a commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.errors import ErrorCode, KafkaError, TransactionError
from kafka_client.records import NewRecord
from streams.errors import SerializationError
from streams.handlers import DeadLetter, ErrorContext, ExceptionHandler, answering
from streams.runtime.commit.producing import Producer
from streams.runtime.task.running import RunningTask
from streams.runtime.topics import TopicNames

log = logging.getLogger(__name__)

RECORDS_FAULT = frozenset(
    (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
    )
)
"""The errors of records that a broker never accepts; the production handler decides about such records."""


SENDS_MAX = 50_000
"""The number of refused or unacknowledged sends at which a commit is made, which settles them.

The producer's memory bounds the unacknowledged sends as well.
"""
SETTLED_AT = 1000
"""The number of sends at which acknowledged ones are removed; then twice the number that remained.

So each send is checked about once, however late the next commit is.
"""


@dataclass(slots=True, eq=False)
class SentRecords:
    """Records on their way to a partition, and the task that wrote them.

    `records` are there for the production handler, and are dropped once they are acknowledged.
    """

    topic: str
    partition: int
    records: Sequence[NewRecord]
    running: RunningTask
    ack: asyncio.Future[int | None]
    are_dead_letters: bool = False

    @property
    def is_acknowledged(self) -> bool:
        """True if the broker has the records."""
        return self.ack.done() and not self.ack.cancelled() and self.ack.exception() is None

    def drop_acknowledged(self, ack: asyncio.Future[int | None]) -> None:
        """Count the records and drop them, if they are acknowledged."""
        if self.is_acknowledged:
            self.running.produced[self.topic] += len(self.records)
            self.records = ()


class Output:
    """The way from tasks' rows to the producer.

    ``counts`` has the number of partitions of every output topic. ``find_count`` returns the number of
    another topic for dead letters, and raises StreamsError if the topic does not exist. ``dead_letter_topic``
    is the topic for handlers that name none.
    """

    def __init__(
        self,
        producer: Producer,
        names: TopicNames,
        counts: Mapping[str, int],
        on_bad_record: ExceptionHandler,
        *,
        find_count: Callable[[str], Awaitable[int]],
        dead_letter_topic: str | None = None,
    ) -> None:
        self._producer = producer
        self._names = names
        self._counts = counts
        self._find_count = find_count
        self._decide = answering(on_bad_record)
        self._dead_letter_topic = dead_letter_topic
        self._acks: list[SentRecords] = []
        self._settle_at = SETTLED_AT
        self.dropped = 0
        """The number of records that the production handler dropped."""

    @property
    def sends(self) -> int:
        """The number of sends that the next commit checks; most acknowledged ones are already removed."""
        return len(self._acks)

    @property
    def is_full(self) -> bool:
        """True if so many sends are unsettled that a commit must be made."""
        return len(self._acks) >= SENDS_MAX

    async def send(self, running: RunningTask) -> None:
        """Send the task's output. Waits only for room in the producer."""
        for topic, rows in running.task.take_output().items():
            running.has_sent = True
            name = self._names.topic(topic)
            for partition, records in self._producer.partitioned(name, rows, self._counts[name]).items():
                await self._send(name, partition, records, running)
        for (topic, partition), rows in running.task.take_placed_output().items():
            await self._send(self._names.topic(topic), partition, [*rows], running)

    async def _send(self, topic: str, partition: int, records: list[NewRecord], running: RunningTask) -> None:
        try:
            ack = await self._producer.send(topic, partition, records)
        except TransactionError:
            raise
        except KafkaError as error:
            # One record is too large for the producer, which has queued none of the list.
            if len(records) > 1:
                for record in records:
                    await self._send(topic, partition, [record], running)
            else:
                # Dead letters are part of the same commit, and of the same transaction.
                letters = await self._refused(topic, partition, records, running, error)
                self._acks += letters
        else:
            sent = SentRecords(topic, partition, records, running, ack)
            ack.add_done_callback(sent.drop_acknowledged)
            self._acks.append(sent)
            if len(self._acks) >= self._settle_at:
                self._remove_acknowledged()

    def _remove_acknowledged(self) -> None:
        """Remove acknowledged sends, which the next commit need not check."""
        self._acks = [each for each in self._acks if not each.is_acknowledged]
        self._settle_at = max(SETTLED_AT, 2 * len(self._acks))

    def take_sent(self) -> list[SentRecords]:
        """Return the sends since the last call, for the commit that will `settle` them."""
        sent, self._acks, self._settle_at = self._acks, [], SETTLED_AT
        return sent

    async def settle(self, sent: Sequence[SentRecords]) -> None:
        """Wait until all sends are acknowledged, and also the dead letters of refused records.

        Raises SerializationError if the production handler fails; KafkaError for other refusals.
        """
        await asyncio.gather(*(each.ack for each in sent), return_exceptions=True)
        letters: list[SentRecords] = []
        for each in sent:
            try:
                await each.ack
            except KafkaError as error:
                if each.are_dead_letters:
                    self._letters_refused(each.topic, len(each.records), error)
                else:
                    letters += await self._refused(
                        each.topic, each.partition, each.records, each.running, error
                    )
        if letters:
            await self.settle(letters)

    async def _refused(
        self,
        topic: str,
        partition: int,
        records: Sequence[NewRecord],
        running: RunningTask,
        error: KafkaError,
    ) -> list[SentRecords]:
        """Ask the production handler about each record. Return the dead letters that were sent for them."""
        if error.code not in RECORDS_FAULT:
            raise error
        problem = SerializationError(f"not accepted: {error}", topic, partition)
        node, letters = running.task.writers_of(topic), list[DeadLetter]()
        for timestamp, key, value, headers in records:
            # The input record is unknown here, so the context has the output record.
            context = ErrorContext(
                error=problem,
                node=node,
                task_id=str(running.task.id),
                topic=topic,
                partition=partition,
                timestamp=timestamp,
                headers=tuple(headers),
                key=key,
                value=value,
                dead_letter_topic=self._dead_letter_topic,
            )
            response = self._decide(context)
            if response.answer == "fail":
                raise problem from error
            letters += response.dead_letters
        self.dropped += len(records)
        log.warning("%s-%d: records left out: %s", topic, partition, error)
        return await self._send_letters(letters, running)

    async def _send_letters(self, letters: Iterable[DeadLetter], running: RunningTask) -> list[SentRecords]:
        sent: list[SentRecords] = []
        for letter in letters:
            topic = self._names.topic(letter.topic)
            count = self._counts.get(topic) or await self._find_count(letter.topic)
            rows: list[NewRecord] = [(letter.timestamp, letter.key, letter.value, letter.headers)]
            ((partition, _),) = self._producer.partitioned(topic, rows, count).items()
            try:
                ack = await self._producer.send(topic, partition, rows)
            except TransactionError:
                raise
            except KafkaError as error:
                self._letters_refused(topic, 1, error)
            else:
                sent.append(SentRecords(topic, partition, rows, running, ack, are_dead_letters=True))
        return sent

    def _letters_refused(self, topic: str, count: int, error: KafkaError) -> None:
        """Drop refused dead letters without asking the handler, which would send another dead letter."""
        if error.code not in RECORDS_FAULT:
            raise error
        log.error("%s: %d dead letters are refused themselves, and left out: %s", topic, count, error)
