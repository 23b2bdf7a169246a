"""Bugs to be found: each is a rule of the product taken away or bent, by a patch from here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from unittest import mock

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.coordinators.coordinator_log import CoordinatorLog
from logd.broker.partition.partition import Partition
from logd.broker.topics.unassigned_logs import UnassignedLog, UnassignedLogs
from logd.broker.transactions import markers
from logd.metadata.controller import partition_changes
from logd.metadata.controller.liveness import Liveness
from logd.metadata.shared_images import PartitionImage
from logd.metadata.zookeeper.election import Elected
from logd.metadata.zookeeper.session.operations import Check
from logd.metadata.zookeeper.znodes.paths import CONTROLLER_EPOCH
from logd.replication import Fetch, Follower, Truncate
from logd.storage import Appended, ProducerState
from logd.transactions import ProducerIdentity, ending
from logd.transactions.states import PREPARED
from logd.transactions.transaction import Transaction
from tests.faults.cluster_simulation.checker import Kind
from tests.faults.cluster_simulation.profile import DEPOSED, HASTE, LATE, MOVES, RENEWAL, TWINS, Profile


@contextmanager
def truncates_by_high_watermark() -> Iterator[None]:
    """Truncate to the high watermark without asking for leader epochs, as Kafka did before KIP-101."""
    fetch = Follower._fetch

    def begin(self: Follower) -> Truncate:
        return Truncate(self.high_watermark)

    def without_epoch(self: Follower) -> Fetch:
        return fetch(self)._replace(last_fetched_epoch=-1)

    with mock.patch.object(Follower, "_begin", begin), mock.patch.object(Follower, "_fetch", without_epoch):
        yield


@contextmanager
def transactions_are_not_fenced() -> Iterator[None]:
    """Let a producer end the transaction of the one that has taken its place."""

    def check(current: Transaction, identity: ProducerIdentity, *, bumps: bool, repeated: bool) -> None:
        pass

    with mock.patch.object(ending, "_check_identity", check):
        yield


@contextmanager
def acknowledges_at_once() -> Iterator[None]:
    """Acknowledge records once they are in the leader's own log."""

    def flushed(self: Partition, appended: Appended, acks: int = -1) -> Awaitable[None] | None:
        return None

    with mock.patch.object(Partition, "flushed", flushed):
        yield


@contextmanager
def adopts_stray_logs() -> Iterator[None]:
    """Adopt a stray log by its name, whatever topic it was of."""
    take = UnassignedLogs.take

    async def adopted(self: UnassignedLogs, tp: TopicPartition) -> UnassignedLog | None:
        for stray in self._logs.get(tp, ()):
            stray.log.topic_id = self._image.topics[tp.topic].topic_id
        return await take(self, tp)

    with mock.patch.object(UnassignedLogs, "take", adopted):
        yield


@contextmanager
def coordinators_answer_at_once() -> Iterator[None]:
    """Before what they decided is replicated."""

    def flushed(self: CoordinatorLog, appended: Appended | None = None) -> Awaitable[None] | None:
        return None

    def is_committed(self: CoordinatorLog, appended: Appended | None = None) -> bool:
        return True

    with (
        mock.patch.object(CoordinatorLog, "flushed", flushed),
        mock.patch.object(CoordinatorLog, "is_committed", is_committed),
    ):
        yield


@contextmanager
def controllers_are_not_fenced() -> Iterator[None]:
    """Let a controller write without a check of its epoch.

    Versions of the znodes still keep it from writing over what its successor has written.
    """
    anybodys = Check(CONTROLLER_EPOCH, -1)
    with mock.patch.object(Elected, "fence", anybodys):
        yield


@contextmanager
def moves_end_at_once() -> Iterator[None]:
    """Complete a reassignment without waiting for the new replicas to be in sync."""

    def completed(tp: TopicPartition, state: PartitionImage, live: Liveness) -> PartitionImage:
        if not state.is_reassigning:
            return state
        target = state.target
        done = replace(state, replicas=target, isr=target, adding=(), removing=())
        return partition_changes.with_leader(tp, done, live, allow_unclean=False)

    with mock.patch.object(partition_changes, "_completed", completed):
        yield


@contextmanager
def markers_say_no_leader_epoch() -> Iterator[None]:
    """Let a leader that leads again take a marker that was sent when it led before."""

    def check(partition: Partition, leader_epoch: int) -> None:
        pass

    with mock.patch.object(markers, "check_leader_epoch", check):
        yield


@contextmanager
def markers_say_no_transaction() -> Iterator[None]:
    """Let a leader write a marker again that it has written."""

    def repeated(self: ProducerState, producer_id: int, coordinator_epoch: int, number: int) -> None:
        pass

    with mock.patch.object(ProducerState, "repeated_marker", repeated):
        yield


@contextmanager
def completing_is_no_reason_to_wait() -> Iterator[None]:
    """Fence a producer that ends its next transaction meanwhile: it has the epoch it goes on with."""

    def check(current: Transaction, identity: ProducerIdentity) -> None:
        if current.state not in PREPARED:
            return
        if current.bumps_epoch and identity.epoch + 1 != current.producer_epoch:
            raise ending.producer_fenced(current, identity)
        raise KafkaError(ErrorCode.CONCURRENT_TRANSACTIONS)

    with mock.patch.object(ending, "check_completed", check):
        yield


@dataclass(frozen=True)
class Bug:
    """A planted bug: how to plant it, the kinds that should catch it, and a profile rich in what it needs.

    `seed` is that of a history which is likely to catch it, since it once did.
    """

    plant: Callable[[], AbstractContextManager[None]]
    kinds: Sequence[Kind]
    profile: Profile | None = None
    seed: int = 0


LOST = (Kind.LOST_WRITE, Kind.DIRTY_READ, Kind.INCONSISTENT_OFFSET, Kind.DIVERGED_REPLICAS, Kind.UNSEEN)
ENDED_OTHERWISE = (Kind.TORN_TRANSACTION, Kind.LOST_WRITE, Kind.ABORTED_READ, Kind.UNSEEN, Kind.LOST_OFFSET)

BUGS: Mapping[str, Bug] = {
    "acknowledges before the ISR has it": Bug(acknowledges_at_once, LOST, HASTE, seed=3),
    "producers are not fenced": Bug(
        transactions_are_not_fenced, (Kind.TORN_TRANSACTION, Kind.LOST_WRITE), TWINS
    ),
    "coordinator answers before its log is replicated": Bug(
        coordinators_answer_at_once,
        (Kind.LOST_OFFSET, Kind.LOST_WRITE, Kind.TORN_TRANSACTION),
        HASTE,
        seed=31,
    ),
    "adopts stray logs": Bug(adopts_stray_logs, (*LOST, Kind.STRAY_ADOPTED), RENEWAL, seed=23),
    "controllers are not fenced": Bug(controllers_are_not_fenced, (Kind.STALE_CONTROLLER,), DEPOSED, seed=1),
    "markers say no leader epoch": Bug(markers_say_no_leader_epoch, ENDED_OTHERWISE, LATE, seed=3),
    "markers say no transaction": Bug(markers_say_no_transaction, ENDED_OTHERWISE, LATE, seed=1),
    "completing is no reason to wait": Bug(completing_is_no_reason_to_wait, (Kind.FENCED,), LATE, seed=4),
    "moves end at once": Bug(moves_end_at_once, LOST, MOVES),
    "truncates by high watermark": Bug(truncates_by_high_watermark, LOST, HASTE, seed=96),
}
