"""AlterPartition: a leader reports which replicas are in sync (KIP-497), with broker epochs (KIP-903).

The request is refused if its partition epoch is older than the partition's last change. If the ISR completes
a reassignment that removes the requesting leader, the change is made and the answer says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.brokers import registered
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import PartitionChangeBuilder, UncleanAllowed
from logd.metadata.image import ClusterImage, PartitionImage

UNKNOWN_EPOCH: Final = -1
"""The broker epoch of a replica whose epoch the leader does not know; it is not compared."""
KNOWS_LEADER_CHANGES: Final = 2
"""The first version of the request with INELIGIBLE_REPLICA and NEW_LEADER_ELECTED (KIP-841)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIsr:
    """An ISR proposed by a leader: ``isr`` maps each broker to the broker epoch of that replica's fetches.

    ``leader_epoch`` and ``partition_epoch`` are those that the leader knows.
    """

    tp: TopicPartition
    leader_epoch: int
    partition_epoch: int
    isr: dict[int, int]
    topic_id: bytes | None = None


Altered: TypeAlias = list[PartitionImage | KafkaError]
"""The current state of each requested partition, or the error that refused its ISR."""


def alter_partition(
    image: ClusterImage,
    broker: int,
    epoch: int,
    new_isrs: Sequence[NewIsr],
    *,
    version: int = 3,
    unclean_allowed: UncleanAllowed,
) -> Decision[Altered]:
    """Decide about the ISRs that a broker proposes for partitions it leads.

    ``version`` is the version of the request. Raises KafkaError(STALE_BROKER_EPOCH) for the whole request.
    KafkaErrors of one partition, in the answer:

        UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH, INVALID_REQUEST
        NOT_CONTROLLER            the leader knows a newer state
        INVALID_UPDATE_VERSION    the leader must wait for the state that is on its way
        INELIGIBLE_REPLICA        before version 2 OPERATION_NOT_ATTEMPTED
        NEW_LEADER_ELECTED        before version 2 FENCED_LEADER_EPOCH; the change is made
    """
    registered(image, broker, epoch)
    settling = PartitionChangeBuilder(image, Liveness(image), unclean_allowed)
    answer: Altered = []
    for new in new_isrs:
        try:
            answer.append(_altered(image, settling, broker, new, version))
        except KafkaError as refused:
            answer.append(refused)
    return Decision(settling.changes, answer, tuple(settling.unclean))


def _altered(
    image: ClusterImage, settling: PartitionChangeBuilder, broker: int, new: NewIsr, version: int
) -> PartitionImage:
    state = _partition(image, settling, new)
    _check_asker(new, state, broker)
    isr = tuple(new.isr)
    _check_isr(new, state)
    if set(isr) == set(state.isr):
        return state  # unchanged: the leader may repeat a request whose answer was lost
    if new.partition_epoch < state.partition_epoch:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{new.tp}: partition epoch {new.partition_epoch} has been followed by {state.partition_epoch}: "
            "wait for the partition's new state",
        )
    _check_eligible(settling.live, new, state, version)
    after = settling.settle(new.tp, replace(state, isr=isr))
    if after.leader != broker:
        raise KafkaError(
            _by_version(ErrorCode.NEW_LEADER_ELECTED, ErrorCode.FENCED_LEADER_EPOCH, version),
            f"{new.tp} is reassigned, and led by broker {after.leader} in leader epoch {after.leader_epoch}",
        )
    return after


def _partition(image: ClusterImage, settling: PartitionChangeBuilder, new: NewIsr) -> PartitionImage:
    topic = image.topics.get(new.tp.topic)
    if new.topic_id is not None and (topic is None or topic.topic_id != new.topic_id):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_ID, f"{new.tp}: there is no topic of id {new.topic_id.hex()} by that name"
        )
    state = settling.state(new.tp)
    if state is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {new.tp}")
    return state


def _check_asker(new: NewIsr, state: PartitionImage, broker: int) -> None:
    if new.leader_epoch > state.leader_epoch or new.partition_epoch > state.partition_epoch:
        raise KafkaError(
            ErrorCode.NOT_CONTROLLER,
            f"{new.tp}: broker {broker} knows leader epoch {new.leader_epoch} and partition epoch "
            f"{new.partition_epoch}, this controller {state.leader_epoch} and {state.partition_epoch}: "
            "there must be another controller, find it",
        )
    if new.leader_epoch < state.leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH,
            f"{new.tp}: leader epoch {new.leader_epoch} has been followed by {state.leader_epoch}, "
            f"led by broker {state.leader}",
        )
    if state.leader != broker:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{new.tp} is led by broker {state.leader}, only that one can change its ISR, not {broker}",
        )


def _check_isr(new: NewIsr, state: PartitionImage) -> None:
    if state.leader not in new.isr:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{new.tp}: ISR {list(new.isr)} is without the leader, {state.leader}"
        )
    if not set(new.isr) <= set(state.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REQUEST,
            f"{new.tp}: ISR {list(new.isr)} goes beyond its replicas {list(state.replicas)}",
        )


def _check_eligible(live: Liveness, new: NewIsr, state: PartitionImage, version: int) -> None:
    """Raise KafkaError for a replica that restarted after its fetch (KIP-903).

    The log of such a replica may be shorter.
    """
    for replica, epoch in new.isr.items():
        reason = _why_ineligible(live, new.tp, replica, epoch, is_new=replica not in state.isr)
        if reason:
            raise KafkaError(
                _by_version(ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED, version),
                f"{new.tp}: broker {replica} cannot be in the ISR {list(new.isr)}: {reason}",
            )


def _why_ineligible(live: Liveness, tp: TopicPartition, replica: int, epoch: int, *, is_new: bool) -> str:
    broker = live.broker(replica)
    if broker is None:
        return "it is not alive"
    if epoch not in (UNKNOWN_EPOCH, broker.epoch):
        return f"it fetched with broker epoch {epoch}, and is registered with {broker.epoch} now"
    if is_new and not live.is_online(tp, replica):
        return "its log directory is offline"
    if is_new and broker.is_shutting_down:
        return "it is shutting down"
    return ""


def _by_version(newer: ErrorCode, older: ErrorCode, version: int) -> ErrorCode:
    return newer if version >= KNOWS_LEADER_CHANGES else older
