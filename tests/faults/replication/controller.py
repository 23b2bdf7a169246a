"""The controller as replication sees it: who is registered, who leads, who is in sync.

A small model that decides as the real one must, so that the histories can be played before it is there:
`Controller` is all they ask of one. It never fails and forgets nothing; its messages get lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

from kafka_client.errors import ErrorCode
from logd.replication import Proposal

NO_LEADER = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionImage:
    """Fits `PartitionState`."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0


@dataclass(frozen=True, slots=True)
class Image:
    """State that brokers receive; the one with the larger `number` is the newer.

    `brokers` are the epochs of the registered brokers.
    """

    number: int
    partition: PartitionImage
    brokers: dict[int, int] = field(default_factory=dict)


class Altered(NamedTuple):
    """The answer to an AlterPartition."""

    error_code: ErrorCode
    isr: tuple[int, ...] = ()
    leader_epoch: int = -1
    partition_epoch: int = -1


class Controller(Protocol):
    """A controller as the histories need it."""

    @property
    def image(self) -> Image: ...

    def register(self, broker_id: int) -> int:
        """Register a broker that starts, and return its broker epoch."""

    def session_ended(self, broker_id: int) -> None:
        """End a broker's ZooKeeper session."""

    def alter_partition(self, broker_id: int, broker_epoch: int, proposal: Proposal) -> Altered:
        """Decide on the ISR that a leader proposes."""

    def elect(self, broker_id: int, *, unclean: bool = False) -> bool:
        """Have a broker lead that is registered and, unless unclean, in sync; whether it could be done."""

    def reassign(self, replicas: tuple[int, ...]) -> bool:
        """Have other replicas, none of them taken out that is in sync or leads; whether it could be done."""


class ControllerModel:
    """Decides at once. The epochs it gives out only rise, over all brokers as czxids do."""

    def __init__(self, replicas: tuple[int, ...]) -> None:
        self._epochs = 100
        self.image = Image(0, PartitionImage(replicas=replicas, isr=replicas, leader=NO_LEADER))

    # Brokers

    def register(self, broker_id: int) -> int:
        if broker_id in self.image.brokers:
            self.session_ended(broker_id)
        self._epochs += 1
        self._tell(brokers={**self.image.brokers, broker_id: self._epochs})
        self._returned(broker_id)
        if self.image.partition.leader == NO_LEADER:
            self._elect_somebody()
        return self._epochs

    def _returned(self, broker_id: int) -> None:
        """Take a broker that comes back out of the ISR, unless it is the last: it may have lost its log's
        end.
        """
        self._leave_isr(broker_id)

    def session_ended(self, broker_id: int) -> None:
        brokers = {number: epoch for number, epoch in self.image.brokers.items() if number != broker_id}
        self._tell(brokers=brokers)
        self._leave_isr(broker_id)
        if self.image.partition.leader == broker_id:
            self._change(leader=NO_LEADER, leader_epoch=self.image.partition.leader_epoch + 1)
            self._elect_somebody()

    def _leave_isr(self, broker_id: int) -> None:
        left = tuple(replica for replica in self.image.partition.isr if replica != broker_id)
        if left and left != self.image.partition.isr:
            self._change(isr=left)

    def _elect_somebody(self) -> None:
        for replica in self.image.partition.isr:
            if self.elect(replica):
                return

    # The partition

    def elect(self, broker_id: int, *, unclean: bool = False) -> bool:
        partition = self.image.partition
        if broker_id not in self.image.brokers or broker_id not in partition.replicas:
            return False
        if broker_id not in partition.isr:
            if not unclean:
                return False
            self._change(isr=(broker_id,))
        self._change(leader=broker_id, leader_epoch=partition.leader_epoch + 1)
        return True

    def alter_partition(self, broker_id: int, broker_epoch: int, proposal: Proposal) -> Altered:
        partition = self.image.partition
        error = self._fence(broker_id, broker_epoch, proposal)
        if error is ErrorCode.NONE and not self._are_eligible(proposal):
            error = ErrorCode.INELIGIBLE_REPLICA
        if error is not ErrorCode.NONE:
            return Altered(error)
        # Written also if it is the same: the partition epoch is the version of its state's znode.
        self._change(isr=proposal.broker_ids)
        partition = self.image.partition
        return Altered(ErrorCode.NONE, partition.isr, partition.leader_epoch, partition.partition_epoch)

    def _fence(self, broker_id: int, broker_epoch: int, proposal: Proposal) -> ErrorCode:
        partition = self.image.partition
        if self.image.brokers.get(broker_id) != broker_epoch:
            return ErrorCode.STALE_BROKER_EPOCH
        if partition.leader != broker_id or partition.leader_epoch != proposal.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if partition.partition_epoch != proposal.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        return ErrorCode.NONE

    def _are_eligible(self, proposal: Proposal) -> bool:
        """Return True if joining brokers are registered in the epochs that the leader knows (KIP-903)."""
        partition, brokers = self.image.partition, self.image.brokers
        return all(
            broker_id in partition.replicas and brokers.get(broker_id) == epoch
            for broker_id, epoch in proposal.isr
            if broker_id not in partition.isr
        )

    def reassign(self, replicas: tuple[int, ...]) -> bool:
        partition = self.image.partition
        if not {*partition.isr, partition.leader} - {NO_LEADER} <= set(replicas):
            return False
        # A fetch that a replica sent before it was taken out must not count once it is taken in again, empty.
        is_less = not set(partition.replicas) <= set(replicas)
        self._change(replicas=replicas, leader_epoch=partition.leader_epoch + is_less)
        return True

    def _change(self, **changes: object) -> None:
        partition = self.image.partition
        changes["partition_epoch"] = partition.partition_epoch + 1
        self._tell(partition=replace(partition, **changes))  # type: ignore[arg-type]

    def _tell(self, **changes: object) -> None:
        self.image = replace(self.image, number=self.image.number + 1, **changes)  # type: ignore[arg-type]
