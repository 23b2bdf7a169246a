"""Stray logs: logs on a broker's disk that do not belong to that broker.

They are set aside and logged, never opened. An old replica that passed for the current one would restore
deleted records, or records of another topic of the same name.

A log may lack its topic id: a power loss removed the id before it was flushed, or the log is from a broker
before Kafka 2.8. If other replicas are in sync, such a log is stray, as for KRaft's brokers. The topic may
have been deleted and created again while this broker was away, and the others have its records. If no other
replica is in sync, the log is kept, as for ZooKeeper's brokers. It is a replica of
this very topic, since a broker that is away when a topic is created is not in sync.
"""

from __future__ import annotations

from kafka_client.topic_partition import TopicPartition
from logd.metadata.image import ClusterImage


def why_stray(
    image: ClusterImage, broker: int, tp: TopicPartition, topic_id: bytes | None, *, is_empty: bool
) -> str:
    """Return the reason why a log is stray on this broker, for people; empty if it is not.

    `topic_id` is the log's topic id, or None; `is_empty` is true if the log never had a record. The image
    must be the cluster's, from its controller, not a standalone broker's, which has no assignments.
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
