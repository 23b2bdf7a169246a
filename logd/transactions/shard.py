"""The transaction coordinator of one partition, without sockets, threads or clocks.

Every call decides, appends its decision to the log, and only then returns. Markers of transactions whose
outcome is in the log are `owed`: the caller writes them, reports each one (`marker_written`), and calls
`complete`.

    load(record)... ──▶ init_producer / add_partitions / end ──▶ the producer's identity
                        timed_out, abort_timed_out, expired, forget: every so often
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.transactions import ending, membership, producers
from logd.transactions.identity import ProducerIdentity
from logd.transactions.records import TransactionRecord
from logd.transactions.settings import TransactionSettings
from logd.transactions.states import RESTING, TransactionState
from logd.transactions.store import RecordLog, TransactionStore
from logd.transactions.transaction import (
    Transaction,
    TransactionDescription,
)

EXPIRED_PER_BATCH = 25
"""Most tombstones in one batch: even with ids of the longest kind it fits into max.message.bytes."""


class TransactionShard:
    """The transactional ids of partition `index` of `__transaction_state`.

    `new_producer_id` returns an unused producer id; it must have one available at every call of this class.
    """

    def __init__(
        self,
        index: int,
        log: RecordLog,
        settings: TransactionSettings,
        new_producer_id: Callable[[], int],
    ) -> None:
        self.index = index
        self._store = TransactionStore(log)
        self._settings = settings
        self._new_producer_id = new_producer_id

    def load(self, record: TransactionRecord, offset: int) -> None:
        """Replay one record of the log."""
        self._store.replay(record, offset)

    def __len__(self) -> int:
        return len(self._store.transactions)

    # Producers' requests; a transactional id is never empty here

    def init_producer(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdentity | None, now_ms: int
    ) -> ProducerIdentity:
        """Handle InitProducerId; return the producer's identity.

        Raises KafkaError(INVALID_TRANSACTION_TIMEOUT), (PRODUCER_FENCED) and (CONCURRENT_TRANSACTIONS). The
        last one is also raised if a transaction was open: its abort is decided then.
        """
        if not 0 < timeout_ms <= self._settings.transaction_max_timeout_ms:
            raise KafkaError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"a timeout of {timeout_ms} ms, at most {self._settings.transaction_max_timeout_ms} ms "
                "are allowed (transaction.max.timeout.ms)",
            )
        current = self._store.transactions.get(transactional_id)
        if current is None:
            decided = producers.first(transactional_id, timeout_ms, self._new_producer_id(), now_ms)
        else:
            decided = producers.initialised(current, timeout_ms, expected, self._new_producer_id, now_ms)
        self._store.write(decided)
        if decided.state is not TransactionState.EMPTY:
            raise KafkaError(
                ErrorCode.CONCURRENT_TRANSACTIONS, f"the open transaction of {transactional_id} is aborted"
            )
        return decided.identity

    def add_partitions(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        partitions: Collection[TopicPartition],
        *,
        client_version: int,
        now_ms: int,
    ) -> None:
        """Handle AddPartitionsToTxn; raises KafkaError as `membership.added` does."""
        current = self._find(transactional_id, identity)
        decided = membership.added(
            current, identity, partitions, client_version=client_version, now_ms=now_ms
        )
        if decided is not None:
            self._store.write(decided)

    def verify_partitions(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, ErrorCode]:
        """Handle an AddPartitionsToTxn that only verifies; raises KafkaError as `membership.verified`
        does.
        """
        return membership.verified(self._find(transactional_id, identity), identity, partitions)

    def end(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        *,
        commit: bool,
        client_version: int,
        now_ms: int,
    ) -> ProducerIdentity:
        """Handle EndTxn; return the producer's next identity. Raises KafkaError as `ending.ended` does."""
        current = self._find(transactional_id, identity)
        decided = ending.ended(
            current,
            identity,
            commit=commit,
            client_version=client_version,
            new_producer_id=self._new_producer_id,
            now_ms=now_ms,
        )
        if decided is None:
            return current.identity
        self._store.write(decided)
        return ending.identity_after(decided)

    # Decided outcomes

    @property
    def undone(self) -> Sequence[str]:
        """The transactional ids whose outcome is decided but not complete."""
        return tuple(self._store.owed)

    def is_decided(self, transactional_id: str) -> bool:
        """Return True if the id's outcome is decided but not complete."""
        return transactional_id in self._store.owed

    def owed(self, transactional_id: str) -> tuple[Transaction, Sequence[TopicPartition]] | None:
        """Return the id's decided transaction, with the partitions that lack its marker; None if none is
        decided.
        """
        owed = self._store.owed.get(transactional_id)
        return None if owed is None else (self._store.transactions[transactional_id], tuple(owed))

    def number_of(self, transactional_id: str) -> int:
        """Return the number of a transaction that is `owed` markers.

        It is higher than those of the id's earlier transactions, and the same after a reload.
        """
        return self._store.numbers[transactional_id]

    def marker_written(self, transactional_id: str, partition: TopicPartition) -> None:
        """Record that a partition has its marker, or no longer needs one."""
        self._store.owed[transactional_id].pop(partition, None)

    def complete(self, transactional_id: str, now_ms: int) -> None:
        """Write to the transaction log that the transaction is complete.

        Do nothing while a partition of the transaction has no marker yet. Raises KafkaError if the log cannot
        be written.
        """
        if not self._store.owed[transactional_id]:
            current = self._store.transactions[transactional_id]
            self._store.write(ending.completed(current, now_ms))

    # Housekeeping

    def timed_out(self, now_ms: int) -> Sequence[str]:
        """Return the transactional ids whose transaction has been open for longer than its timeout."""
        return [transaction.transactional_id for transaction in self._store.timed_out(now_ms)]

    def abort_timed_out(self, transactional_id: str, now_ms: int) -> bool:
        """Decide to abort a transaction and fence its producer; return False if it has ended meanwhile."""
        if transactional_id not in self._store.ongoing:
            return False
        current = self._store.transactions[transactional_id]
        self._store.write(producers.fenced(current, self._new_producer_id, now_ms))
        return True

    def expired(self, now_ms: int) -> Sequence[str]:
        """Return the ids without a transaction for transactional.id.expiration.ms."""
        return [
            transaction.transactional_id
            for transaction in self._store.transactions.values()
            if self._is_expired(transaction, now_ms)
        ]

    def forget(self, transactional_ids: Sequence[str], now_ms: int) -> None:
        """Remove ids, at most `EXPIRED_PER_BATCH`, unless they have been used since `expired` returned
        them.
        """
        transactions = self._store.transactions
        still = [
            one
            for one in transactional_ids
            if one in transactions and self._is_expired(transactions[one], now_ms)
        ]
        if still:
            self._store.forget(still)

    def _is_expired(self, transaction: Transaction, now_ms: int) -> bool:
        age_ms = now_ms - transaction.updated_ms
        return transaction.state in RESTING and age_ms >= self._settings.transactional_id_expiration_ms

    # Descriptions

    def describe(self, transactional_id: str) -> TransactionDescription:
        """Return the description of one id; raises KafkaError(TRANSACTIONAL_ID_NOT_FOUND)."""
        current = self._store.transactions.get(transactional_id)
        if current is None:
            raise KafkaError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, f"nobody knows {transactional_id}")
        return self._described(current)

    def listed(self) -> Iterator[TransactionDescription]:
        """Yield the description of every id."""
        return map(self._described, self._store.transactions.values())

    def _described(self, transaction: Transaction) -> TransactionDescription:
        owed = self._store.owed.get(transaction.transactional_id)
        return TransactionDescription(
            transactional_id=transaction.transactional_id,
            coordinator_partition=self.index,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            state=transaction.state,
            timeout_ms=transaction.timeout_ms,
            started_ms=transaction.started_ms,
            updated_ms=transaction.updated_ms,
            partitions=tuple(sorted(transaction.partitions) if owed is None else owed),
        )

    def _find(self, transactional_id: str, identity: ProducerIdentity) -> Transaction:
        current = self._store.transactions.get(transactional_id)
        if current is None:
            raise ending.unknown_producer(transactional_id, identity)
        return current
