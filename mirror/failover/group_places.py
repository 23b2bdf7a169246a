"""Where consumer groups would go on in the target after a failover. Without I/O.

Groups go on at their checkpoints, or where they have committed in the target if that is later. A group of the
source may also read copies of the target's own topics, as after an earlier failover. Its places there are
translated back into the original topics; MirrorMaker has no checkpoints of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafka_client import TopicPartition
from mirror.failover.facts import Facts, LogEnds, StampedCheckpoint, Syncs, TargetGroup


class PlaceState(StrEnum):
    """The worth of a group's place in the target."""

    CURRENT = "current"
    """The best that the offset syncs allow for the group's offset in the source."""
    STALE = "stale"
    """The group has gone on in the source, and more is read again than the offset syncs would require."""
    AHEAD = "ahead"
    """The group went back in the source: records would be skipped."""
    NONE = "no checkpoint"
    """The group has an offset in the source, and no place in the target."""
    DELETED = "not in source"
    """The group has no offset in the source any more."""
    UNKNOWN = "unknown"
    """The group's offset in the source, or the offset syncs, cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlace:
    """A group's place in one partition of the target. Numbers are None where they are unknown.

    `rereads_max` bounds the records that the group has committed in the source and reads again.
    """

    group: str
    tp: TopicPartition
    remote: TopicPartition
    state: PlaceState
    source_offset: int | None
    checkpoint_source_offset: int | None
    checkpoint_seconds: float | None
    """Age of the checkpoint. A group that stands still gets no new one."""
    committed: int | None
    """The offset that the group has committed in the target."""
    offset: int | None
    """The offset at which the group goes on in the target."""
    rereads_max: int | None
    target_state: str
    """The group's state in the target: "Dead" if there is none, "Stable" if it has members."""
    metadata: str = ""


def group_places(facts: Facts) -> Iterator[GroupPlace]:
    """Yield the place of every group and partition, in order."""
    checkpoints: dict[str, dict[TopicPartition, StampedCheckpoint]] = {}
    for each in facts.checkpoints:
        checkpoint = each.checkpoint
        checkpoints.setdefault(checkpoint.consumer_group_id, {})[checkpoint.topic_partition] = each
    committed = {} if facts.source is None else facts.source.committed
    for group in sorted(checkpoints.keys() | committed.keys()):
        places = [
            *_forward(facts, group, checkpoints.get(group, {})),
            *_back(facts, group),
        ]
        yield from sorted(places, key=lambda each: each.tp)


def _forward(
    facts: Facts, group: str, checkpoints: Mapping[TopicPartition, StampedCheckpoint]
) -> Iterator[GroupPlace]:
    settings = facts.settings
    offsets = _committed(facts, group)
    remotes = {
        facts.remote(tp): tp
        for tp in offsets or ()
        if settings.topics.takes(tp.topic) and not settings.policy.is_heartbeats_topic(tp.topic)
    }
    for remote in {**remotes, **dict.fromkeys(checkpoints)}:
        upstream = settings.policy.upstream_topic(remote.topic)
        tp = remotes.get(remote) or TopicPartition(upstream or remote.topic, remote.partition)
        upstream_offset = None if offsets is None else offsets.get(tp)
        yield _place(facts, group, tp, upstream_offset, checkpoints.get(remote), offsets is not None)


def _place(
    facts: Facts,
    group: str,
    tp: TopicPartition,
    upstream: int | None,
    stamped: StampedCheckpoint | None,
    is_source_known: bool,
) -> GroupPlace:
    remote, target = facts.remote(tp), _target(facts, group)
    committed = target.committed.get(remote)
    ours = None if committed is None else committed.offset
    checkpoint = None if stamped is None else stamped.checkpoint
    offset = _later(ours, None if checkpoint is None else checkpoint.downstream_offset)
    highest = _highest(facts, tp, upstream)
    return GroupPlace(
        group=group,
        tp=tp,
        remote=remote,
        state=_state(facts.syncs, tp, upstream, offset, highest) if is_source_known else PlaceState.UNKNOWN,
        source_offset=upstream,
        checkpoint_source_offset=None if checkpoint is None else checkpoint.upstream_offset,
        checkpoint_seconds=None if stamped is None else max(facts.now - stamped.written_ms / 1000, 0.0),
        committed=ours,
        offset=offset,
        rereads_max=None if offset is None or highest is None else max(highest - offset, 0),
        target_state=target.state,
        metadata="" if checkpoint is None else checkpoint.metadata,
    )


def _state(
    syncs: Syncs | None, tp: TopicPartition, upstream: int | None, offset: int | None, highest: int | None
) -> PlaceState:
    if upstream is None:
        return PlaceState.DELETED
    if offset is None:
        return PlaceState.NONE
    if syncs is None or highest is None:
        return PlaceState.UNKNOWN
    if offset > highest:
        return PlaceState.AHEAD
    translated = syncs.store.translate(tp, upstream)
    return PlaceState.STALE if translated is not None and translated > offset else PlaceState.CURRENT


def _highest(facts: Facts, tp: TopicPartition, upstream: int | None) -> int | None:
    """Return the highest offset of the target that the group may have read up to, or None if unknown."""
    end = facts.target_ends.get(facts.remote(tp), LogEnds()).end
    if end is None or upstream is None or facts.syncs is None:
        return end
    bound = facts.syncs.store.upper_bound(tp, upstream)
    return end if bound is None else min(bound, end)


def _back(facts: Facts, group: str) -> Iterator[GroupPlace]:
    """Yield the group's places in the originals of the target's topics that the source has copies of."""
    policy, syncs, target = facts.settings.policy, facts.back_syncs, _target(facts, group)
    for copy, offset in (_committed(facts, group) or {}).items():
        if policy.topic_source(copy.topic) != facts.settings.target.alias or facts.back_syncs is None:
            continue
        if policy.is_heartbeats_topic(copy.topic):
            continue
        original = TopicPartition(policy.upstream_topic(copy.topic) or copy.topic, copy.partition)
        back = None if syncs is None else syncs.store.translate_back(original, offset)
        ours = target.committed.get(original)
        committed = None if ours is None else ours.offset
        again = None if syncs is None or back is None else syncs.store.translate(original, back)
        yield GroupPlace(
            group=group,
            tp=copy,
            remote=original,
            state=PlaceState.NONE if back is None else PlaceState.CURRENT,
            source_offset=offset,
            checkpoint_source_offset=None,
            checkpoint_seconds=None,
            committed=committed,
            offset=_later(back, committed),
            rereads_max=None if again is None or again < 0 else max(offset - again, 0),
            target_state=target.state,
        )


def _committed(facts: Facts, group: str) -> Mapping[TopicPartition, int] | None:
    """Return the group's offsets in the source, or None if they cannot be read."""
    offsets = None if facts.source is None else facts.source.committed.get(group, {})
    return None if offsets is None else {tp: each.offset for tp, each in offsets.items()}


def _target(facts: Facts, group: str) -> TargetGroup:
    return facts.target_groups.get(group) or TargetGroup(state="Dead", committed={})


def _later(one: int | None, other: int | None) -> int | None:
    offsets = [each for each in (one, other) if each is not None]
    return max(offsets, default=None)
