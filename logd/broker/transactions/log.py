"""A partition of `__transaction_state`, as the coordinator core writes and reads it."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from logd.broker.coordinators.coordinator_log import CoordinatorLog
from logd.broker.partition.partition import Partition
from logd.transactions import TransactionRecord, decode_record, encode_record

if TYPE_CHECKING:
    from logd.storage import Appended

log = logging.getLogger("logd.broker")

_ANSWERS = {
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
"""Error codes for a producer when the log refuses a record; COORDINATOR_NOT_AVAILABLE for all others."""


class TxnLog:
    """`logd.transactions.RecordLog` over a partition. Never compressed, as in Apache Kafka.

    `is_complete`: of what was acknowledged before this broker was elected nothing is missing.
    """

    def __init__(self, partition: Partition, now_ms: Callable[[], int], *, is_complete: bool = False) -> None:
        self._partition = partition
        self._log = CoordinatorLog(partition, now_ms)
        self._is_complete = is_complete

    @property
    def leader_epoch(self) -> int:
        """The coordinator epoch of the markers: the partition's leader epoch at the election.

        A leader that was elected again must not give its new epoch to decisions of an older term.
        """
        return self._log.leader_epoch

    @property
    def last(self) -> Appended | None:
        """Where the last records went."""
        return self._log.last

    def append(self, records: Sequence[TransactionRecord]) -> int:
        """Append all of them as one batch. Return the first one's offset.

        Raises KafkaError with the code the producer is to be answered with.
        """
        try:
            return self._log.append([encode_record(record) for record in records])
        except ValueError as error:
            raise KafkaError(ErrorCode.INVALID_REQUEST, str(error)) from None
        except KafkaError as error:
            log.error("%s: a record of the coordinator is not written: %s", self._partition, error)
            code = _ANSWERS.get(error.code, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            raise KafkaError(code, error.message) from error

    def flushed(self, appended: Appended | None = None) -> Awaitable[None] | None:
        """Return an awaitable that ends when `appended`, or the last append, is committed; None if it is."""
        return self._log.flushed(appended)

    def is_committed(self, appended: Appended | None = None) -> bool:
        """Return True if `appended`, or the last append, is committed; the usual case without flush.messages
        and replicas.
        """
        return self._log.is_committed(appended)

    def on_deposed(self, deposed: Callable[[], None]) -> None:
        """Set what is called when another broker turns out to lead the partition."""
        self._log.on_deposed = deposed

    def close(self) -> None:
        """Append nothing any more; requests that await `flushed` are answered with NOT_COORDINATOR."""
        self._log.close()

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to recover."""
        return self._log.is_empty

    def read(self) -> Iterator[tuple[int, TransactionRecord]]:
        """Yield the log's records with their offsets. A record that cannot be read is reported and left out.

        An unclean stop begins a leader epoch: what was written before it may lack what came after. So does
        an election, after which nothing is missing unless it was unclean.
        """
        for header, records in self._log.batches():
            if header.is_control:
                continue
            is_behind = not self._is_complete and header.partition_leader_epoch < self.leader_epoch
            for offset, record in self._log.decoded(records, decode_record):
                yield offset, _behind(record) if is_behind else record


def _behind(record: TransactionRecord) -> TransactionRecord:
    transactional_id, transaction = record
    if transaction is None:
        return record
    return TransactionRecord(transactional_id, replace(transaction, may_be_behind=True))
