"""The states of a transaction, and the table of allowed transitions.

    Empty ──▶ Ongoing ──▶ PrepareCommit ──▶ CompleteCommit ──▶ (Ongoing, Empty, Dead)
                 │ ▲
                 │ └── another partition is added
                 ├──▶ PrepareEpochFence ──▶ PrepareAbort ──▶ CompleteAbort ──▶ (Ongoing, Empty, Dead)
                 └──▶ PrepareAbort

Once PrepareCommit is in the log the transaction is committed, whatever happens afterwards; PrepareAbort
likewise. PrepareEpochFence precedes an abort that the producer did not request. It only exists within one
decision and is never written. Dead is a tombstone.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class TransactionState(IntEnum):
    """A state, with the number that it has in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        """The name in Kafka's responses, such as `PrepareCommit`."""
        return "".join(word.capitalize() for word in self.name.split("_"))


_TITLES = {state.value: state.title for state in TransactionState}


def state_name(number: int) -> str:
    """Return the name of a state as Kafka's tools print it; the number itself if it is unknown."""
    return _TITLES.get(number) or str(number)


RESTING = frozenset(
    (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
)
"""States without an open transaction: a new one may start, and the transactional id may expire."""

PREPARED = frozenset((TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT))
"""States in which the outcome is decided, and markers are being written."""

PREVIOUS_STATES: Mapping[TransactionState, frozenset[TransactionState]] = {
    TransactionState.EMPTY: RESTING,
    TransactionState.ONGOING: RESTING | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset((TransactionState.ONGOING,)),
    # From a resting state: transaction version 2 aborts transactions unknown to the coordinator (KIP-890).
    TransactionState.PREPARE_ABORT: RESTING
    | {TransactionState.ONGOING, TransactionState.PREPARE_EPOCH_FENCE},
    TransactionState.COMPLETE_COMMIT: frozenset((TransactionState.PREPARE_COMMIT,)),
    TransactionState.COMPLETE_ABORT: frozenset((TransactionState.PREPARE_ABORT,)),
    TransactionState.DEAD: RESTING,
    TransactionState.PREPARE_EPOCH_FENCE: frozenset((TransactionState.ONGOING,)),
}
"""For each state, the states from which it may be entered."""
