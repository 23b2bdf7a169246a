"""Which batches of a transactional producer may be sent now, and as whom.

Batches belong to transactions, which have numbers. One transaction at a time is *sending*; the next one may
be *filling* meanwhile: its batches wait in their queues until the one before is ended and `open` lets them
go.
"""

from __future__ import annotations

from collections.abc import Callable

from kafka_client.errors import MillstreamError
from kafka_client.producer.identity import Identity
from kafka_client.topic_partition import TopicPartition

NO_TRANSACTION = 0
"""Transactions are numbered from 1 on."""

PRODUCE_VERSIONS = {False: (3, 11), True: (12, 13)}
"""By whether a batch makes its partition part of the transaction."""


class TransactionGate:
    """Shared by a transactional producer, who opens and shuts it, and the queues of its batches, who ask it.

    `on_failure(transaction, error)` hears of each batch that is given up. It must not touch the queues.
    """

    def __init__(self, transactional_id: str, on_failure: Callable[[int, MillstreamError], None]) -> None:
        self.transactional_id = transactional_id
        self.on_failure = on_failure
        self.identity = Identity()
        self.filling = NO_TRANSACTION
        """The transaction that what is sent now belongs to."""
        self.implicit = True
        """Whether producing to a partition makes it part of the transaction (transaction version 2)."""
        self.last_sent = NO_TRANSACTION
        """The newest transaction of which a batch was sent."""
        self.changes = 0
        """How often what it admits has changed."""
        self._sending = NO_TRANSACTION
        self._added: set[TopicPartition] = set()

    @property
    def sending(self) -> int:
        """The transaction whose batches may be sent."""
        return self._sending

    def open(self, transaction: int) -> None:
        """Let the batches of this transaction go, and no others."""
        self._sending = transaction
        self._added.clear()
        self.changes += 1

    def shut(self) -> None:
        """Let no batch go."""
        self._sending = NO_TRANSACTION
        self.changes += 1

    def add(self, partitions: set[TopicPartition]) -> None:
        """The coordinator has these partitions in the transaction that is sending."""
        self._added |= partitions
        self.changes += 1

    def admits(self, tp: TopicPartition, transaction: int) -> bool:
        """Whether a batch may be sent."""
        return transaction == self._sending and (self.implicit or tp in self._added)

    @property
    def produce_versions(self) -> tuple[int, int]:
        """The versions of Produce that do what is wanted of them (KIP-890)."""
        return PRODUCE_VERSIONS[self.implicit]
