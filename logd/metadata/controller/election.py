"""Elections by request (KIP-183, KIP-460), by ``auto.leader.rebalance.enable``, and after changed settings.

Elections after the end of a broker or the failure of a log directory are part of the decisions in `brokers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from enum import IntEnum
from typing import TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import PartitionChangeBuilder, UncleanAllowed
from logd.metadata.image import NO_LEADER, ClusterImage, PartitionImage


class ElectionType(IntEnum):
    """The election types of ElectLeaders, as on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


Elected: TypeAlias = dict[TopicPartition, KafkaError | None]
"""The reason why each partition has no new leader; None if it has one."""
_Elect: TypeAlias = Callable[[PartitionChangeBuilder, TopicPartition, PartitionImage], None]


def elect_leaders(
    image: ClusterImage,
    kind: ElectionType,
    partitions: Iterable[TopicPartition] | None,
    *,
    unclean_allowed: UncleanAllowed,
) -> Decision[Elected]:
    """Elect the preferred leader, or for a partition without a leader any replica that can lead.

    An unclean election by request does not depend on the topic's settings. None for the partitions means all;
    the answer then names only those that need an election. KafkaErrors of the answer:
    UNKNOWN_TOPIC_OR_PARTITION, ELECTION_NOT_NEEDED, PREFERRED_LEADER_NOT_AVAILABLE,
    ELIGIBLE_LEADERS_NOT_AVAILABLE.
    """
    elect = _elect_preferred if kind is ElectionType.PREFERRED else _elect_any
    targets = sorted(_in_need(image, kind) if partitions is None else partitions)
    settling = PartitionChangeBuilder(image, Liveness(image), unclean_allowed)
    elected = {tp: _attempt(elect, settling, tp) for tp in targets}
    return Decision(settling.changes, elected, tuple(settling.unclean))


def rebalance_leaders(
    image: ClusterImage, percentage: int, *, unclean_allowed: UncleanAllowed
) -> Decision[list[TopicPartition]]:
    """Elect the preferred leaders of brokers that lead too few of their partitions.

    A broker leads too few if others lead more than ``percentage``
    (``leader.imbalance.per.broker.percentage``) of the partitions whose preferred leader it is. The answer is
    the list of partitions with a new leader. Partitions that are being reassigned keep their leader.
    """
    settling = PartitionChangeBuilder(image, Liveness(image), unclean_allowed)
    moved = []
    for broker in image.broker_index.preferred_brokers:
        astray = image.broker_index.not_led_as_preferred(broker)
        if len(astray) * 100 <= percentage * image.broker_index.preferred_count(broker):
            continue
        for tp in sorted(astray):
            state = image.partitions[tp]
            if not state.is_reassigning and _can_lead_as_preferred(settling.live, tp, state):
                settling.settle(tp, replace(state, leader=broker))
                moved.append(tp)
    return Decision(settling.changes, moved)


def elect_leaderless(
    image: ClusterImage, topics: Iterable[str], *, unclean_allowed: UncleanAllowed
) -> Decision[None]:
    """Elect leaders for these topics' partitions without one, as their settings may now allow."""
    settling = PartitionChangeBuilder(image, Liveness(image), unclean_allowed)
    names = set(topics)
    for tp in sorted(tp for tp in image.broker_index.leaderless if tp.topic in names):
        settling.settle(tp, image.partitions[tp])
    return Decision(settling.changes, None, tuple(settling.unclean))


def _in_need(image: ClusterImage, kind: ElectionType) -> set[TopicPartition]:
    if kind is ElectionType.UNCLEAN:
        return image.broker_index.leaderless
    brokers = image.broker_index.preferred_brokers
    return {tp for broker in brokers for tp in image.broker_index.not_led_as_preferred(broker)}


def _attempt(elect: _Elect, settling: PartitionChangeBuilder, tp: TopicPartition) -> KafkaError | None:
    state = settling.state(tp)
    if state is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}")
    try:
        elect(settling, tp, state)
    except KafkaError as refused:
        return refused
    return None


def _elect_preferred(settling: PartitionChangeBuilder, tp: TopicPartition, state: PartitionImage) -> None:
    preferred = state.replicas[0]
    if state.leader == preferred:
        raise KafkaError(
            ErrorCode.ELECTION_NOT_NEEDED, f"{tp} is led by its preferred leader, broker {preferred}"
        )
    if not _can_lead_as_preferred(settling.live, tp, state):
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
            f"{tp}: broker {preferred}, its preferred leader, "
            f"{_why_not(settling.live, tp, state, preferred)}; in sync are {list(state.isr)}",
        )
    settling.settle(tp, replace(state, leader=preferred))


def _elect_any(settling: PartitionChangeBuilder, tp: TopicPartition, state: PartitionImage) -> None:
    if state.leader != NO_LEADER:
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, f"{tp} has a leader, broker {state.leader}")
    if settling.settle(tp, state, allow_unclean=True).leader == NO_LEADER:
        raise KafkaError(
            ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
            f"{tp}: none of its replicas {list(state.replicas)} can lead: start one of these brokers. "
            f"In sync were {list(state.isr)}",
        )


def _can_lead_as_preferred(live: Liveness, tp: TopicPartition, state: PartitionImage) -> bool:
    preferred = state.replicas[0]
    return preferred in state.isr and live.can_lead(tp, preferred)


def _why_not(live: Liveness, tp: TopicPartition, state: PartitionImage, broker: int) -> str:
    if live.broker(broker) is None:
        return "is not alive: start it"
    if not live.is_online(tp, broker):
        return "has the replica in a log directory that is offline: mend it and restart the broker"
    if live.is_shutting_down(broker):
        return "is shutting down: start it again"
    return "is not in sync: wait until it has caught up"
