"""What compaction leaves of a batch: the same bytes, a shorter batch, one without records, or nothing.

A batch rebuilt keeps its base and last offset, producer, epoch, sequence and codec; records that stay are
copied as bytes. Two things besides the keys decide:

- A deletion (a record with a key and no value), or a transaction marker nothing is left of, stays for
  `delete.retention.ms` after it was first cleaned. Until when, is written into the batch: attribute bit 6 is
  set and the base timestamp is that time, the records' deltas counting from there (KIP-534). It stays for
  longer where a replica that is being copied has not come so far (`Task.removable_to`).
- The batch with an active producer's last sequence stays, if need be without records, and so does the last
  one before the last stable offset: as long as nothing follows, no other tells readers how far the log goes
  (KAFKA-17076).
"""

from __future__ import annotations

from kafka_client.records.build import seal
from kafka_client.records.compression import compress
from kafka_client.records.header import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
)
from kafka_client.records.reader import RecordReader, Span
from logd.storage.cleaner.messages import RECORD_BYTES_MAX, Task
from logd.storage.cleaner.offset_map import OffsetMap
from logd.storage.cleaner.retiming import retime
from logd.storage.cleaner.transactions import Transactions


def records_of(task: Task, header: BatchHeader, batch: memoryview) -> RecordReader:
    """Return a reader of a batch. It raises CorruptRecordBatch also if a record is larger than allowed."""
    limit = task.record_bytes_max if header.attributes & CODEC_MASK else RECORD_BYTES_MAX
    return RecordReader(batch, 0, header, record_limit=limit)


class BatchFilter:
    """Decides over the batches of one log, given in the order of their offsets."""

    def __init__(self, task: Task, offsets: OffsetMap, transactions: Transactions) -> None:
        self.records_read = self.records_kept = 0
        self.removal_offset = 0
        """1 + the highest offset of a deletion or marker that was not kept; 0 if all were."""
        self._get = offsets.get
        self._latest = offsets.latest
        self._transactions = transactions
        self._producers = {producer: (last, epoch) for producer, last, epoch in task.producers}
        self._last_stable_offset = task.last_stable_offset
        self._now_ms = task.now_ms
        self._removable_to = task.removable_to
        self._task = task
        self._horizon = task.now_ms + task.delete_retention_ms

    def filter(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The bytes to keep of a batch, `batch` itself if all of it stays; None if nothing does.

        Raises CorruptRecordBatch.
        """
        self.records_read += header.count
        if header.is_control:
            discard, kept = self._control(header, batch)
        else:
            discard = self._transactions.data(header)
            kept = None if discard or not header.count else self._data(header, batch)
        if kept is not None:
            return kept
        if header.next_offset == self._last_stable_offset or self._is_last_of_producer(header):
            return batch if not header.count else _empty(header)
        return None

    def _control(self, header: BatchHeader, batch: memoryview) -> tuple[bool, Buffer | None]:
        may_go = self._transactions.control(header, batch)
        horizon = header.delete_horizon
        if not header.count:
            return True, None
        if may_go and self._is_over(header):
            self.removal_offset = header.next_offset
            return True, None
        self.records_kept += header.count
        if may_go and horizon is None:
            kept = _KeptRecords()
            reader = records_of(self._task, header, batch)
            while spans := reader.spans():
                kept.add(spans, reader.piece)
            return False, self._rebuilt(header, kept, True)
        return False, batch

    def _data(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The batch without the records whose key came again, or whose deletion has had its time."""
        get, latest = self._get, self._latest
        deletions_stay = not self._is_over(header)
        has_deletions = False
        kept = _KeptRecords()
        reader = records_of(self._task, header, batch)
        while spans := reader.spans():
            kept_spans: list[Span] = []
            for span in spans:
                _, _, offset, _, key, has_value = span
                if offset <= latest:
                    if key is None or offset < get(key):
                        continue
                    if not has_value and not deletions_stay:
                        self.removal_offset = offset + 1
                        continue
                if not has_value:
                    has_deletions = True
                kept_spans.append(span)
            kept.add(kept_spans, reader.piece)
        self.records_kept += kept.count
        # A deletion whose key is not in the map has not been cleaned yet: its time does not run.
        retimed = has_deletions and header.delete_horizon is None and header.last_offset <= latest
        if not kept.count:
            return None
        if kept.count == header.count and not retimed:
            return batch
        return self._rebuilt(header, kept, retimed)

    def _is_over(self, header: BatchHeader) -> bool:
        """Return True if the batch's deletions or marker may go: their time is over, and no replica that is
        behind may still need them.
        """
        horizon = header.delete_horizon
        return horizon is not None and horizon <= self._now_ms and header.last_offset < self._removable_to

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self._producers.get(header.producer_id) if header.producer_id >= 0 else None
        if last is None:
            return False
        offset, epoch = last
        if offset >= 0:
            return header.last_offset == offset
        # Nothing but a marker is known of the producer: it holds the epoch that fences.
        return header.is_control and header.producer_epoch == epoch

    def _rebuilt(self, header: BatchHeader, kept: _KeptRecords, retimed: bool) -> bytes:
        records = bytes(kept.records)
        if retimed:
            records = retime(records, header.base_timestamp - self._horizon)
        packed = compress(header.codec, records)
        return seal(
            header._replace(
                batch_length=HEADER_SIZE - LOG_OVERHEAD + len(packed),
                attributes=header.attributes | (DELETE_HORIZON_BIT if retimed else 0),
                base_timestamp=self._horizon if retimed else header.base_timestamp,
                max_timestamp=header.max_timestamp if header.timestamp_type else kept.max_timestamp,
                count=kept.count,
            ),
            packed,
        )


class _KeptRecords:
    """The records of one batch that stay, as bytes."""

    def __init__(self) -> None:
        self.records = bytearray()
        self.count = 0
        self.max_timestamp = NO_TIMESTAMP

    def add(self, spans: list[Span], piece: Buffer) -> None:
        """Add records of one piece of the batch, those that follow one another in one copy."""
        if not spans:
            return
        self.count += len(spans)
        self.max_timestamp = max(self.max_timestamp, max([span[3] for span in spans]))
        view = memoryview(piece)
        start, stop = spans[0][0], spans[0][1]
        for span in spans:
            if span[0] > stop:
                self.records += view[start:stop]
                start = span[0]
            stop = span[1]
        self.records += view[start:stop]


def _empty(header: BatchHeader) -> bytes:
    """The batch without records, as Kafka's `writeEmptyHeader` has it."""
    return seal(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
            base_timestamp=NO_TIMESTAMP,
            count=0,
        ),
        b"",
    )
