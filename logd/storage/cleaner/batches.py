"""The filter that compaction applies to batches: a batch stays whole, is shortened or emptied, or is removed.

A rebuilt batch keeps its base and last offset, producer, epoch, sequence and codec. Remaining records are
copied as bytes. Besides the keys, two rules apply:

- Deletions (records with a key and no value) stay for `delete.retention.ms` after they were first cleaned, as
  do markers of transactions without remaining batches. The end of that time is stored in the batch:
  attribute bit 6 is set, the base timestamp is that time, and the records' deltas start there (KIP-534). They
  stay longer if a replica that is being copied has not reached them (`Task.removable_to`).
- The batch with an active producer's last sequence stays, if necessary without records. So does the last
  batch before the last stable offset: while nothing follows it, no other batch tells readers where the log
  ends (KAFKA-17076).
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
    """Return a reader of a batch. It also raises CorruptRecordBatch if a record is larger than allowed."""
    limit = task.record_bytes_max if header.attributes & CODEC_MASK else RECORD_BYTES_MAX
    return RecordReader(batch, 0, header, record_limit=limit)


class BatchFilter:
    """The filter for the batches of one log, which must be passed in the order of their offsets."""

    def __init__(self, task: Task, offsets: OffsetMap, transactions: Transactions) -> None:
        self.records_read = self.records_kept = 0
        self.removal_offset = 0
        """1 + the highest offset of a removed deletion or marker; 0 if none was removed."""
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
        """Return what to keep of a batch, `batch` itself if all of it stays; None if nothing stays.

        Raises CorruptRecordBatch.
        """
        self.records_read += header.count
        if header.is_control:
            discard, remaining = self._control(header, batch)
        else:
            discard = self._transactions.data(header)
            remaining = None if discard or not header.count else self._data(header, batch)
        if remaining is not None:
            return remaining
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
            retained = _KeptRecords()
            reader = records_of(self._task, header, batch)
            while spans := reader.spans():
                retained.add(spans, reader.piece)
            return False, self._rebuilt(header, retained, True)
        return False, batch

    def _data(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """Return the batch without superseded records, and without deletions whose time is over; None if no
        record stays.
        """
        get, latest = self._get, self._latest
        deletions_stay = not self._is_over(header)
        has_deletions = False
        retained = _KeptRecords()
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
            retained.add(kept_spans, reader.piece)
        self.records_kept += retained.count
        # A deletion whose key is not in the map has not been cleaned yet: its time has not started.
        retimed = has_deletions and header.delete_horizon is None and header.last_offset <= latest
        if not retained.count:
            return None
        if retained.count == header.count and not retimed:
            return batch
        return self._rebuilt(header, retained, retimed)

    def _is_over(self, header: BatchHeader) -> bool:
        """Return True if the batch's deletions or marker may be removed.

        Their time must be over, and no replica that is still being copied may need them.
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
        # Only a marker of the producer is left: it has the epoch that fences older ones.
        return header.is_control and header.producer_epoch == epoch

    def _rebuilt(self, header: BatchHeader, retained: _KeptRecords, retimed: bool) -> bytes:
        records = bytes(retained.records)
        if retimed:
            records = retime(records, header.base_timestamp - self._horizon)
        packed = compress(header.codec, records)
        return seal(
            header._replace(
                batch_length=HEADER_SIZE - LOG_OVERHEAD + len(packed),
                attributes=header.attributes | (DELETE_HORIZON_BIT if retimed else 0),
                base_timestamp=self._horizon if retimed else header.base_timestamp,
                max_timestamp=header.max_timestamp if header.timestamp_type else retained.max_timestamp,
                count=retained.count,
            ),
            packed,
        )


class _KeptRecords:
    """The remaining records of one batch, as bytes."""

    def __init__(self) -> None:
        self.records = bytearray()
        self.count = 0
        self.max_timestamp = NO_TIMESTAMP

    def add(self, spans: list[Span], piece: Buffer) -> None:
        """Add records of one piece of the batch; neighbouring ones are copied together."""
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
    """Return the batch without records, as Kafka's `writeEmptyHeader` writes it."""
    return seal(
        header._replace(
            batch_length=HEADER_SIZE - LOG_OVERHEAD,
            attributes=header.attributes & ~(CODEC_MASK | DELETE_HORIZON_BIT),
            base_timestamp=NO_TIMESTAMP,
            count=0,
        ),
        b"",
    )
