"""A partition of `__consumer_offsets`, as the coordinator core writes and reads it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from logd.broker.partition import NotYetAdmitted, Partition
from logd.errors import ErrorCode, KafkaError, MalformedMessage
from logd.groups import (
    CoordinatorRecord,
    LogEntry,
    Producing,
    Stored,
    TransactionEnd,
    decode_record,
    encode_record,
)
from logd.records import (
    ABORT,
    COMMIT,
    Codec,
    NewRecord,
    Record,
    build_batch,
    decode_records,
    iter_batches,
    parse_control,
)
from logd.records.header import NO_PRODUCER_ID

if TYPE_CHECKING:
    from logd.storage import Appended

log = logging.getLogger("logd.broker")


class GroupLog:
    """`logd.groups.RecordLog` over a partition."""

    def __init__(self, partition: Partition, codec: Codec, now_ms: Callable[[], int]) -> None:
        self._partition = partition
        self._codec = codec
        self._now_ms = now_ms
        self._last: Appended | None = None

    def append(self, records: Sequence[CoordinatorRecord]) -> int:
        """Append all of them as one batch; the offset of the first.

        KafkaError: RECORD_LIST_TOO_LARGE, or what the log says.
        """
        now_ms = self._now_ms()
        batch = build_batch(_encoded(records, now_ms), codec=self._codec)
        self._check_size(batch)
        return self._append(batch, now_ms)

    def append_in_transaction(self, records: Sequence[CoordinatorRecord], producing: Producing) -> int:
        """The same, as a batch of the producer's transaction.

        KafkaError also where the transaction's coordinator does not admit the producer, or the log knows a
        newer epoch of it; NotYetAdmitted.
        """
        now_ms = self._now_ms()
        # Coordinators write for producers without a sequence, as Kafka's do: theirs counts their own batches.
        batch = build_batch(
            _encoded(records, now_ms),
            codec=self._codec,
            producer_id=producing.producer_id,
            producer_epoch=producing.producer_epoch,
            transactional=True,
        )
        self._check_size(batch)
        self._admit(producing)
        return self._append(batch, now_ms)

    def flushed(self) -> Awaitable[None] | None:
        """What to await before whatever was appended last is acknowledged; see `Partition.flushed`."""
        return None if self._last is None else self._partition.flushed(self._last)

    def _append(self, batch: bytes, now_ms: int) -> int:
        self._last = self._partition.append(batch, now_ms)
        return self._last.base_offset

    def _admit(self, producing: Producing) -> None:
        partition = self._partition
        if partition.guard is None or partition.has_open_transaction(
            producing.producer_id, producing.producer_epoch
        ):
            return
        consent = partition.guard.admit(
            producing.transactional_id,
            producing.producer_id,
            producing.producer_epoch,
            partition.topic,
            partition.index,
            implicit=producing.implicit,
        )
        if consent is not None:
            raise NotYetAdmitted(consent)

    def _check_size(self, batch: bytes) -> None:
        limit = self._partition.max_message_bytes
        if len(batch) > limit:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(batch)} bytes for {self._partition}, at most {limit}"
            )

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to recover."""
        return self._partition.log_start_offset == self._partition.log_end_offset

    def read(self) -> Iterator[LogEntry]:
        """Everything in it, in order: records, also those of open transactions, and the transactions' ends.

        A record that cannot be read is reported and left out: the other groups have to go on.
        """
        for chunk in self._partition.read_all():
            for position, header in iter_batches(chunk):
                records = decode_records(chunk, position)
                if header.is_control:
                    yield from _ends(header.producer_id, records)
                else:
                    yield from self._decode(
                        records, header.producer_id if header.is_transactional else NO_PRODUCER_ID
                    )

    def _decode(self, records: Sequence[Record], producer_id: int) -> Iterator[LogEntry]:
        for offset, _, key, value, _ in records:
            try:
                decoded = None if key is None else decode_record(key, value)
            except MalformedMessage as error:
                log.warning("%s, offset %d cannot be read: %s", self._partition, offset, error)
                continue
            if decoded is not None:
                yield Stored(offset, decoded, producer_id)


def _encoded(records: Sequence[CoordinatorRecord], now_ms: int) -> list[NewRecord]:
    try:
        return [(now_ms, *encode_record(record), ()) for record in records]
    except ValueError as error:
        raise KafkaError(ErrorCode.RECORD_LIST_TOO_LARGE, str(error)) from None


def _ends(producer_id: int, records: Sequence[Record]) -> Iterator[TransactionEnd]:
    """The markers of a control batch, which holds one; compaction may have left none."""
    for _, _, key, _, _ in records:
        kind = parse_control(key)[1]
        if kind in (ABORT, COMMIT):
            yield TransactionEnd(producer_id, kind == COMMIT)
