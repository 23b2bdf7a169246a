"""A transaction: everything the coordinator knows about one transactional id.

It is immutable. A decision returns a new transaction. Once its record is appended, it replaces the old one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from kafka_client.topic_partition import TopicPartition
from logd.transactions.identity import ProducerIdentity
from logd.transactions.states import PREVIOUS_STATES, TransactionState

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
EPOCH_MAX: Final = 0x7FFF
"""An epoch that is reserved for fencing: no client gets it, so that a producer with the epoch before can be
fenced.
"""
EPOCH_BUMP_VERSION: Final = 2
"""The lowest transaction version with an epoch of its own for every transaction (KIP-890)."""


class TransactionDescription(NamedTuple):
    """A transactional id as it is reported to clients. Times are in ms since 1970, -1 if there is none."""

    transactional_id: str
    coordinator_partition: int
    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    started_ms: int
    updated_ms: int
    partitions: tuple[TopicPartition, ...]
    """The partitions, sorted. While the outcome is being written, only those without its marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """The state of one transactional id.

    Invariants: `partitions` is empty in a resting state; `producer_epoch` is below `EPOCH_MAX` if a client
    may hold it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    last_producer_epoch: int = NO_EPOCH
    """The previous epoch, if a repeated request may still name it. It is not in the log."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last transition."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id after the transaction is complete, if all epochs of the current one are used."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    updated_ms: int
    client_version: int = 0
    """The transaction version of the client that made the last transition (KIP-890)."""
    may_be_behind: bool = False
    """True if the transaction was loaded from records before an unclean stop. Later transitions may be
    missing then: epochs above `producer_epoch` may have been assigned and used. It is not in the log.
    """

    @property
    def identity(self) -> ProducerIdentity:
        """The current producer id and epoch."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def highest_producer_id(self) -> int:
        """The highest producer id that this transactional id had, has or will have."""
        return max(self.producer_id, self.previous_producer_id, self.next_producer_id)

    @property
    def is_epoch_exhausted(self) -> bool:
        """True if the producer id has no epoch left for a client."""
        return self.producer_epoch >= EPOCH_MAX - 1

    @property
    def needs_new_producer_id(self) -> bool:
        """True if a new client must not get the next epoch of this producer id.

        Records of an epoch that was used before would be taken for repeated ones: acknowledged, but not
        stored.
        """
        return self.is_epoch_exhausted or self.may_be_behind

    @property
    def bumps_epoch(self) -> bool:
        """True if its transactions end with another epoch (transaction version 2)."""
        return self.client_version >= EPOCH_BUMP_VERSION

    def become(self, state: TransactionState, **changes: Any) -> Transaction:
        """Return the transaction after a transition, which must be in the table in `states`."""
        assert self.state in PREVIOUS_STATES[state], f"{self}: cannot become {state.title}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)
