"""Bugs to be found: each is a rule of replication taken away or bent, and what the checker says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_client.errors import ErrorCode
from logd.replication import Fetch, Follower, InSync, Leader, Proposal, Truncate
from logd.replication.progress import Progress
from tests.faults.replication.checker import Kind
from tests.faults.replication.controller import ControllerModel
from tests.faults.replication.node import Rules
from tests.faults.replication.profile import Profile


class TruncatesByHighWatermark(Follower):
    """Follower that truncates to its high watermark without asking for leader epochs, as before KIP-101."""

    def _begin(self) -> Truncate:
        return Truncate(self.high_watermark)

    def _fetch(self) -> Fetch:
        return super()._fetch()._replace(last_fetched_epoch=-1)


class FollowsAnyAnswer(Follower):
    """An answer counts, whatever was asked."""

    def answered(self, request: Fetch, error_code: int = 0, diverging: tuple[int, int] | None = None) -> bool:
        current = self.next if isinstance(self.next, Fetch) else request
        return super().answered(current, error_code, diverging)


class IsNotFenced(Leader):
    """A fetch counts, whichever leader epoch it was sent in."""

    def _check_epoch(self, leader_epoch: int) -> None:
        pass


class AcknowledgesAtOnce(Leader):
    """Once it is in the own log."""

    def acknowledgement(self, end_offset: int) -> ErrorCode | None:
        return ErrorCode.NONE


class CommittedOnly(InSync):
    """The ISR as it is committed."""

    def _count(self) -> None:
        self.maximal = frozenset(self.isr)


class WaitsForCommitted(Leader):
    """And for nobody who may be in the ISR already (before KIP-497)."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._in_sync = CommittedOnly(self._in_sync.isr, self._in_sync.partition_epoch)

    def _is_waited_for(self, follower: Progress, now_ms: int) -> bool:
        return follower.broker_id in self._in_sync.maximal


class ProposedOnly(InSync):
    """The ISR that was proposed, as if it held already."""

    def _count(self) -> None:
        self.maximal = frozenset(self.isr if self.proposal is None else self.proposal.broker_ids)


class WaitsForProposed(Leader):
    """And for nobody who may be in the ISR still."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._in_sync = ProposedOnly(self._in_sync.isr, self._in_sync.partition_epoch)


class TakesInTooEarly(Leader):
    """At the high watermark, which a new leader knows late, and not at the start of its epoch."""

    def _maybe_expand(self, follower: Progress, now_ms: int) -> None:
        self.epoch_start_offset = 0
        super()._maybe_expand(follower, now_ms)


class ForgetsTheSilent(Leader):
    """Who could not join at its last fetch joins at its next: who has all there is says nothing more."""

    def reconsider(self, now_ms: int) -> None:
        self._advance(now_ms)


class KeepsReturning(ControllerModel):
    """Controller that leaves a broker that comes back in the ISR."""

    is_registering = False

    def register(self, broker_id: int) -> int:
        self.is_registering = True
        try:
            return super().register(broker_id)
        finally:
            self.is_registering = False

    def _leave_isr(self, broker_id: int) -> None:
        if not self.is_registering:
            super()._leave_isr(broker_id)


class DoesNotFence(ControllerModel):
    """Controller that takes an ISR from any broker."""

    def _fence(self, broker_id: int, broker_epoch: int, proposal: Proposal) -> ErrorCode:
        return ErrorCode.NONE


class TakesAnyEpoch(ControllerModel):
    """An ISR is taken whatever the brokers in it have lost since (before KIP-903)."""

    def _are_eligible(self, proposal: Proposal) -> bool:
        return True


@dataclass(frozen=True)
class Bug:
    """A planted bug: its rules, the kinds that should catch it, and a profile rich in what it needs."""

    rules: Rules
    kinds: Sequence[Kind]
    profile: Profile | None = None


LOST = (Kind.LOST_WRITE, Kind.DIRTY_READ, Kind.INCONSISTENT_OFFSET, Kind.OUT_OF_SYNC)

HASTE = Profile(
    storms=(6, 10),
    late=(0.5,),
    late_ms=(200,),
    power_loss=6,
    elect=10,
    kill=3,
    pause=0,
    part=1,
    cut_off=0,
    reassign=0,
    delete=0,
    brokers=(3,),
)
"""Messages are late, and leaders change."""

ELECTIONS = Profile(
    duration_ms=2_000,
    storms=(16, 20),
    loss=(0.0,),
    late=(0.3,),
    late_ms=(250,),
    power_loss=0,
    elect=20,
    kill=1,
    pause=0,
    part=8,
    cut_off=1,
    reassign=0,
    delete=0,
    brokers=(3,),
)
"""Leaders change before everybody has heard of the one before."""

BUGS: Mapping[str, Bug] = {
    "truncates by high watermark": Bug(Rules(follower=TruncatesByHighWatermark), LOST),
    "follower takes any answer": Bug(
        Rules(follower=FollowsAnyAnswer), (Kind.DIVERGED_REPLICAS, Kind.STUCK, *LOST)
    ),
    "leader takes fetches of any epoch": Bug(
        Rules(leader=IsNotFenced), (Kind.DIVERGED_REPLICAS, *LOST), ELECTIONS
    ),
    "controller takes proposals of any epoch": Bug(Rules(controller=DoesNotFence), LOST),
    "acknowledges before the ISR has it": Bug(Rules(leader=AcknowledgesAtOnce), LOST),
    "committed instead of maximal ISR": Bug(Rules(leader=WaitsForCommitted), LOST),
    "proposed instead of maximal ISR": Bug(Rules(leader=WaitsForProposed), LOST),
    "takes in before the epoch's start": Bug(Rules(leader=TakesInTooEarly), LOST, HASTE),
    "forgets who is silent": Bug(Rules(leader=ForgetsTheSilent), (Kind.STUCK,)),
    "who returns stays in the ISR": Bug(Rules(controller=KeepsReturning), LOST),
    "takes in who has lost something since": Bug(Rules(controller=TakesAnyEpoch), LOST, HASTE),
    "acknowledges after the lease": Bug(Rules(asks_lease=False), (Kind.STALE_ACKNOWLEDGEMENT,)),
}
