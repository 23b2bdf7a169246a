"""A transaction: everything the coordinator knows about one transactional id.

It never changes: a decision is the transaction as it will be, its record is appended, and then it takes the
place of the old one.
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
"""Reserved for fencing: no client is given it, so that a producer with the epoch before can be fenced."""
EPOCH_BUMP_VERSION: Final = 2
"""Transaction version from which on every transaction has an epoch of its own (KIP-890)."""


class TransactionDescription(NamedTuple):
    """A transactional id as others are told of it; times in ms since 1970, -1 where there is none."""

    transactional_id: str
    coordinator_partition: int
    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    started_ms: int
    updated_ms: int
    partitions: tuple[TopicPartition, ...]
    """Sorted. While the outcome is being written, those its marker is still owed to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Transaction:
    """One transactional id.

    Invariants: `partitions` is empty in a resting state; `producer_epoch` is below `EPOCH_MAX` wherever a
    client may hold it.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    last_producer_epoch: int = NO_EPOCH
    """The epoch before, if a repeated request may still name it. It is not in the log."""
    previous_producer_id: int = NO_PRODUCER_ID
    """The producer id before the last transition."""
    next_producer_id: int = NO_PRODUCER_ID
    """The producer id that follows once the transaction is complete, where the epochs are used up."""
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    started_ms: int = -1
    updated_ms: int
    client_version: int = 0
    """Transaction version of the client that made the last transition (KIP-890)."""
    may_be_behind: bool = False
    """Whether it was loaded from what was written before an unclean stop, after which later transitions may
    be missing: epochs above `producer_epoch` may have been given out, and used. It is not in the log."""

    @property
    def identity(self) -> ProducerIdentity:
        """The producer id and epoch in force."""
        return ProducerIdentity(self.producer_id, self.producer_epoch)

    @property
    def highest_producer_id(self) -> int:
        """Of the ids it had, has and will have."""
        return max(self.producer_id, self.previous_producer_id, self.next_producer_id)

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no epoch left to give to a client."""
        return self.producer_epoch >= EPOCH_MAX - 1

    @property
    def needs_new_producer_id(self) -> bool:
        """Whether a new client must not be given the next epoch of this producer id.

        Records of an epoch that was used before would be taken for those from then: acknowledged as repeated,
        and not stored.
        """
        return self.is_epoch_exhausted or self.may_be_behind

    @property
    def bumps_epoch(self) -> bool:
        """Whether its transactions end with another epoch (transaction version 2)."""
        return self.client_version >= EPOCH_BUMP_VERSION

    def become(self, state: TransactionState, **changes: Any) -> Transaction:
        """The transaction after a transition along the table in `states`."""
        assert self.state in PREVIOUS_STATES[state], f"{self}: cannot become {state.title}"
        return replace(self, state=state, previous_producer_id=self.producer_id, **changes)
