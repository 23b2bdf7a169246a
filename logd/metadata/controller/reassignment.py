"""Decisions that begin, cancel and list reassignments of partitions to other brokers (KIP-455).

During a reassignment, ``replicas`` are the target replicas in their order, and then those to be removed.
Replicas that only an earlier reassignment was adding are removed at once. `partition_changes` completes a
reassignment.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.partition_changes import PartitionChangeBuilder, UncleanAllowed, with_leader
from logd.metadata.controller.placement import check_replicas
from logd.metadata.image import NO_LEADER, ClusterImage, PartitionImage

Reassigned: TypeAlias = dict[TopicPartition, KafkaError | None]
"""The error that refused the reassignment of each partition; None if it was accepted."""


def alter_reassignments(
    image: ClusterImage,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_factor_change: bool = True,
    unclean_allowed: UncleanAllowed,
) -> Decision[Reassigned]:
    """Begin or replace reassignments; a target of None cancels one.

    A reassignment is complete later, when the ISR has grown. ``allow_factor_change`` is that of KIP-860.
    KafkaErrors in the answer: UNKNOWN_TOPIC_OR_PARTITION, INVALID_REPLICA_ASSIGNMENT,
    INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS.
    """
    settling = PartitionChangeBuilder(image, Liveness(image), unclean_allowed)
    answer: Reassigned = {}
    for tp in sorted(targets):
        try:
            _alter(image, settling, tp, targets[tp], allow_factor_change)
        except KafkaError as refused:
            answer[tp] = refused
        else:
            answer[tp] = None
    return Decision(settling.changes, answer, tuple(settling.unclean))


def list_reassignments(
    image: ClusterImage, partitions: Iterable[TopicPartition] | None = None
) -> dict[TopicPartition, PartitionImage]:
    """Return the states of the partitions that are being reassigned, by partition.

    If ``partitions`` is given, return only those among them.
    """
    reassigning = image.broker_index.reassigning
    listed = reassigning if partitions is None else reassigning.intersection(partitions)
    return {tp: image.partitions[tp] for tp in sorted(listed)}


def _alter(
    image: ClusterImage,
    settling: PartitionChangeBuilder,
    tp: TopicPartition,
    target: Sequence[int] | None,
    allow_factor_change: bool,
) -> None:
    state = settling.state(tp)
    if state is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {tp}")
    if target is None:
        draft = _cancelled(tp, state)
    else:
        # A current replica's broker may be stopped for a while; the broker of a new replica must be alive.
        replicas = check_replicas(target, {*image.brokers, *state.origin}, str(tp))
        if not allow_factor_change and len(replicas) != len(state.origin):
            raise KafkaError(
                ErrorCode.INVALID_REPLICATION_FACTOR,
                f"{tp} has {len(state.origin)} replicas, {list(replicas)} would be {len(replicas)}: "
                "name as many, or allow the replication factor to change",
            )
        draft = towards(state, replicas)
    _check_goes_on(tp, state, draft, settling.live)
    settling.settle(tp, draft)


def _cancelled(tp: TopicPartition, state: PartitionImage) -> PartitionImage:
    if not state.is_reassigning:
        raise KafkaError(
            ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, f"{tp} is not being reassigned: nothing to cancel"
        )
    return replace(state, replicas=state.origin, isr=_within(state.isr, state.origin), adding=(), removing=())


def towards(state: PartitionImage, target: tuple[int, ...]) -> PartitionImage:
    """Return the state on the way to `target` replicas, in place of any reassignment under way."""
    adding = tuple(replica for replica in target if replica not in state.origin)
    removing = tuple(replica for replica in state.origin if replica not in target)
    replicas = (*target, *removing)
    return replace(
        state, replicas=replicas, isr=_within(state.isr, replicas), adding=adding, removing=removing
    )


def _within(isr: tuple[int, ...], replicas: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(replica for replica in isr if replica in replicas)


def _check_goes_on(tp: TopicPartition, state: PartitionImage, draft: PartitionImage, live: Liveness) -> None:
    """Raise KafkaError(INVALID_REPLICA_ASSIGNMENT) if no remaining replica is in sync and can lead.

    That happens if the reassignment drops the only in-sync replica, which an earlier reassignment was adding.
    """
    led = with_leader(tp, draft, live, allow_unclean=False)
    if not draft.isr or (led.leader == NO_LEADER and state.leader != NO_LEADER):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{tp}: of replicas {list(draft.replicas)} none is in sync and can lead, the ISR is "
            f"{list(state.isr)}: wait until one has caught up, or keep a replica that is in sync",
        )
