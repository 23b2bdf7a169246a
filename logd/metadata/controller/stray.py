"""Logs that a broker finds on its disk, and nobody has assigned to it.

They are set aside and said, never opened: an old replica that is taken for the partition's would bring back
records that were deleted, or another topic's of the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from logd.metadata.image import ClusterImage
from logd.topic_partition import TopicPartition


class StrayLog(NamedTuple):
    """A log, and why it is not this broker's to hold."""

    tp: TopicPartition
    reason: str


def stray_logs(
    image: ClusterImage, broker: int, found: Mapping[TopicPartition, bytes | None]
) -> list[StrayLog]:
    """Of the logs found, by partition the topic id that the log says (None where it says none), the stray.

    The image must be the cluster's, not an embedded node's: that one assigns nothing.
    """
    reasons = ((tp, _why_stray(image, broker, tp, found[tp])) for tp in sorted(found))
    return [StrayLog(tp, reason) for tp, reason in reasons if reason]


def _why_stray(image: ClusterImage, broker: int, tp: TopicPartition, topic_id: bytes | None) -> str:
    topic = image.topics.get(tp.topic)
    if topic is None:
        return f"there is no topic {tp.topic}"
    if topic_id is not None and topic_id != topic.topic_id:
        return f"it is of a topic with id {topic_id.hex()}, {tp.topic} has {topic.topic_id.hex()} now"
    state = image.partitions.get(tp)
    if state is None:
        return f"topic {tp.topic} has {topic.partitions} partitions, there is no {tp.partition}"
    if broker not in state.replicas:
        return f"broker {broker} is not among its replicas {list(state.replicas)}"
    return ""
