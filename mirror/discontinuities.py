"""Breaks between the source's records and the copied ones, which an operator may accept.

A partition that cannot be resumed stays in quarantine, and its error names the setting to go on all the same.
The setting names the last sync's source offset. A later sync has another one, so that the setting accepts one
break and no later one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafka_client import TopicMetadata, TopicPartition
from mirror.errors import (
    MirrorError,
    RecordsLost,
    SourcePurged,
    SourceRecreated,
    TargetRecreated,
    TargetTruncated,
)
from mirror.offsets import NO_ID, OffsetSync, OffsetSyncs
from mirror.places import Places
from mirror.position import LogEnds, Position

ACCEPT_KEY = "accept.discontinuities"
_FROM_THE_START = (SourceRecreated, TargetRecreated, TargetTruncated)
"""Errors after which the copy starts again at the source's log start."""
_AFTER_A_LOSS = (SourcePurged, RecordsLost)
"""Errors after which the copy goes on at the source's log start, without what the source has lost."""


class Discontinuities:
    """The breaks that an operator has accepted, each named by a partition and its last sync's offset."""

    def __init__(self, accepted: Places = ()) -> None:
        self._accepted = frozenset(accepted)

    def accepts(self, sync: OffsetSync) -> bool:
        """Return True if the break after this sync is accepted."""
        return (sync.tp, sync.next_upstream) in self._accepted

    def check_start(self, sync: OffsetSync, source: LogEnds) -> None:
        """Raise RecordsLost if the source's log starts after the sync."""
        if source.start > sync.next_upstream:
            has = f"{source.start} to {source.end}"
            raise RecordsLost(sync.tp, f"offset {sync.next_upstream} is wanted, the source has {has}")

    def resume(self, error: MirrorError, sync: OffsetSync, source: LogEnds, target: LogEnds) -> Position:
        """Return the position to go on from if the break is accepted, else raise `error` with the setting.

        The producer is left open: a new identity makes the copy write a sync before its first record.
        """
        upstream = _next_upstream(error, sync, source, target)
        if upstream is None:
            raise error
        if not self.accepts(sync):
            raise with_setting(error, sync, upstream)
        return Position(upstream, target.end)

    def check_exist(self, topic: str, syncs: OffsetSyncs, partitions: Iterable[int]) -> None:
        """Raise TargetRecreated if a remote topic that does not exist has syncs, unless all are accepted."""
        for partition in partitions:
            sync = syncs.latest(TopicPartition(topic, partition))
            if sync is not None and not self.accepts(sync):
                raise with_setting(deleted(sync.tp), sync, None)


def check_remote_topic(
    tp: TopicPartition, remote: str, copied_id: bytes, remote_topics: Mapping[str, TopicMetadata]
) -> None:
    """Raise TargetRecreated if the remote topic of a copy was deleted, or deleted and created again."""
    topic = remote_topics.get(remote)
    if topic is None:
        raise deleted(tp)
    topic_id = topic.topic_id or NO_ID
    if any(topic_id) and any(copied_id) and topic_id != copied_id:
        raise TargetRecreated(
            tp, f"{remote} has topic id {topic_id.hex()}, it was {copied_id.hex()} when copying began"
        )


def deleted(tp: TopicPartition) -> TargetRecreated:
    """Return the error of a partition whose remote topic no longer exists."""
    return TargetRecreated(tp, "the remote topic was deleted, with all that was copied")


def with_setting(error: MirrorError, sync: OffsetSync, upstream: int | None) -> MirrorError:
    """Return the error with the setting that accepts it, and the source offset to go on from."""
    start = "the source's log start" if upstream is None else f"source offset {upstream}"
    named = f"{ACCEPT_KEY}={sync.tp}@{sync.next_upstream}"
    return type(error)(error.tp, f"{error.what}. To go on all the same, from {start}, set {named}")


def _next_upstream(error: MirrorError, sync: OffsetSync, source: LogEnds, target: LogEnds) -> int | None:
    if isinstance(error, _FROM_THE_START):
        return source.start
    if isinstance(error, _AFTER_A_LOSS):
        # Each copied record has an offset of its own, so that no record before this one is left to copy.
        copied = max(target.end - sync.next_downstream, 0)
        return min(max(source.start, sync.next_upstream + copied), source.end)
    return None
