"""A broker with one replica: what it does with images, records and fetches, without a network or a clock.

It stands in for `logd.broker`: roles out of the image, the log, waiting producers. Which rules it goes by is
handed in, so that a test can plant a bug in one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from kafka_client.errors import ErrorCode, KafkaError, error_for
from logd.replication import Fetch, Follower, Leader, LeaderSettings, Proposal, Truncate, find_divergence
from tests.faults.replication.controller import Altered, ControllerModel, Image
from tests.faults.replication.memory_log import NO_PRODUCER, Batch, MemoryLog

ACKS_ALL = -1


@dataclass(frozen=True)
class Rules:
    """By which everything goes; a planted bug is another one."""

    leader: type[Leader] = Leader
    follower: type[Follower] = Follower
    controller: type[ControllerModel] = ControllerModel
    asks_lease: bool = True
    """Before an acknowledgement."""


class Fetched(NamedTuple):
    """The answer to a fetch, a follower's or a consumer's."""

    error_code: int = 0
    high_watermark: int = -1
    log_start_offset: int = -1
    log_end_offset: int = -1
    batches: list[Batch] = []
    diverging: tuple[int, int] | None = None
    removal_offset: int = 0


class Produced(NamedTuple):
    """The answer to a produce request."""

    error_code: int
    base_offset: int = -1
    epoch: int = -1


@dataclass
class Waiting:
    """An acks=all append that is not acknowledged yet."""

    end_offset: int
    answer: Produced
    reply: Callable[[Produced], None]


@dataclass
class Node:
    """`broker_epoch` is None until it is registered in this life, which holds until `lease_ends_ms`."""

    id: int
    settings: LeaderSettings
    rules: Rules = field(default_factory=Rules)
    log: MemoryLog = field(default_factory=MemoryLog)
    checkpointed: int = 0
    """The high watermark as it is on the disk."""
    broker_epoch: int | None = None
    lease_ends_ms: int = -1
    image: Image | None = None
    role: Leader | Follower | None = None
    leader_epoch: int = -1
    waiting: list[Waiting] = field(default_factory=list)
    last_fetches: dict[int, tuple[object, ...]] = field(default_factory=dict)
    """Each follower's last fetch: a follower with nothing new sends an empty one in its session (KIP-227)."""
    truncated_committed: bool = False
    """Whether a truncation took what was committed."""

    @property
    def high_watermark(self) -> int:
        return min(self.role.high_watermark if self.role else self.checkpointed, self.log.log_end_offset)

    def checkpoint(self) -> None:
        """replication-offset-checkpoint."""
        self.checkpointed = self.high_watermark

    def die(self) -> None:
        """Lose all but the log and the checkpoint."""
        self.role, self.image, self.broker_epoch = None, None, None
        self.lease_ends_ms = self.leader_epoch = -1
        self.waiting.clear()

    # The image

    def apply(self, image: Image, now_ms: int) -> None:
        """Take on an image, unless it is for an earlier registration or older than the present one."""
        if self.broker_epoch is None or image.brokers.get(self.id, self.broker_epoch) != self.broker_epoch:
            return
        if self.image is not None and image.number <= self.image.number:
            return
        self.image = image
        partition = image.partition
        if self.id not in partition.replicas:
            self._delete()
        if partition.leader_epoch > self.leader_epoch or self.role is None:
            self._change_role(image, now_ms)
        elif isinstance(self.role, Leader):
            self.role.image_changed(partition, now_ms)
            self.role.reconsider(now_ms)
            self.settle(now_ms)

    def _change_role(self, image: Image, now_ms: int) -> None:
        partition, high_watermark = image.partition, self.high_watermark
        self.checkpointed = high_watermark
        self.leader_epoch = partition.leader_epoch
        self._refuse_waiting()
        if partition.leader == self.id:
            self.log.begin_epoch(partition.leader_epoch)
            self.role = self.rules.leader(
                self.log,
                partition,
                broker_id=self.id,
                brokers=self.registered,
                high_watermark=high_watermark,
                now_ms=now_ms,
                settings=self.settings,
            )
        elif partition.leader >= 0 and self.id in partition.replicas:
            self.role = self.rules.follower(
                self.log,
                leader=partition.leader,
                leader_epoch=partition.leader_epoch,
                high_watermark=high_watermark,
            )
        else:
            self.role = None

    def _delete(self) -> None:
        """Delete the log: the broker is no replica any more."""
        if self.log.batches or self.role is not None:
            self._refuse_waiting()
            self.role, self.log, self.checkpointed = None, MemoryLog(), 0

    def registered(self, broker_id: int) -> int | None:
        """By the image known here."""
        return self.image.brokers.get(broker_id) if self.image is not None else None

    def _refuse_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        for one in waiting:
            one.reply(Produced(ErrorCode.NOT_LEADER_OR_FOLLOWER))

    # Producers

    def produce(self, batch: Batch, acks: int, now_ms: int, reply: Callable[[Produced], None]) -> None:
        """Append and, with acks=all, wait; `reply` is called once, now or later."""
        leader = self.role
        if not isinstance(leader, Leader) or not self.may_acknowledge(now_ms):
            return reply(Produced(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        try:
            if acks == ACKS_ALL:
                leader.check_enough_replicas()
            written = self._append(batch, leader.leader_epoch)
        except KafkaError as error:
            return reply(Produced(error.code))
        if self.log.log_end_offset != leader.log_end_offset:
            leader.appended(self.log.log_end_offset, now_ms)
        answer = Produced(0, written.base_offset, written.epoch)
        if acks == ACKS_ALL:
            self.waiting.append(Waiting(written.end_offset, answer, reply))
        else:
            reply(answer)
        self.settle(now_ms)

    def _append(self, batch: Batch, epoch: int) -> Batch:
        """Return the batch as it is in the log, also if it was appended before."""
        last = self.log.last_batches.get(batch.producer_id)
        if batch.producer_id != NO_PRODUCER and last is not None:
            if batch.sequence == last.sequence:
                return last
            if batch.sequence < last.sequence:
                raise error_for(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
        if batch.producer_id != NO_PRODUCER and batch.sequence != (last.sequence + 1 if last else 0):
            raise error_for(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        return self.log.append(batch._replace(epoch=epoch))

    def may_acknowledge(self, now_ms: int) -> bool:
        return not self.rules.asks_lease or now_ms < self.lease_ends_ms

    def settle(self, now_ms: int) -> None:
        """Answer the producers that need not wait any more."""
        leader = self.role
        if not self.waiting or not isinstance(leader, Leader) or not self.may_acknowledge(now_ms):
            return
        left = []
        for one in self.waiting:
            code = leader.acknowledgement(one.end_offset)
            if code is None:
                left.append(one)
            else:
                one.reply(Produced(code) if code else one.answer)
        self.waiting = left

    # Consumers

    def read(self, offset: int, last_fetched_epoch: int, current_leader_epoch: int) -> Fetched:
        """Up to the high watermark; a consumer that knows another leader epoch is told so (KIP-320)."""
        leader = self.role
        if not isinstance(leader, Leader):
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if current_leader_epoch != leader.leader_epoch:
            return Fetched(ErrorCode.FENCED_LEADER_EPOCH)
        try:
            if last_fetched_epoch >= 0:
                divergence = find_divergence(self.log, leader.leader_epoch, last_fetched_epoch, offset)
                if divergence is not None:
                    return self._fetched(leader, [], divergence)
        except KafkaError as error:
            return self._fetched(leader, [])._replace(error_code=error.code)
        return self._fetched(leader, self.log.read(offset, leader.high_watermark, 20))

    # Followers

    def serve(
        self, follower: int, broker_epoch: int, log_start_offset: int, request: Fetch, now_ms: int
    ) -> Fetched:
        """Answer a follower's fetch."""
        leader = self.role
        if not isinstance(leader, Leader):
            return Fetched(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        says = leader, request, broker_epoch, log_start_offset
        is_known = broker_epoch >= (self.registered(follower) or 0)
        if is_known and self.last_fetches.get(follower) == says and request.offset == self.log.log_end_offset:
            return self._fetched(leader, [])
        try:
            divergence = leader.fetched(
                follower,
                request.offset,
                request.last_fetched_epoch,
                now_ms,
                current_leader_epoch=request.leader_epoch,
                broker_epoch=broker_epoch,
                log_start_offset=log_start_offset,
            )
        except KafkaError as error:
            return Fetched(error.code)
        if divergence is None:
            self.last_fetches[follower] = says
        self.settle(now_ms)
        batches = [] if divergence else self.log.read(request.offset, self.log.log_end_offset, 20)
        return self._fetched(leader, batches, divergence)

    def answered(self, leader: Leader, proposal: Proposal, altered: Altered, now_ms: int) -> None:
        """Take the controller's decision on a leader's proposal."""
        if altered.error_code:
            leader.refused(proposal, altered.error_code, now_ms)
        else:
            leader.accepted(
                proposal,
                altered.isr,
                leader_epoch=altered.leader_epoch,
                partition_epoch=altered.partition_epoch,
                now_ms=now_ms,
            )
        self.settle(now_ms)

    def _fetched(
        self, leader: Leader, batches: list[Batch], diverging: tuple[int, int] | None = None
    ) -> Fetched:
        log = self.log
        return Fetched(
            0,
            leader.high_watermark,
            log.log_start_offset,
            log.log_end_offset,
            batches,
            diverging,
            log.removal_offset,
        )

    def take(self, request: Fetch, answer: Fetched, wrote: Callable[[Batch], None]) -> None:
        """Take a leader's answer: append its batches, or note what is to be done instead."""
        follower = self.role
        if not isinstance(follower, Follower):
            return
        self.log.removal_offset = max(self.log.removal_offset, answer.removal_offset)
        if not follower.answered(request, answer.error_code, answer.diverging):
            return
        for batch in answer.batches:
            try:
                order = follower.check_base_offset(batch.base_offset, answer.log_start_offset)
            except KafkaError:
                return  # asked again
            if order is not None:
                self.log.truncate(order)
            wrote(self.log.replicate(batch))
        follower.appended(answer.high_watermark)
        start = answer.log_start_offset
        if self.log.log_start_offset < start <= self.log.log_end_offset:
            self.log.delete_before(start)

    def truncate(self, order: Truncate) -> None:
        """Truncate as `Follower.next` says."""
        follower = self.role
        assert isinstance(follower, Follower)
        self.log.truncate(order)
        self.truncated_committed |= follower.truncated()
        self.checkpointed = min(self.checkpointed, self.log.log_end_offset)
