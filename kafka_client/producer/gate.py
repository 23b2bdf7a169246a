"""The gate of a transactional producer's batches: which may be sent now, and under which identity.

Batches belong to transactions, which have numbers. One transaction at a time is *sending*; the next one may
be *filling* meanwhile. Its batches wait in their queues until the one before has ended and `open` admits
them.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_client.errors import MillstreamError
from kafka_client.producer.identity import Identity
from kafka_client.topic_partition import TopicPartition

NO_TRANSACTION = 0
"""Transactions are numbered from 1 on."""

PRODUCE_VERSIONS = {False: (3, 11), True: (12, 13)}
"""Versions of Produce, by whether a batch adds its partition to the transaction."""


class TransactionGate:
    """A gate that a transactional producer opens and shuts, and that the queues of its batches ask.

    `on_failure(transaction, error)` is called for each batch that is given up. It must not touch the queues.
    """

    def __init__(self, transactional_id: str, on_failure: Callable[[int, MillstreamError], None]) -> None:
        self.transactional_id = transactional_id
        self.on_failure = on_failure
        self.identity = Identity()
        self.filling = NO_TRANSACTION
        """The transaction of the records that are sent now."""
        self.implicit = True
        """True if producing to a partition adds it to the transaction (transaction version 2)."""
        self.last_sent = NO_TRANSACTION
        """The newest transaction of which a batch was sent."""
        self.changes = 0
        """How often the set of admitted batches has changed."""
        self._sending = NO_TRANSACTION
        self._added: set[TopicPartition] = set()

    @property
    def sending(self) -> int:
        """The transaction whose batches may be sent."""
        return self._sending

    def open(self, transaction: int) -> None:
        """Admit the batches of this transaction, and no others."""
        self._sending = transaction
        self._added.clear()
        self.changes += 1

    def shut(self) -> None:
        """Admit no batch."""
        self._sending = NO_TRANSACTION
        self.changes += 1

    def add(self, partitions: set[TopicPartition]) -> None:
        """Note that the coordinator has added these partitions to the transaction that is sending."""
        self._added |= partitions
        self.changes += 1

    def admits(self, tp: TopicPartition, transaction: int) -> bool:
        """Return True if a batch of this partition and transaction may be sent."""
        return transaction == self._sending and (self.implicit or tp in self._added)

    @property
    def produce_versions(self) -> tuple[int, int]:
        """The versions of Produce that fit the transaction version (KIP-890)."""
        return PRODUCE_VERSIONS[self.implicit]
