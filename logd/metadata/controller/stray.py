"""Logs that a broker finds on its disk, and that are not its to hold.

They are set aside and said, never opened: an old replica that is taken for the partition's would bring back
records that were deleted, or another topic's of the same name.

A log may not say the id of its topic: a power loss took that before it was flushed, or the log is from a
broker before Kafka 2.8. As KRaft's brokers do, it is not taken by its name, for a topic may have been made
anew under it while this broker was away, and the others have what belongs there. As ZooKeeper's brokers do,
it is, where they have not: who alone is in sync has held this very topic, since whoever is away when a topic
is made is not in sync.
"""

from __future__ import annotations

from kafka_client.topic_partition import TopicPartition
from logd.metadata.image import ClusterImage


def why_stray(
    image: ClusterImage, broker: int, tp: TopicPartition, topic_id: bytes | None, *, is_empty: bool
) -> str:
    """Why a log that was found is not this broker's to hold, for people; empty where it is.

    `topic_id` is what the log says, None where it says nothing; `is_empty` where it never had a record. The
    image must be the cluster's, as its controller tells it, and not a standalone broker's: that assigns
    nothing.
    """
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
    others = [replica for replica in state.isr if replica != broker]
    if topic_id is None and others and not is_empty:
        return f"it does not say its topic's id, and brokers {others} are in sync without it"
    return ""
