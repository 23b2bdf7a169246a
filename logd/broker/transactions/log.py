"""A partition of `__transaction_state`, as the coordinator core writes and reads it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from logd.broker.coordinator_log import CoordinatorLog
from logd.broker.partition import Partition
from logd.errors import ErrorCode, KafkaError
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
        self._log = CoordinatorLog(partition, now_ms)

    @property
    def leader_epoch(self) -> int:
        """The coordinator epoch of what is written here."""
        return self._partition.leader_epoch

    @property
    def last(self) -> Appended | None:
        """Where the last records went."""
        return self._log.last

    def append(self, records: Sequence[TransactionRecord]) -> None:
        """Append all of them as one batch. KafkaError with the code the producer is to be answered with."""
        try:
            self._log.append([encode_record(record) for record in records])
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
        return self._log.flushed(appended)

    @property
    def waits_for_disk(self) -> bool:
        """Whether appends may have to wait before they are acknowledged."""
        return self._partition.holds_back

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to recover."""
        return self._log.is_empty

    def read(self) -> Iterator[TransactionRecord]:
        """Everything there is, in order. A record that cannot be read is reported and left out.

        An unclean stop begins a leader epoch: what was written before it may lack what came after.
        """
        for header, records in self._log.batches():
            if header.is_control:
                continue
            is_behind = header.partition_leader_epoch < self.leader_epoch
            for _, record in self._log.decoded(records, decode_record):
                yield _behind(record) if is_behind else record


def _behind(record: TransactionRecord) -> TransactionRecord:
    transactional_id, transaction = record
    if transaction is None:
        return record
    return TransactionRecord(transactional_id, replace(transaction, may_be_behind=True))
