"""The in-sync replicas of a partition as its leader knows them: those committed, and those it proposed.

The controller commits an ISR; the leader proposes one, and does not know whether it holds before the answer.
Until then it counts on every ISR that may hold: the *maximal* one is everybody in any of them (KIP-497). So
whoever the controller may elect has been waited for.

    committed ──propose──▶ unsent ──take──▶ sent ──▶ committed   accepted, or the image has a newer epoch
                             ▲ ▲             │ ├───▶ committed   withdrawn: refused for what it asks for
                             │ └─ unanswered ┘ └───▶ stalled     outdated: the image will say
                             └──────── confirmed ──────┘
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Proposal(NamedTuple):
    """An AlterPartition request: the ISR wanted, each broker with its epoch (-1 if unknown, KIP-903), on top
    of the leader and partition epoch it was decided at.
    """

    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ISR wanted."""
        return tuple(broker_id for broker_id, _ in self.isr)


class ProposalState(Enum):
    """Of the one proposal there may be at a time."""

    NONE = "none"
    UNSENT = "unsent"
    SENT = "sent"
    STALLED = "stalled"


class InSync:
    """``isr`` is the committed one, in the controller's order, at ``partition_epoch``."""

    __slots__ = ("isr", "maximal", "partition_epoch", "proposal", "state")

    def __init__(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.proposal: Proposal | None = None
        self.state = ProposalState.NONE
        self.maximal: frozenset[int] = frozenset(isr)
        """Everybody who is in an ISR that holds or may hold."""

    def propose(self, proposal: Proposal) -> None:
        """Have a proposal sent; there must be none."""
        assert self.proposal is None, f"{self.proposal} is not decided yet"
        self.proposal, self.state = proposal, ProposalState.UNSENT
        self._count()

    def take(self) -> Proposal | None:
        """The proposal that is to be sent now, or again; from here on it counts as sent."""
        if self.state is not ProposalState.UNSENT:
            return None
        self.state = ProposalState.SENT
        return self.proposal

    def unanswered(self) -> None:
        """Nobody knows whether it holds: it is to be sent again."""
        self.state = ProposalState.UNSENT

    def outdated(self) -> None:
        """It was decided on an image that is no longer true: wait for the true one."""
        self.state = ProposalState.STALLED

    def confirmed(self) -> None:
        """The image says once more what the proposal was decided on."""
        if self.state is ProposalState.STALLED:
            self.state = ProposalState.UNSENT

    def withdrawn(self) -> None:
        """The controller refused it since a broker in it is registered anew, or shuts down. That stays so:
        an earlier copy of it, should one still be under way, will be refused as well.
        """
        self._forget()

    def commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """The controller says so: nothing that was decided at an older partition epoch can hold any more."""
        self.isr = isr
        self.partition_epoch = partition_epoch
        self._forget()

    def _forget(self) -> None:
        self.proposal, self.state = None, ProposalState.NONE
        self._count()

    def _count(self) -> None:
        proposed = self.proposal.broker_ids if self.proposal is not None else ()
        self.maximal = frozenset((*self.isr, *proposed))
