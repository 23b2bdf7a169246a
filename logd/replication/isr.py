"""The in-sync replicas of a partition as its leader sees them: the committed ISR, and a proposed one.

The controller commits an ISR. The leader proposes one, and does not know whether it is committed before the
response arrives. Until then the leader waits for the *maximal* ISR: all brokers of every ISR that may be
committed (KIP-497). So it has waited for every broker that the controller may elect.

    committed ──propose──▶ unsent ──take──▶ sent ──▶ committed   accepted, or the image has a newer epoch
                             ▲ ▲             │ ├───▶ committed   withdrawn: refused for what it asks for
                             │ └─ unanswered ┘ └───▶ stalled     outdated: the image will say
                             └──────── confirmed ──────┘
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Proposal(NamedTuple):
    """An AlterPartition request: the proposed ISR, and the leader and partition epoch that it is based on.

    Each broker comes with its epoch (-1 if unknown, KIP-903).
    """

    isr: tuple[tuple[int, int], ...]
    leader_epoch: int
    partition_epoch: int

    @property
    def broker_ids(self) -> tuple[int, ...]:
        """The ids of the brokers in the proposed ISR."""
        return tuple(broker_id for broker_id, _ in self.isr)


class ProposalState(Enum):
    """The state of the current proposal."""

    NONE = "none"
    UNSENT = "unsent"
    SENT = "sent"
    STALLED = "stalled"


class InSync:
    """The committed ISR ``isr``, in the controller's order, at ``partition_epoch``, and the current
    proposal.
    """

    __slots__ = ("isr", "maximal", "partition_epoch", "proposal", "state")

    def __init__(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        self.isr = isr
        self.partition_epoch = partition_epoch
        self.proposal: Proposal | None = None
        self.state = ProposalState.NONE
        self.maximal: frozenset[int] = frozenset(isr)
        """All brokers of every ISR that is or may be committed."""

    def propose(self, proposal: Proposal) -> None:
        """Set the proposal to send next; there must be no other."""
        assert self.proposal is None, f"{self.proposal} is not decided yet"
        self.proposal, self.state = proposal, ProposalState.UNSENT
        self._count()

    def take(self) -> Proposal | None:
        """Return the proposal to send now or again, and mark it as sent; None if there is nothing to send."""
        if self.state is not ProposalState.UNSENT:
            return None
        self.state = ProposalState.SENT
        return self.proposal

    def unanswered(self) -> None:
        """Have the proposal sent again: no response has arrived, so it may or may not be committed."""
        self.state = ProposalState.UNSENT

    def outdated(self) -> None:
        """Stop sending the proposal until a newer image arrives: it is based on an outdated one."""
        self.state = ProposalState.STALLED

    def confirmed(self) -> None:
        """Have a stalled proposal sent again: an image has confirmed what it is based on."""
        if self.state is ProposalState.STALLED:
            self.state = ProposalState.UNSENT

    def withdrawn(self) -> None:
        """Drop the proposal: the controller refused it, since a broker in it has restarted or shuts down.

        An earlier copy of the proposal that is still under way will be refused too.
        """
        self._forget()

    def commit(self, isr: tuple[int, ...], partition_epoch: int) -> None:
        """Set the ISR that the controller has committed, and drop the proposal: it was based on an older
        partition epoch.
        """
        self.isr = isr
        self.partition_epoch = partition_epoch
        self._forget()

    def _forget(self) -> None:
        self.proposal, self.state = None, ProposalState.NONE
        self._count()

    def _count(self) -> None:
        proposed = self.proposal.broker_ids if self.proposal is not None else ()
        self.maximal = frozenset((*self.isr, *proposed))
