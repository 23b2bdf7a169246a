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

from logd.records.build import seal
from logd.records.compression import Codec, compress
from logd.records.decode import read_body
from logd.records.header import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
)
from logd.storage.cleaner.messages import Task
from logd.storage.cleaner.offset_map import OffsetMap
from logd.storage.cleaner.spans import Span, record_spans, retimed
from logd.storage.cleaner.transactions import Transactions


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
            body = read_body(batch, 0, header)
            return False, self._rebuilt(header, body, record_spans(body, header.count), True)
        return False, batch

    def _data(self, header: BatchHeader, batch: memoryview) -> Buffer | None:
        """The batch without the records whose key came again, or whose deletion has had its time."""
        body = read_body(batch, 0, header)
        spans = record_spans(body, header.count)
        base, get, latest = header.base_offset, self._get, self._latest
        horizon = header.delete_horizon
        deletions_stay = not self._is_over(header)
        has_deletions = False
        kept: list[Span] = []
        for span in spans:
            offset, key = base + span[3], span[4]
            if offset <= latest:
                if key is None or offset < get(key):
                    continue
                if not span[5] and not deletions_stay:
                    self.removal_offset = offset + 1
                    continue
            if not span[5]:
                has_deletions = True
            kept.append(span)
        self.records_kept += len(kept)
        # A deletion whose key is not in the map has not been cleaned yet: its time does not run.
        retime = has_deletions and horizon is None and header.last_offset <= latest
        if not kept:
            return None
        if len(kept) == len(spans) and not retime:
            return batch
        return self._rebuilt(header, body, kept, retime)

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

    def _rebuilt(self, header: BatchHeader, body: bytes, kept: list[Span], retime: bool) -> bytes:
        if retime:
            shift = header.base_timestamp - self._horizon
            records = b"".join([retimed(body, span, shift) for span in kept])
        else:
            records = b"".join(_runs(body, kept))
        codec = header.codec
        packed = records if codec is Codec.NONE else compress(codec, records)
        max_timestamp = header.max_timestamp
        if not header.timestamp_type:
            max_timestamp = header.base_timestamp + max([span[2] for span in kept])
        return seal(
            header._replace(
                batch_length=HEADER_SIZE - LOG_OVERHEAD + len(packed),
                attributes=header.attributes | (DELETE_HORIZON_BIT if retime else 0),
                base_timestamp=self._horizon if retime else header.base_timestamp,
                max_timestamp=max_timestamp,
                count=len(kept),
            ),
            packed,
        )


def _runs(body: bytes, kept: list[Span]) -> list[bytes]:
    """The bytes of the records, those that follow one another in one piece."""
    pieces = []
    start, stop = kept[0][0], kept[0][1]
    for span in kept:
        if span[0] > stop:
            pieces.append(body[start:stop])
            start = span[0]
        stop = span[1]
    pieces.append(body[start:stop])
    return pieces


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
