"""A partition of `__transaction_state`, as the coordinator core writes and reads it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from logd.broker.partition import Partition
from logd.errors import ErrorCode, KafkaError, MalformedMessage
from logd.records import build_batch, decode_records, iter_batches
from logd.transactions import TransactionRecord, decode_record, encode_record

if TYPE_CHECKING:
    from logd.storage import Appended

log = logging.getLogger("logd.broker")

_ANSWERS = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""What a producer is told when the log refuses a record; COORDINATOR_NOT_AVAILABLE for any other code."""


class TxnLog:
    """`logd.transactions.RecordLog` over a partition. Never compressed, as in Apache Kafka."""

    def __init__(self, partition: Partition, now_ms: Callable[[], int]) -> None:
        self._partition = partition
        self._now_ms = now_ms
        self.last: Appended | None = None
        """Where the last records went."""

    @property
    def leader_epoch(self) -> int:
        """The coordinator epoch of what is written here."""
        return self._partition.leader_epoch

    def append(self, records: Sequence[TransactionRecord]) -> None:
        """Append all of them as one batch. KafkaError with the code the producer is to be answered with."""
        now_ms = self._now_ms()
        try:
            batch = build_batch([(now_ms, *encode_record(record), ()) for record in records])
            limit = self._partition.max_message_bytes
            if len(batch) > limit:
                raise KafkaError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"{len(batch)} bytes for {self._partition}, at most {limit}",
                )
            self.last = self._partition.append(batch, now_ms)
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
        except KafkaError as error:
            log.error("%s: a record of the coordinator is not written: %s", self._partition, error)
            code = _ANSWERS.get(error.code, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            raise KafkaError(code, error.message) from error

    def flushed(self, appended: Appended | None = None) -> Awaitable[None] | None:
        """What to await until that, or all there is, is on the disk, by flush.messages; mostly nothing.

        Awaiting raises KafkaError if the disk fails.
        """
        appended = appended or self.last
        return None if appended is None else self._partition.flushed(appended)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to recover."""
        return self._partition.log_start_offset == self._partition.log_end_offset

    def read(self) -> Iterator[TransactionRecord]:
        """Everything there is, in order. A record that cannot be read is reported and left out."""
        for chunk in self._partition.read_all():
            for position, header in iter_batches(chunk):
                if header.is_control:
                    continue
                for offset, _, key, value, _ in decode_records(chunk, position):
                    try:
                        decoded = None if key is None else decode_record(key, value)
                    except MalformedMessage as error:
                        log.warning("%s, offset %d cannot be read: %s", self._partition, offset, error)
                        continue
                    if decoded is not None:
                        yield decoded
