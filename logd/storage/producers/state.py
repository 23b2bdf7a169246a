"""The state of a log's idempotent and transactional producers (KIP-98, KIP-360, KIP-890).

A producer numbers its records; the next batch must start where its last one ended. The last five batches of
each producer are remembered, since five may be in flight. One of them that is sent again is a duplicate, and
is answered with its first offsets. An unknown producer (new, expired, or its records deleted) may start with
any number.

A transaction starts with a producer's first transactional batch. It ends with a marker, which may set the
producer's next epoch. Until the high watermark is after the marker, the transaction is unstable. Readers of
committed records wait at the first offset of the first unstable transaction.

    open transactions  =  producers with a txn_first_offset  ⊆  unstable transactions
    unstable transactions are in the order of their first offsets, since they are added as they start

The rows of a snapshot are kept packed, so that taking one only packs changes since the last. The bytes of
rows and snapshots are in `row` and `snapshot`. The broker assigns producer ids and decides how transactions
end; `snapshots` and `log` decide when snapshots are taken.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import NamedTuple

from kafka_client.errors import ErrorCode, KafkaError, error_for
from kafka_client.records.header import NO_SEQUENCE, TRANSACTIONAL_BIT, BatchHeader
from logd.storage.producers.producer import (
    NO_NUMBER,
    NO_TRANSACTION,
    SEQUENCE_MASK,
    BatchMemo,
    MarkerMemo,
    Producer,
)
from logd.storage.producers.row import pack_row

EPOCH_BUMP_VERSION = 2
"""The transaction version (KIP-890) from which on every marker has a newer epoch than its records."""
PACKED_AT = 256
"""Changed producers that are packed at one time: a snapshot never has to pack more."""


class EndedTransaction(NamedTuple):
    """A transaction that a marker ended; `last_stable_offset` counts it as ended and replicated."""

    first_offset: int
    last_stable_offset: int


class ProducerState:
    """The producers of one log, by producer id.

    `first_unstable_offset` is the first offset of the first unstable transaction, None without one.
    """

    __slots__ = ("_changed", "_ended", "_rows", "_unstable", "first_unstable_offset", "producers")

    def __init__(
        self, producers: dict[int, Producer] | None = None, rows: dict[int, bytes] | None = None
    ) -> None:
        """Start with `producers`; `rows` are those of the snapshot that they are from, if any."""
        self.producers: dict[int, Producer] = producers or {}
        self._rows = rows if rows is not None else {}
        self._changed = set() if rows is not None else set(self.producers)
        # First offset → producer id while the transaction is open, then None. An OrderedDict finds its first
        # key at once, even after many deletions.
        self._unstable: OrderedDict[int, int | None] = OrderedDict(
            sorted(
                (producer.txn_first_offset, producer_id)
                for producer_id, producer in self.producers.items()
                if producer.txn_first_offset >= 0
            )
        )
        self._ended: deque[tuple[int, int]] = deque()
        """(marker's offset, first offset) of the ended transactions that are still unstable, in the log's
        order.
        """
        self.first_unstable_offset: int | None = next(iter(self._unstable), None)

    # Batches

    def check(self, header: BatchHeader) -> BatchMemo | None:
        """Check a client's batch; return None if it may be written, or the earlier batch if it is a
        duplicate.

        Raises KafkaError(INVALID_PRODUCER_EPOCH) for an older instance of the producer, and
        (OUT_OF_ORDER_SEQUENCE_NUMBER) for a gap or a duplicate that is no longer remembered. Raises
        KafkaError(INVALID_TXN_STATE) for a batch outside the producer's open transaction.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return None
        sequence = header.base_sequence
        if header.producer_epoch == producer.epoch:
            if sequence == producer.next_sequence:
                if producer.txn_first_offset >= 0:
                    _check_transaction(producer, header)
                return None
            memo = _remembered(producer, header)
            if memo is not None:
                return memo
        elif header.producer_epoch < producer.epoch:
            raise _fenced(header.producer_id, producer, header.producer_epoch)
        elif sequence == 0:
            _check_transaction(producer, header)
            return None
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"producer {header.producer_id} epoch {header.producer_epoch}: sequence {sequence} came, "
            f"{producer.next_sequence if header.producer_epoch == producer.epoch else 0} was due",
        )

    def check_unsequenced(self, header: BatchHeader) -> None:
        """Check a batch without sequence, which a coordinator writes for a producer.

        Raises KafkaError(INVALID_PRODUCER_EPOCH) and KafkaError(INVALID_TXN_STATE).
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            return
        if header.producer_epoch < producer.epoch:
            raise _fenced(header.producer_id, producer, header.producer_epoch)
        _check_transaction(producer, header)

    def duplicate(self, header: BatchHeader) -> BatchMemo | None:
        """Return the remembered batch that equals this one; None if there is none."""
        producer = self.producers.get(header.producer_id)
        if producer is None or producer.epoch != header.producer_epoch:
            return None
        return _remembered(producer, header)

    def record(self, header: BatchHeader, base_offset: int, timestamp: int) -> None:
        """Remember a batch that was written at `base_offset`, at `timestamp` (the wall clock, ms).

        Unlike Kafka it does not use the record's timestamp: producers of records about the past would expire
        at once.
        """
        producer = self.producers.get(header.producer_id)
        if producer is None:
            producer = self.producers[header.producer_id] = Producer(header.producer_epoch)
        elif header.producer_epoch != producer.epoch:
            producer.enter(header.producer_epoch)
        delta = header.last_offset_delta
        first = header.base_sequence
        last = (first + delta) & SEQUENCE_MASK if first >= 0 else NO_SEQUENCE
        producer.batches.append(BatchMemo(first, last, base_offset + delta, delta, timestamp))
        producer.next_sequence = (last + 1) & SEQUENCE_MASK
        producer.timestamp = timestamp
        if header.attributes & TRANSACTIONAL_BIT and producer.txn_first_offset < 0:
            self._begin(header.producer_id, producer, base_offset)
        changed = self._changed
        changed.add(header.producer_id)
        if len(changed) >= PACKED_AT:
            self._pack()

    # Snapshots

    def rows(self) -> list[bytes]:
        """Return every producer's row for a snapshot."""
        self._pack()
        return list(self._rows.values())

    def _pack(self) -> None:
        for producer_id in self._changed:
            self._rows[producer_id] = pack_row(producer_id, self.producers[producer_id])
        self._changed.clear()

    # Transactions

    def has_open_transaction(self, producer_id: int, producer_epoch: int | None = None) -> bool:
        """Return True if the producer has an open transaction in this log, with this epoch if one is
        given.
        """
        producer = self.producers.get(producer_id)
        return (
            producer is not None
            and producer.txn_first_offset >= 0
            and (producer_epoch is None or producer.epoch == producer_epoch)
        )

    def check_marker(
        self, producer_id: int, producer_epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Check whether a marker may be written.

        From transaction version 2 on, a marker with the epoch of the open transaction is a late or repeated
        one: it must not end the producer's next transaction. Without an open transaction it does no harm.
        Raises KafkaError(INVALID_PRODUCER_EPOCH) and KafkaError(TRANSACTION_COORDINATOR_FENCED).
        """
        producer = self.producers.get(producer_id)
        if producer is None:
            return
        is_late = transaction_version >= EPOCH_BUMP_VERSION and producer.txn_first_offset >= 0
        if producer_epoch < producer.epoch or (is_late and producer_epoch == producer.epoch):
            raise _fenced(producer_id, producer, producer_epoch)
        if coordinator_epoch < producer.coordinator_epoch:
            raise error_for(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {coordinator_epoch} ends a transaction of producer {producer_id}; "
                f"one of epoch {producer.coordinator_epoch} has been here",
            )

    def repeated_marker(
        self, producer_id: int, coordinator_epoch: int, transaction_number: int
    ) -> MarkerMemo | None:
        """Return the marker that was written for this transaction, or for a later one; None if there is none.

        A marker for an ended transaction is repeated or late, and must not be written: below transaction
        version 2 it would end the producer's next transaction. Numbers count within one coordinator epoch.
        """
        producer = self.producers.get(producer_id)
        memo = None if producer is None else producer.last_marker
        if memo is None or transaction_number < 0 or coordinator_epoch != memo.coordinator_epoch:
            return None
        return memo if transaction_number <= memo.transaction_number else None

    def record_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        coordinator_epoch: int,
        offset: int,
        timestamp: int,
        *,
        transaction_number: int = NO_NUMBER,
    ) -> EndedTransaction | None:
        """Record a marker at `offset`, written at `timestamp` (the wall clock, ms); return what it ended, or
        None.
        """
        producer = self.producers.get(producer_id)
        if producer is None:
            producer = self.producers[producer_id] = Producer(producer_epoch)
        producer.enter(producer_epoch)
        producer.coordinator_epoch = coordinator_epoch
        if transaction_number >= 0:
            producer.last_marker = MarkerMemo(coordinator_epoch, transaction_number, offset)
        producer.timestamp = timestamp
        self._changed.add(producer_id)
        first_offset = producer.txn_first_offset
        if first_offset < 0:
            return None
        producer.txn_first_offset = NO_TRANSACTION
        self._unstable[first_offset] = None
        self._ended.append((offset, first_offset))
        open_before = next((first for first, owner in self._unstable.items() if owner is not None), None)
        return EndedTransaction(first_offset, offset + 1 if open_before is None else open_before)

    def replicated_to(self, high_watermark: int) -> None:
        """Record that all records below `high_watermark` are committed: transactions with an earlier marker
        are stable.
        """
        ended = self._ended
        if not ended or ended[0][0] >= high_watermark:
            return
        while ended and ended[0][0] < high_watermark:
            del self._unstable[ended.popleft()[1]]
        self.first_unstable_offset = next(iter(self._unstable), None)

    def _begin(self, producer_id: int, producer: Producer, first_offset: int) -> None:
        producer.txn_first_offset = first_offset
        self._unstable[first_offset] = producer_id
        if self.first_unstable_offset is None:
            self.first_unstable_offset = first_offset

    # Time

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers without an open transaction that wrote nothing for `expiration_ms`; return how
        many.
        """
        expired = [
            producer_id
            for producer_id, producer in self.producers.items()
            if now_ms - producer.timestamp >= expiration_ms and producer.txn_first_offset < 0
        ]
        for producer_id in expired:
            del self.producers[producer_id]
            self._rows.pop(producer_id, None)
            self._changed.discard(producer_id)
        return len(expired)


def _check_transaction(producer: Producer, header: BatchHeader) -> None:
    if producer.txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_BIT:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE,
            f"producer {header.producer_id} has had a transaction open since offset "
            f"{producer.txn_first_offset}; a batch outside of it came",
        )


def _remembered(producer: Producer, header: BatchHeader) -> BatchMemo | None:
    sequence, last = header.base_sequence, header.last_sequence
    for memo in producer.batches:
        if memo.first_sequence == sequence and memo.last_sequence == last:
            return memo
    return None


def _fenced(producer_id: int, producer: Producer, epoch: int) -> KafkaError:
    return error_for(
        ErrorCode.INVALID_PRODUCER_EPOCH, f"producer {producer_id} is at epoch {producer.epoch}, not {epoch}"
    )
