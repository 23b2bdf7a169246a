"""TopicLoss: how a worker notices that a topic no longer has the records that it has read."""

from __future__ import annotations

from collections.abc import Iterable

from kafka_client import TopicPartition

_NO_ID = bytes(16)


class TopicLoss:
    """The identity and the starts of a topic's partitions, up to the last look. It does no I/O.

    A compacted topic has an offset for ever, and its partitions keep their starts. So another topic id means
    that the topic was deleted and made again, and a later start that its records were deleted.
    """

    def __init__(self) -> None:
        self._topic_id = _NO_ID
        self._starts: dict[TopicPartition, int] = {}

    def is_other_topic(self, topic_id: bytes) -> bool:
        """Return True if the id is another one than at the last call; one that is unknown says nothing."""
        if not any(topic_id):
            return False
        before, self._topic_id = self._topic_id, topic_id
        return any(before) and before != topic_id

    def is_cut(self, tp: TopicPartition, start: int, position: int) -> bool:
        """Return True if records before `position` were deleted since the last call; a start of -1 says
        nothing.
        """
        if start < 0:
            return False
        before = self._starts.get(tp, start)
        self._starts[tp] = start
        return before < start and before < position

    def forget_starts(self, tps: Iterable[TopicPartition]) -> None:
        """Forget the partitions' starts, because they are read again from wherever they start now."""
        for tp in tps:
            self._starts.pop(tp, None)
