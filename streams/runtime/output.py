"""What tasks write to topics: given to partitions, sent, and waited for before a commit."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from logd.errors import ErrorCode, KafkaError, TransactionError
from logd.records import NewRecord
from streams.errors import SerializationError
from streams.handlers import ErrorContext, ExceptionHandler, answering
from streams.runtime.producing import Producer
from streams.runtime.running import RunningTask
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
"""What a broker says of records it will never take; the production handler decides about those."""


SENDS_MAX = 50_000
"""Sends that are refused or not acknowledged yet, from which on a commit is made, which settles them. Those
on their way are bounded by the producer's memory as well.
"""
SETTLED_AT = 1000
"""So many sends, or twice those kept the last time, are looked through for what is acknowledged: each of them
is looked at about once, however long the next commit takes to come.
"""


class SentRecords(NamedTuple):
    """Records on their way to a partition."""

    topic: str
    partition: int
    records: int
    ack: asyncio.Future[int | None]


class Output:
    """The way from tasks' rows to the producer. ``counts``: partitions of every topic written."""

    def __init__(
        self,
        producer: Producer,
        names: TopicNames,
        counts: Mapping[str, int],
        on_bad_record: ExceptionHandler,
    ) -> None:
        self._producer = producer
        self._names = names
        self._counts = counts
        self._decide = answering(on_bad_record)
        self._acks: list[SentRecords] = []
        self._settle_at = SETTLED_AT
        self.dropped = 0
        """Records left out because the production handler said so."""

    @property
    def sends(self) -> int:
        """Sends that the next commit looks at: all but most of those acknowledged before it."""
        return len(self._acks)

    @property
    def is_full(self) -> bool:
        """Whether so many sends wait to be settled that a commit is to be made."""
        return len(self._acks) >= SENDS_MAX

    async def send(self, running: RunningTask) -> None:
        """Send what the task has written; waits only for room in the producer."""
        for topic, rows in running.task.take_output().items():
            running.has_sent = True
            name = self._names.topic(topic)
            for partition, records in self._producer.partitioned(name, rows, self._counts[name]).items():
                await self._send(name, partition, records)
        for (topic, partition), rows in running.task.take_placed_output().items():
            await self._send(self._names.topic(topic), partition, [*rows])

    async def _send(self, topic: str, partition: int, records: list[NewRecord]) -> None:
        try:
            ack = await self._producer.send(topic, partition, records)
        except TransactionError:
            raise
        except KafkaError as error:
            # A record larger than the producer takes: nothing of the list is queued.
            if len(records) > 1:
                for record in records:
                    await self._send(topic, partition, [record])
            else:
                self._refused(topic, partition, 1, error)
        else:
            self._acks.append(SentRecords(topic, partition, len(records), ack))
            if len(self._acks) >= self._settle_at:
                self._let_go_acknowledged()

    def _let_go_acknowledged(self) -> None:
        """Forget what was acknowledged: only the others have something to say to the next commit."""
        self._acks = [each for each in self._acks if not _is_acknowledged(each.ack)]
        self._settle_at = max(SETTLED_AT, 2 * len(self._acks))

    def take_sent(self) -> list[SentRecords]:
        """What was sent since the last call, for the commit that is to `settle` it."""
        sent, self._acks, self._settle_at = self._acks, [], SETTLED_AT
        return sent

    async def settle(self, sent: Sequence[SentRecords]) -> None:
        """Wait until all of it is acknowledged; raises what the production handler fails on."""
        await asyncio.gather(*(each.ack for each in sent), return_exceptions=True)
        for topic, partition, records, ack in sent:
            try:
                await ack
            except KafkaError as error:
                self._refused(topic, partition, records, error)

    def _refused(self, topic: str, partition: int, count: int, error: KafkaError) -> None:
        if error.code not in RECORDS_FAULT:
            raise error
        problem = SerializationError(f"not accepted: {error}", topic, partition)
        # Which input it was made of is not known any more: the context has no record, nor its bytes.
        response = self._decide(ErrorContext(error=problem, node="", task_id=""))
        if response.answer == "fail":
            raise problem from error
        self.dropped += count
        log.warning("%s-%d: records left out: %s", topic, partition, error)


def _is_acknowledged(ack: asyncio.Future[int | None]) -> bool:
    return ack.done() and not ack.cancelled() and ack.exception() is None
