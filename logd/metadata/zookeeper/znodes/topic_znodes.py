"""The znodes of Kafka 3's topics and partitions, encoded and decoded: ids, assignments, states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from logd.metadata.zookeeper.errors import BadZnode
from logd.metadata.zookeeper.znodes import paths
from logd.metadata.zookeeper.znodes.znodes import REWRITE, decoded

_encode = msgspec.json.encode


class Assignment(NamedTuple):
    """The brokers that hold a partition; ``replicas`` includes those being added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicZnode:
    """The value of a topic's znode; `topic_id` is None if a broker before Kafka 2.8 created the topic."""

    topic_id: bytes | None
    assignments: Mapping[int, Assignment]


def encode_topic(topic: TopicZnode) -> bytes:
    """Encode `/brokers/topics/T` in version 3.

    Without a topic id, the value is that of Kafka's version 2, except for the version number.
    """
    each = topic.assignments.items()
    document: dict[str, Any] = {
        "version": 3,
        "partitions": {str(index): of.replicas for index, of in each},
        "adding_replicas": {str(index): of.adding for index, of in each if of.adding},
        "removing_replicas": {str(index): of.removing for index, of in each if of.removing},
    }
    if topic.topic_id is not None:
        document["topic_id"] = paths.topic_id_text(topic.topic_id)
    return _encode(document)


def decode_topic(name: str, data: bytes) -> TopicZnode:
    """Decode `/brokers/topics/T` of versions 1 to 3. Raises BadZnode."""
    path = paths.topic(name)
    document = decoded(path, data, _Topic, REWRITE)
    try:
        topic_id = None if document.topic_id is None else paths.topic_id_of(document.topic_id)
        indexes = {int(index): index for index in document.partitions}
    except ValueError as error:
        raise BadZnode(path, data, str(error), REWRITE) from None
    if any(not replicas for replicas in document.partitions.values()):
        raise BadZnode(path, data, "a partition has no replicas", REWRITE)
    return TopicZnode(
        topic_id=topic_id,
        assignments={
            index: Assignment(
                document.partitions[key],
                document.adding_replicas.get(key, ()),
                document.removing_replicas.get(key, ()),
            )
            for index, key in sorted(indexes.items())
        },
    )


class PartitionState(NamedTuple):
    """The value of `…/partitions/P/state`; the znode's version is the partition's epoch."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    is_recovering: bool = False
    """True after an unclean election, until the leader has recovered (KIP-704)."""


def encode_state(state: PartitionState) -> bytes:
    """Encode a partition's state in version 1."""
    document = {
        "version": 1,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "controller_epoch": state.controller_epoch,
        "isr": state.isr,
    }
    if state.is_recovering:
        document["leader_recovery_state"] = 1
    return _encode(document)


def decode_state(path: str, data: bytes) -> PartitionState:
    """Decode a partition's state. Raises BadZnode."""
    document = decoded(path, data, _State, REWRITE)
    return PartitionState(
        document.leader,
        document.leader_epoch,
        document.isr,
        document.controller_epoch,
        document.leader_recovery_state == 1,
    )


class _Topic(msgspec.Struct):
    partitions: dict[str, tuple[int, ...]] = {}
    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}
    topic_id: str | None = None


class _State(msgspec.Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int
    leader_recovery_state: int | None = None
