"""The next state of a partition: a caller proposes a draft, and this module makes it consistent.

1. A replica that is offline leaves the ISR. If none is online the ISR stays: it is never empty. Its last
   replicas are those that may lead without losing a record.
2. A leader that is in the ISR and online stays. Otherwise the first replica that is in the ISR and can
   lead follows it. If no replica in the ISR is online and the topic allows it, any replica that can lead
   does: an unclean election, after which the ISR is that replica. Otherwise there is no leader.
3. A reassignment is complete once three conditions hold (KIP-455). All added replicas are in the ISR. A
   remaining replica is in it too. A remaining replica of the ISR can lead.
4. The partition epoch grows by one with every change. The leader epoch grows if the leader changes or
   restarts. It also grows if a replica was removed, which must not count as in sync by its old epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.liveness import Liveness
from logd.metadata.image import NO_LEADER, Change, ClusterImage, PartitionImage

UncleanAllowed: TypeAlias = Callable[[str], bool]
"""Returns True if ``unclean.leader.election.enable`` holds for a topic."""


class PartitionChangeBuilder:
    """A builder of consistent changes from drafts.

    A draft takes effect here at once: the next draft of the same partition starts from the resulting state.
    """

    def __init__(self, image: ClusterImage, live: Liveness, unclean_allowed: UncleanAllowed) -> None:
        self.live = live
        self.changes: list[Change] = []
        self.unclean: list[TopicPartition] = []
        self._image = image
        self._unclean_allowed = unclean_allowed
        self._decided: dict[TopicPartition, PartitionImage] = {}

    def state(self, tp: TopicPartition) -> PartitionImage | None:
        """Return the partition's state with the decisions made so far; None if it is unknown."""
        return self._decided.get(tp) or self._image.partitions.get(tp)

    def settle(
        self,
        tp: TopicPartition,
        draft: PartitionImage,
        *,
        begins_anew: bool = False,
        allow_unclean: bool | None = None,
    ) -> PartitionImage:
        """Return the state that follows from a draft, which has the epochs of the partition's `state`.

        ``begins_anew``: the leader has restarted; if it leads again, the leader epoch grows.
        ``allow_unclean`` overrides the topic's setting.
        """
        before = self.state(tp)
        assert before is not None, f"{tp} is not in the image"
        present = _without_offline(tp, draft, self.live)
        if allow_unclean is None:
            allow_unclean = self._unclean_allowed(tp.topic)
        led = with_leader(tp, present, self.live, allow_unclean=allow_unclean)
        if led.leader != NO_LEADER and led.leader not in present.isr:
            self.unclean.append(tp)
        after = _numbered(before, _completed(tp, led, self.live), begins_anew=begins_anew)
        if after != before:
            self._decided[tp] = after
            self.changes.append(after.as_change(tp))
        return after


def with_leader(
    tp: TopicPartition, state: PartitionImage, live: Liveness, *, allow_unclean: bool
) -> PartitionImage:
    """Return the state with a valid leader: the current one if possible, else another one, or none."""
    if state.leader in state.isr and live.is_online(tp, state.leader):
        return state
    for replica in state.replicas:
        if replica in state.isr and live.can_lead(tp, replica):
            return replace(state, leader=replica)
    if allow_unclean and not any(live.is_online(tp, replica) for replica in state.isr):
        # Replicas that are being added come last: they may have no records yet.
        for replica in (*state.origin, *state.adding):
            if live.can_lead(tp, replica):
                return replace(state, leader=replica, isr=(replica,))
    return replace(state, leader=NO_LEADER)


def _without_offline(tp: TopicPartition, state: PartitionImage, live: Liveness) -> PartitionImage:
    online = tuple(replica for replica in state.isr if live.is_online(tp, replica))
    return replace(state, isr=online) if online and online != state.isr else state


def _completed(tp: TopicPartition, state: PartitionImage, live: Liveness) -> PartitionImage:
    if not state.is_reassigning or state.leader == NO_LEADER or not set(state.adding) <= set(state.isr):
        return state
    target = state.target
    isr = tuple(replica for replica in state.isr if replica in target)
    if not isr:
        return state
    done = replace(state, replicas=target, isr=isr, adding=(), removing=())
    led = with_leader(tp, done, live, allow_unclean=False)
    return state if led.leader == NO_LEADER else led


def _numbered(before: PartitionImage, after: PartitionImage, *, begins_anew: bool) -> PartitionImage:
    begins_anew = begins_anew and after.leader != NO_LEADER
    if after == before and not begins_anew:
        return before
    fenced = begins_anew or after.leader != before.leader or not set(before.replicas) <= set(after.replicas)
    return replace(
        after, leader_epoch=before.leader_epoch + fenced, partition_epoch=before.partition_epoch + 1
    )
