"""Which transactional batches a partition takes: those the transaction coordinator knows of (KIP-890)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Protocol

from kafka_client.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafka_client.records.header import BatchHeader
    from kafka_client.topic_partition import TopicPartition
    from logd.storage import ProducerState

REFUSED_MAX = 1_000
"""Producers remembered whose transaction was not admitted; the oldest is forgotten beyond that."""


class NotYetAdmitted(Exception):
    """The coordinator's consent is not committed yet, or another broker is asked for it: await ``flushed``
    (KafkaError), and try again.
    """

    def __init__(self, flushed: Awaitable[None]) -> None:
        super().__init__()
        self.flushed = flushed


class TransactionGuard(Protocol):
    """Knows which transactions are under way: the transaction coordinator (KIP-890)."""

    def admit(
        self,
        transactional_id: str | None,
        producer_id: int,
        producer_epoch: int,
        topic: str,
        partition: int,
        *,
        implicit: bool,
    ) -> Awaitable[None] | None:
        """Raise the KafkaError a producer deserves that is in no transaction with this partition.

        With ``implicit`` the coordinator adds the partition to the transaction itself. What is returned has
        to be awaited before the producer writes; NotYetAdmitted is raised where the answer is not known yet.
        """


class Admission:
    """The producers of a partition that the coordinator refused.

    To a log that does not know a producer any first sequence is acceptable. So the batches sent after a
    refused one are refused as well, until the producer sends that one again. Otherwise the refused batch
    would be out of order then, and lost.

    The refused batch may have gone to another leader, and have come here as a follower's copy. So the
    sequence that is next in the log is always accepted.
    """

    __slots__ = ("_refused", "_tp")

    def __init__(self, tp: TopicPartition) -> None:
        self._tp = tp
        self._refused: dict[int, tuple[int, int]] = {}
        """By producer id: the epoch, and the lowest sequence that was refused in it."""

    def admit(
        self,
        guard: TransactionGuard,
        producers: ProducerState,
        header: BatchHeader,
        transactional_id: str | None,
        implicit: bool,
    ) -> Awaitable[None] | None:
        """Have the guard admit the producer unless it is in a transaction here, or sends a batch again; what
        has to be awaited before it is.

        ``producers`` are those of the log; ``implicit``: see `TransactionGuard`. Raises KafkaError.
        """
        topic, partition = self._tp
        if transactional_id is None:
            raise KafkaError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                f"a transactional batch for {topic}-{partition} without a transactional id",
            )
        producer_id, epoch, sequence = header.producer_id, header.producer_epoch, header.base_sequence
        if producers.has_open_transaction(producer_id, epoch) or producers.duplicate(header):
            return None
        refused_epoch, lowest = self._refused.get(producer_id, (epoch, sequence))
        if refused_epoch != epoch:
            lowest = sequence
        producer = producers.producers.get(producer_id)
        is_due = producer is not None and producer.epoch == epoch and producer.next_sequence == sequence
        if not is_due and (sequence > lowest or (implicit and sequence and producer is None)):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"{topic}-{partition}: producer {producer_id} begins at sequence {sequence}, "
                "an earlier batch is missing",
            )
        try:
            consent = guard.admit(transactional_id, producer_id, epoch, topic, partition, implicit=implicit)
        except KafkaError:
            self._refused[producer_id] = epoch, min(lowest, sequence)
            if len(self._refused) > REFUSED_MAX:
                del self._refused[next(iter(self._refused))]
            raise
        self._refused.pop(producer_id, None)
        return consent
