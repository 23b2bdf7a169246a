"""The state of one coordinator partition, and the one way it changes: append records, then replay them.

Live traffic and recovery run through `replay`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from kafka_client.topic_partition import TopicPartition
from logd.transactions.records import TransactionRecord
from logd.transactions.states import PREPARED, TransactionState
from logd.transactions.transaction import Transaction


class RecordLog(Protocol):
    """The partition of `__transaction_state` a coordinator appends to."""

    def append(self, records: Sequence[TransactionRecord]) -> int:
        """Append all of them, or none and raise KafkaError. Return the first one's offset."""


class TransactionStore:
    """The transactional ids of one coordinator partition.

    Invariants: `ongoing` holds exactly the ids in state Ongoing; `owed` exactly those whose outcome is
    decided, each with the partitions that have not got their marker yet; `numbers` the same ids, each with
    the offset of the decision's record. It grows from one transaction of an id to the next.
    """

    def __init__(self, log: RecordLog) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.ongoing: dict[str, None] = {}
        self.owed: dict[str, dict[TopicPartition, None]] = {}
        self.numbers: dict[str, int] = {}
        self._log = log

    def write(self, *decided: Transaction) -> None:
        """Append and replay; KafkaError, and nothing changed, when the log does not take them."""
        self._write([TransactionRecord(one.transactional_id, one) for one in decided])

    def forget(self, transactional_ids: Sequence[str]) -> None:
        """Write tombstones; as `write`."""
        self._write([TransactionRecord(one, None) for one in transactional_ids])

    def _write(self, records: Sequence[TransactionRecord]) -> None:
        first = self._log.append(records)
        for offset, record in enumerate(records, first):
            self.replay(record, offset)

    def replay(self, record: TransactionRecord, offset: int) -> None:
        """Apply a record stored at `offset`."""
        transactional_id, transaction = record
        self.ongoing.pop(transactional_id, None)
        self.owed.pop(transactional_id, None)
        self.numbers.pop(transactional_id, None)
        if transaction is None:
            self.transactions.pop(transactional_id, None)
            return
        self.transactions[transactional_id] = transaction
        if transaction.state is TransactionState.ONGOING:
            self.ongoing[transactional_id] = None
        elif transaction.state in PREPARED:
            self.owed[transactional_id] = dict.fromkeys(sorted(transaction.partitions))
            self.numbers[transactional_id] = offset

    def timed_out(self, now_ms: int) -> Iterator[Transaction]:
        """Yield the transactions that have been open for longer than their timeout."""
        for transactional_id in self.ongoing:
            transaction = self.transactions[transactional_id]
            if transaction.started_ms + transaction.timeout_ms < now_ms:
                yield transaction
