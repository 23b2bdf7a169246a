"""A partition's next state: whoever changes one hands over a draft, and here it is made to hold together.

1. A replica that is offline leaves the ISR. If none is online the ISR stays: it is never empty, and who
   was last in it is who may lead without losing a record.
2. A leader that is in the ISR and online stays. Otherwise the first replica that is in the ISR and can
   lead follows it; if no one in the ISR is online and the topic allows it, any that can lead: an unclean
   election, after which the ISR is that replica. Otherwise there is no leader.
3. A reassignment is done once all replicas it adds are in the ISR, someone stays in it without those it
   removes, and someone who stays can lead (KIP-455).
4. The partition epoch grows by one where anything has changed; the leader epoch where the leader has, or
   begins anew, or a replica was taken out, which must not be counted in sync by its old epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from kafka_client.topic_partition import TopicPartition
from logd.metadata.controller.liveness import Liveness
from logd.metadata.image import NO_LEADER, Change, ClusterImage, PartitionImage

UncleanAllowed: TypeAlias = Callable[[str], bool]
"""Whether ``unclean.leader.election.enable`` holds for a topic."""


class PartitionChangeBuilder:
    """Takes drafts, and gathers the changes they come to.

    One partition's state counts as decided at once: a second draft of it follows the first.
    """

    def __init__(self, image: ClusterImage, live: Liveness, unclean_allowed: UncleanAllowed) -> None:
        self.live = live
        self.changes: list[Change] = []
        self.unclean: list[TopicPartition] = []
        self._image = image
        self._unclean_allowed = unclean_allowed
        self._decided: dict[TopicPartition, PartitionImage] = {}

    def state(self, tp: TopicPartition) -> PartitionImage | None:
        """Return the partition's state with the decisions made so far."""
        return self._decided.get(tp) or self._image.partitions.get(tp)

    def settle(
        self,
        tp: TopicPartition,
        draft: PartitionImage,
        *,
        begins_anew: bool = False,
        allow_unclean: bool | None = None,
    ) -> PartitionImage:
        """The state that becomes of a draft, which was made of the partition's `state` and has its epochs.

        ``begins_anew``: who leads has started anew, and if it leads again does so in a new epoch.
        ``allow_unclean`` goes before the topic's setting.
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
    """The state with the leader it has, if that one may stay, with another one, or with none."""
    if state.leader in state.isr and live.is_online(tp, state.leader):
        return state
    for replica in state.replicas:
        if replica in state.isr and live.can_lead(tp, replica):
            return replace(state, leader=replica)
    if allow_unclean and not any(live.is_online(tp, replica) for replica in state.isr):
        # Replicas that are only being added come last: they may hold nothing at all.
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
