"""Partitions given to other brokers (KIP-455): begun, cancelled, listed. Settling ends them.

While a partition is reassigned its replicas are those it shall have, in their order, and then those it is to
lose. Replicas that an earlier reassignment was adding and this one does not want go at once.
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
"""By partition, why its reassignment was refused; None where it was not."""


def alter_reassignments(
    image: ClusterImage,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_factor_change: bool = True,
    unclean_allowed: UncleanAllowed,
) -> Decision[Reassigned]:
    """Begin or replace reassignments; a target of None cancels one. Nothing waits: the ISR has to grow first.

    ``allow_factor_change`` is KIP-860's. KafkaErrors of the answer: UNKNOWN_TOPIC_OR_PARTITION,
    INVALID_REPLICA_ASSIGNMENT, INVALID_REPLICATION_FACTOR, NO_REASSIGNMENT_IN_PROGRESS.
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
    """Partitions that are being reassigned: all, or those among the ones asked for."""
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
        # Who holds it already may be away for a while; who is new must be there to begin.
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
    """Refuse to drop replicas that are being added where one of them is all that is in sync."""
    led = with_leader(tp, draft, live, allow_unclean=False)
    if not draft.isr or (led.leader == NO_LEADER and state.leader != NO_LEADER):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{tp}: of replicas {list(draft.replicas)} none is in sync and can lead, the ISR is "
            f"{list(state.isr)}: wait until one has caught up, or keep a replica that is in sync",
        )
