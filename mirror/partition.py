"""One partition's copy: what was read, what is on its way, what the target has acknowledged.

Who fetches and produces is `source`'s business, where a copy begins `position`'s.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass, field

from kafka_client import Identity, TopicPartition
from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError, UnreadableBatch
from kafka_client.fetcher.parts import unreadable_batch
from kafka_client.metrics.windowed import Windowed
from kafka_client.records import RecordReader, read_header
from mirror.errors import ForeignWrite, MirrorError, NotFetched, NotPassed, OutOfSequence
from mirror.forward_batch import Passed
from mirror.offsets import NO_EPOCH, NO_ID, SEQUENCE_MASK, OffsetSync, ProducerPosition
from mirror.unreadable import way_on

_OTHER_SEQUENCE = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
)


@dataclass(slots=True)
class InFlight:
    """A batch that was sent at `sent_at`; `future` is its ack."""

    passed: Passed
    size: int
    max_timestamp: int
    leader_epoch: int
    sent_at: float
    future: asyncio.Future[int | None]


@dataclass(slots=True, kw_only=True)
class PartitionCopy:
    """State of one partition's copy. `upstream` offsets are the source's, `downstream` the target's."""

    tp: TopicPartition
    remote: TopicPartition
    position: int
    """Next upstream offset to read."""
    downstream: int
    """Downstream offset the next batch to be acked must get."""
    identity: Identity
    """The producer id and epoch it is produced under."""
    sequence: int
    """The sequence number of the next record to be acked."""
    topic_id: bytes = NO_ID
    remote_topic_id: bytes = NO_ID
    end: int = -1
    """The source's last stable offset, as last heard."""
    copied: int = -1
    """Upstream offset behind the last acked batch."""
    leader_epoch: int = NO_EPOCH
    """The source's, of the last acked batch: it shows a source that has lost the batch (KIP-320)."""
    timestamp: int = -1
    """Newest timestamp of the last acked batch, ms."""
    records: int = 0
    bytes: int = 0
    acked: Passed | None = None
    """The last acked batch."""
    in_flight: deque[InFlight] = field(default_factory=deque)
    in_flight_bytes: int = 0
    age_ms: Windowed = field(default_factory=Windowed)
    """How old the newest record of a batch was when it was passed on."""
    latency_ms: Windowed = field(default_factory=Windowed)
    """How old it was when the batch was acked."""

    def lag_records(self) -> int:
        """Offsets of the source that are not acked by the target yet."""
        return max(self.end - self.copied, 0)

    def lag_seconds(self, now: float) -> float:
        """How old the copy's newest record is, 0 when nothing is missing."""
        return max(now - self.timestamp / 1000, 0.0) if self.lag_records() and self.timestamp >= 0 else 0.0

    def add(self, sent: InFlight) -> None:
        """A batch is on its way."""
        if sent.max_timestamp >= 0:
            self.age_ms.record(sent.sent_at * 1000 - sent.max_timestamp)
        self.in_flight.append(sent)
        self.in_flight_bytes += sent.size

    def read_up_to(self, position: int) -> None:
        """Everything before `position` was passed on, or need not be."""
        self.position = position
        if not self.in_flight:
            self.copied = position

    def take_acks(self, now: float) -> int:
        """Take the acks that have come, in order; returns how many. Raises MirrorError for a failed one."""
        taken = 0
        while self.in_flight and self.in_flight[0].future.done():
            sent = self.in_flight.popleft()
            self.in_flight_bytes -= sent.size
            self._take_ack(sent)
            if sent.max_timestamp >= 0:
                self.latency_ms.record(now * 1000 - sent.max_timestamp)
            taken += 1
        if not self.in_flight:
            self.copied = self.position
        return taken

    def sync(self) -> OffsetSync | None:
        """Of the last acked batch; written when it is time."""
        if self.acked is None:
            return None
        return OffsetSync(
            self.tp,
            self.acked.first_offset,
            self.downstream - self.acked.records,
            self.acked.next_offset,
            self.downstream,
            self.topic_id,
            self.remote_topic_id,
            ProducerPosition(self.identity, self.sequence),
            self.leader_epoch,
        )

    def is_told(self, latest: OffsetSync | None) -> bool:
        """Whether the latest sync holds the producer id and epoch of this copy."""
        return (
            latest is not None and latest.producer is not None and (latest.producer.identity == self.identity)
        )

    def first_sync(self) -> OffsetSync:
        """The sync to write before the first record: without it a killed copy could not be continued."""
        at = (self.position, self.downstream)
        producer = ProducerPosition(self.identity, self.sequence)
        return OffsetSync(self.tp, *at, *at, self.topic_id, self.remote_topic_id, producer, self.leader_epoch)

    def forget(self) -> None:
        """Ignore what becomes of the batches in flight."""
        for sent in self.in_flight:
            sent.future.add_done_callback(lambda future: future.cancelled() or future.exception())

    def _take_ack(self, sent: InFlight) -> None:
        passed = sent.passed
        try:
            offset = sent.future.result()
        except KafkaError as e:
            raise refused(self, passed, e) from e
        if offset is None:
            raise OutOfSequence(self.tp, f"{self.remote} has the batch at {passed.first_offset} already")
        if offset != self.downstream:
            why = "it was deleted or cut back" if offset < self.downstream else "somebody else writes there"
            raise ForeignWrite(self.tp, f"{self.remote} gave offset {offset}, not {self.downstream}: {why}")
        self.downstream += passed.records
        self.sequence = (self.sequence + passed.records) & SEQUENCE_MASK
        self.acked, self.leader_epoch = passed, sent.leader_epoch
        self.copied = passed.next_offset
        self.timestamp = sent.max_timestamp
        self.records += passed.records
        self.bytes += sent.size


def refused(copy: PartitionCopy, passed: Passed, error: KafkaError) -> MirrorError:
    """Return the error to quarantine the partition with, when the target refused a batch."""
    if error.code == ErrorCode.INVALID_RECORD and (unreadable := _unreadable_in_source(copy.tp, passed)):
        return NotFetched(copy.tp, way_on(unreadable))
    kind = OutOfSequence if error.code in _OTHER_SEQUENCE else NotPassed
    return kind(copy.tp, f"{copy.remote} does not take the batch at {passed.first_offset}: {error}")


def _unreadable_in_source(tp: TopicPartition, passed: Passed) -> UnreadableBatch | None:
    """Return the error that names the batch in the source if its records cannot be read."""
    batch = memoryview(passed.batch)
    header = read_header(batch)._replace(base_offset=passed.first_offset)
    try:
        RecordReader(batch, 0, header).skip_to(header.next_offset)
    except CorruptRecordBatch as e:
        return unreadable_batch(tp, header, e)
    return None
