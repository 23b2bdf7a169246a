"""Decisions that create, grow and delete topics; they place each partition and choose its first leader.

``logd.metadata.decisions`` checks the names and settings of topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.config.topic import TopicConfig
from logd.metadata import decisions
from logd.metadata.controller.decision import Decision
from logd.metadata.controller.liveness import Liveness
from logd.metadata.controller.placement import (
    Replicas,
    Start,
    check_assignments,
    check_factor,
    check_replicas,
    check_same_factor,
    place,
)
from logd.metadata.image import NO_LEADER, Change, ClusterImage, PartitionImage, TopicImage


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to be created.

    ``assignments`` are replicas by partition; if given, they replace ``partitions`` and
    ``replication_factor``. ``topic_id`` is a new id, and ``start`` is random.
    """

    name: str
    topic_id: bytes
    start: Start
    partitions: int = 1
    replication_factor: int = 1
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


def create_topic(image: ClusterImage, new: NewTopic, *, defaults: TopicConfig) -> Decision[TopicImage]:
    """Create a topic, and place its replicas unless they are assigned by hand. The answer is the topic.

    Raises KafkaError as `decisions.create_topic` does, INVALID_REPLICATION_FACTOR, or
    INVALID_REPLICA_ASSIGNMENT.
    """
    count = new.partitions if new.assignments is None else len(new.assignments)
    changes = decisions.create_topic(
        image, new.name, count, new.configs, topic_id=new.topic_id, defaults=defaults
    )
    if new.assignments is None:
        placed = place(image.brokers.values(), count, new.replication_factor, new.start)
    else:
        placed = check_assignments(new.assignments, image.brokers)
    topic = TopicImage(name=new.name, topic_id=new.topic_id, partitions=count, configs=dict(new.configs))
    return Decision(changes + _first_states(image, new.name, 0, placed), topic)


def grow_topic(
    image: ClusterImage, name: str, partitions: int, assignments: Sequence[Sequence[int]] | None = None
) -> Decision[None]:
    """Add partitions up to a total of ``partitions``, each with as many replicas as the first partition.

    ``assignments`` are the replicas of the new partitions, if they are assigned by hand. Raises KafkaError:
    UNKNOWN_TOPIC_OR_PARTITION, INVALID_PARTITIONS, POLICY_VIOLATION, INVALID_REPLICATION_FACTOR or
    INVALID_REPLICA_ASSIGNMENT.
    """
    changes = decisions.grow_topic(image, name, partitions)
    before = image.topics[name].partitions
    pattern = image.partitions[TopicPartition(name, 0)].target
    if assignments is None:
        placed = _placed_further(image, pattern, before, partitions - before)
    else:
        placed = _assigned_further(image, pattern, before, partitions - before, assignments)
    return Decision(changes + _first_states(image, name, before, placed), None)


def delete_topic(image: ClusterImage, name: str, topic_id: bytes) -> Decision[None]:
    """Delete a topic.

    Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION) if there is no such topic, or if the topic of that name has
    another id.
    """
    return Decision(decisions.delete_topic(image, name, topic_id), None)


def _placed_further(image: ClusterImage, pattern: Replicas, before: int, count: int) -> list[Replicas]:
    """Return the replicas of new partitions.

    The placement continues the round that the first partition began, as in Kafka.
    """
    check_factor(len(pattern), len(image.brokers))
    ids = sorted(image.brokers)
    start = next((index for index, broker in enumerate(ids) if broker >= pattern[0]), 0)
    return place(image.brokers.values(), count, len(pattern), Start(start, start), first_partition=before)


def _assigned_further(
    image: ClusterImage, pattern: Replicas, before: int, count: int, assignments: Sequence[Sequence[int]]
) -> list[Replicas]:
    if len(assignments) != count:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"{len(assignments)} assignments for {count} new partitions: give one for each",
        )
    placed = [
        check_replicas(replicas, image.brokers, f"partition {index}")
        for index, replicas in enumerate(assignments, before)
    ]
    check_same_factor(placed, len(pattern), first_partition=before)
    return placed


def _first_states(image: ClusterImage, name: str, first: int, placed: Sequence[Replicas]) -> list[Change]:
    live = Liveness(image)
    states = ((TopicPartition(name, index), replicas) for index, replicas in enumerate(placed, first))
    return [_first_state(tp, replicas, live).as_change(tp) for tp, replicas in states]


def _first_state(tp: TopicPartition, replicas: Replicas, live: Liveness) -> PartitionImage:
    ready = tuple(replica for replica in replicas if live.can_lead(tp, replica))
    if not ready:
        # All brokers are shutting down. The partition has no records yet, so any replica may lead later.
        return PartitionImage(replicas=replicas, isr=replicas, leader=NO_LEADER)
    return PartitionImage(replicas=replicas, isr=ready, leader=ready[0])
