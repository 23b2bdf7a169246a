"""State of one partition's copy: what was read, what is in flight, what the target has acknowledged.

`source` fetches and produces; `position` computes where a copy begins.
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
from mirror.source_log import SourceLog
from mirror.unreadable import explain_unreadable

_OTHER_SEQUENCE = (
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
)


NO_SYNC = -1


@dataclass(slots=True)
class InFlight:
    """A batch that was sent at `sent_at`, in seconds; `future` is its acknowledgement."""

    passed: Passed
    size: int
    max_timestamp: int
    leader_epoch: int
    sent_at: float
    future: asyncio.Future[int | None]


@dataclass(slots=True, kw_only=True)
class PartitionCopy:
    """The copy of one partition. `upstream` offsets are the source's, `downstream` the target's."""

    tp: TopicPartition
    remote: TopicPartition
    position: int
    """Next upstream offset to read."""
    downstream: int
    """Downstream offset that the next batch to be acknowledged must get."""
    identity: Identity
    """The producer id and epoch of the batches sent to the target."""
    sequence: int
    """The sequence number of the next record to be acked."""
    topic_id: bytes = NO_ID
    remote_topic_id: bytes = NO_ID
    end: int = -1
    """The source's last stable offset, from the latest fetch."""
    source: SourceLog = field(default_factory=SourceLog)
    """The source's answers to requests for the partition's end."""
    copied: int = -1
    """Upstream offset after the last acknowledged batch."""
    run_start: int
    """First upstream offset of the run that was copied last (see `offsets`)."""
    run_end: int
    """Upstream offset after the run. Gaps that follow move `copied`, but not the end of the run."""
    leader_epoch: int = NO_EPOCH
    """Leader epoch, in the source, of the last acknowledged batch: shows if the source loses it (KIP-320)."""
    records: int = 0
    bytes: int = 0
    acked: Passed | None = None
    """The last acknowledged batch."""
    synced: int = NO_SYNC
    """Downstream offset of the last sync, -1 if this copy has written none."""
    in_flight: deque[InFlight] = field(default_factory=deque)
    in_flight_bytes: int = 0
    age_ms: Windowed = field(default_factory=Windowed)
    """Age of each batch's newest record when the batch was sent, in ms."""
    latency_ms: Windowed = field(default_factory=Windowed)
    """Age of each batch's newest record when the batch was acknowledged, in ms."""
    recent_records: Windowed = field(default_factory=Windowed)
    """Number of records in each acknowledged batch."""
    recent_bytes: Windowed = field(default_factory=Windowed)
    """Size of each acknowledged batch in the source."""

    def lag_records(self) -> int | None:
        """Return how many offsets of the source the target has not acknowledged yet, or None if unknown."""
        return self.source.lag_records(self.copied, self.end)

    def lag_seconds(self, now: float) -> float | None:
        """Return how long ago the target had everything, 0 if it has everything now, or None if unknown."""
        return self.source.lag_seconds(self.copied, self.end, now)

    def rpo_seconds(self, now: float) -> float | None:
        """Return how many seconds of records a failover could lose at most now, or None if unknown."""
        return self.source.rpo_seconds(self.copied, now)

    def add(self, sent: InFlight) -> None:
        """Add a batch that was sent."""
        if sent.max_timestamp >= 0:
            self.age_ms.record(sent.sent_at * 1000 - sent.max_timestamp)
        self.in_flight.append(sent)
        self.in_flight_bytes += sent.size

    def read_up_to(self, position: int) -> None:
        """Set the position: everything before it was sent, or need not be."""
        self.position = position
        if not self.in_flight:
            self.copied = position

    def take_acks(self, now: float) -> int:
        """Handle the acknowledgements that have arrived, in order. Return how many.

        Raises MirrorError if a batch was refused.
        """
        count = 0
        while self.in_flight and self.in_flight[0].future.done():
            sent = self.in_flight.popleft()
            self.in_flight_bytes -= sent.size
            self._take_ack(sent)
            if sent.max_timestamp >= 0:
                self.latency_ms.record(now * 1000 - sent.max_timestamp)
            count += 1
        if not self.in_flight:
            self.copied = self.position
        return count

    def offset_lag(self) -> int:
        """Return how many downstream offsets were acknowledged that the last sync does not translate.

        A sync translates its own offset and the one after.
        """
        return 0 if self.acked is None else self.downstream - 1 - (self.synced + 1)

    def sync(self) -> OffsetSync | None:
        """Return the sync of the last acknowledged batch, or None if there is no such batch."""
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
            self.run_start,
        )

    def is_identity_synced(self, latest: OffsetSync | None) -> bool:
        """Return True if the latest sync has the producer id and epoch of this copy, and its topics' ids."""
        return (
            latest is not None
            and latest.producer is not None
            and latest.producer.identity == self.identity
            and (latest.topic_id, latest.remote_topic_id) == (self.topic_id, self.remote_topic_id)
        )

    def first_sync(self, first: Passed) -> OffsetSync:
        """Return the sync to write before the first batch; a killed copy cannot be resumed without one.

        MirrorMaker expects the offset of a record in a sync, and there may be none at the position.
        """
        return OffsetSync(
            self.tp,
            first.first_offset,
            self.downstream,
            self.position,
            self.downstream,
            self.topic_id,
            self.remote_topic_id,
            ProducerPosition(self.identity, self.sequence),
            self.leader_epoch,
            self.run_start if self.run_end == self.position else self.position,
        )

    def forget(self) -> None:
        """Ignore the results of the batches in flight."""
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
        self._extend_run(passed)
        self.downstream += passed.records
        self.sequence = (self.sequence + passed.records) & SEQUENCE_MASK
        self.acked, self.leader_epoch = passed, sent.leader_epoch
        self.copied = passed.next_offset
        self.records += passed.records
        self.bytes += sent.size
        self.recent_records.record(passed.records)
        self.recent_bytes.record(sent.size)

    def _extend_run(self, passed: Passed) -> None:
        """Add a batch to the run, or begin another run after a gap. Call before `downstream` changes."""
        if passed.next_offset - passed.first_offset != passed.records:
            self.run_start = passed.next_offset  # which of the batch's offsets have records is not kept
        elif passed.first_offset != self.run_end:
            self.run_start = passed.first_offset
        self.run_end = passed.next_offset


def refused(copy: PartitionCopy, passed: Passed, error: KafkaError) -> MirrorError:
    """Return the error to quarantine the partition with, when the target refused a batch."""
    if error.code == ErrorCode.INVALID_RECORD and (unreadable := _unreadable_in_source(copy.tp, passed)):
        return NotFetched(copy.tp, explain_unreadable(unreadable))
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
