"""The tree of the cluster's metadata in ZooKeeper, read whole and returned as changes of the image.

Reads of one kind are pipelined, up to the bound of requests in flight. The tree also keeps what the store
needs for later writes and no image has: versions, and which znodes of a topic exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_client.acl import ResourcePattern
from kafka_client.topic_partition import TopicPartition
from logd.metadata.acls import acls_change
from logd.metadata.image import Change, entity_configs, user_configs
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes import acl_znodes, paths, topic_znodes, znodes
from logd.metadata.zookeeper.znodes.topic_znodes import Assignment, TopicZnode

NO_TOPIC_ID: Final = bytes(16)
"""The id of a topic that a broker before Kafka 2.8 created; the controller gives it a new one."""
SLICE: Final = 500
"""Partitions that are decoded before other tasks of the loop may run."""
UNWRITTEN: Final = -1
"""The epochs of a partition without a state, whose creation was interrupted or is yet to be done."""


@dataclass(slots=True)
class KnownTopic:
    """A topic's znode as it was last read or written."""

    topic_id: bytes
    assignments: dict[int, Assignment]
    version: int
    has_partitions: bool = True
    """True if the parent znode of the partitions exists."""

    def encoded(self) -> bytes:
        """Return the encoded value of the topic's znode."""
        return topic_znodes.encode_topic(TopicZnode(topic_id=self.topic_id, assignments=self.assignments))


class KnownConfigs(NamedTuple):
    """A znode of settings as it was last read or written."""

    configs: dict[str, str]
    version: int


@dataclass(slots=True)
class Tree:
    """The metadata in ZooKeeper; `changes` build the image of the cluster."""

    topics: dict[str, KnownTopic] = field(default_factory=dict)
    configs: dict[str, KnownConfigs] = field(default_factory=dict)
    """The settings of each entity, by the path of the znode."""
    users_with_clients: set[str] = field(default_factory=set)
    """The paths of users' znodes that have a znode for the quotas of their client ids."""
    acls: dict[str, int] = field(default_factory=dict)
    """The versions of the znodes of ACLs, by path."""
    stateless: set[TopicPartition] = field(default_factory=set)
    """Partitions that have a znode, but no znode of their state."""
    written: dict[TopicPartition, int] = field(default_factory=dict)
    """The transaction (zxid) that wrote each partition's state.

    If a replica's broker registered later, it may have restarted since, and may be out of sync.
    """
    producer_ids: tuple[int, int] = (0, 0)
    """The version of the znode of producer ids, and the first id that was not yet given out."""
    changes: list[Change] = field(default_factory=list)


async def read_tree(session: Session) -> Tree:
    """Read all metadata. Raises BadZnode for data that cannot be used."""
    await session.sync()
    tree = Tree()
    await _read_topics(session, tree)
    await _read_partitions(session, tree)
    await _read_broker_configs(session, tree)
    await _read_user_configs(session, tree)
    await _read_acls(session, tree)
    await _read_producer_ids(session, tree)
    await _read_brokers(session, tree)
    return tree


async def _read_topics(session: Session, tree: Tree) -> None:
    await _read_configs(session, tree, "topics")
    names = await session.children(paths.TOPICS)
    values = await session.find_all([paths.topic(name) for name in names])
    for name, value in zip(names, values, strict=True):
        if value is None:
            continue
        await asyncio.sleep(0)
        topic = topic_znodes.decode_topic(name, value[0])
        topic_state = KnownTopic(topic.topic_id or NO_TOPIC_ID, dict(topic.assignments), value[1].version)
        tree.topics[name] = topic_state
        configs = tree.configs.get(paths.config("topics", name))
        tree.changes.append(
            {
                "type": "topic",
                "name": name,
                "id": topic_state.topic_id.hex(),
                "partitions": max(topic_state.assignments, default=-1) + 1,
                "configs": {} if configs is None else configs.configs,
            }
        )


async def _read_configs(session: Session, tree: Tree, kind: str) -> list[str]:
    """Read the settings of all topics, brokers or users, by `kind`; return their names."""
    names = await session.find_children(f"{paths.CONFIG}/{kind}")
    all_paths = [paths.config(kind, name) for name in names]
    for path, value in zip(all_paths, await session.find_all(all_paths), strict=True):
        if value is not None:
            tree.configs[path] = KnownConfigs(znodes.decode_config(path, value[0]), value[1].version)
    return names


async def _read_partitions(session: Session, tree: Tree) -> None:
    partitions = [
        TopicPartition(name, index) for name, topic in tree.topics.items() for index in topic.assignments
    ]
    incomplete = set()
    # Read in slices, since no other task of the loop runs while a slice is decoded.
    for begin in range(0, len(partitions), SLICE):
        some = partitions[begin : begin + SLICE]
        values = await session.find_all([paths.state(*tp) for tp in some])
        for tp, value in zip(some, values, strict=True):
            assignment = tree.topics[tp.topic].assignments[tp.partition]
            tree.changes.append(_partition(tp, assignment, value and (value[0], value[1].version)))
            if value is None:
                incomplete.add(tp.topic)
            else:
                tree.written[tp] = value[1].mzxid
    for name in incomplete:
        await _read_halves(session, tree, name, tree.topics[name])


def _partition(tp: TopicPartition, assignment: Assignment, value: tuple[bytes, int] | None) -> Change:
    change: Change = {
        "type": "partition",
        "topic": tp.topic,
        "partition": tp.partition,
        "replicas": list(assignment.replicas),
        "adding": list(assignment.adding),
        "removing": list(assignment.removing),
    }
    if value is None:
        # The partition has no records yet, so all its replicas are in sync.
        epochs = {"leader_epoch": UNWRITTEN, "partition_epoch": UNWRITTEN}
        return change | {"isr": list(assignment.replicas), "leader": -1} | epochs
    state = topic_znodes.decode_state(paths.state(*tp), value[0])
    return change | {
        "isr": list(state.isr),
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": value[1],
    }


async def _read_halves(session: Session, tree: Tree, name: str, topic: KnownTopic) -> None:
    topic.has_partitions = await session.exists(paths.partitions(name)) is not None
    existing = {int(index) for index in await session.find_children(paths.partitions(name))}
    indexes = [index for index in topic.assignments if index in existing]
    for index, children in zip(
        indexes,
        await session.children_of_all([paths.partition(name, index) for index in indexes]),
        strict=True,
    ):
        if not children:
            tree.stateless.add(TopicPartition(name, index))


async def _read_broker_configs(session: Session, tree: Tree) -> None:
    for name in await _read_configs(session, tree, "brokers"):
        current = tree.configs.get(paths.config("brokers", name))
        if current is not None:
            broker = "" if name == paths.DEFAULT_ENTITY else name
            tree.changes.append({"type": "broker-configs", "broker": broker, "configs": current.configs})


async def _read_user_configs(session: Session, tree: Tree) -> None:
    names = await _read_configs(session, tree, "users")
    for name in names:
        current = tree.configs.get(paths.config("users", name))
        if current is None or not current.configs:
            continue
        if name == paths.DEFAULT_ENTITY:
            tree.changes.append(entity_configs(f"users/{name}", current.configs))
        else:
            tree.changes.append(user_configs(paths.desanitized(name), current.configs))
    await _read_entity_configs(session, tree, "clients")
    await _read_entity_configs(session, tree, "ips")
    parents = [paths.config("users", name) for name in names]
    for name, children in zip(names, await session.children_of_all(parents), strict=True):
        if "clients" in children:
            tree.users_with_clients.add(paths.config("users", name))
            await _read_entity_configs(session, tree, f"users/{name}/clients")


async def _read_entity_configs(session: Session, tree: Tree, kind: str) -> None:
    for name in await _read_configs(session, tree, kind):
        current = tree.configs.get(paths.config(kind, name))
        if current is not None and current.configs:
            tree.changes.append(entity_configs(f"{kind}/{name}", current.configs))


async def _read_acls(session: Session, tree: Tree) -> None:
    parents = [
        (pattern_type, resource_type, f"{root}/{name}")
        for pattern_type, root in acl_znodes.ROOTS.items()
        for name, resource_type in acl_znodes.TYPES.items()
    ]
    children = await session.children_of_all([path for _, _, path in parents])
    patterns = [
        ResourcePattern(resource_type, pattern_type, name)
        for (pattern_type, resource_type, _), names in zip(parents, children, strict=True)
        for name in names
    ]
    all_paths = [acl_znodes.path_of(pattern) for pattern in patterns]
    values = await session.find_all(all_paths)
    for pattern, path, value in zip(patterns, all_paths, values, strict=True):
        if value is not None:
            tree.acls[path] = value[1].version
            if entries := acl_znodes.decode_entries(path, value[0]):
                tree.changes.append(acls_change(pattern, entries))


async def _read_producer_ids(session: Session, tree: Tree) -> None:
    value, stat = await session.get(paths.PRODUCER_ID_BLOCK)
    # The znode is created empty, and has a block after the first request for one.
    following = znodes.decode_producer_ids(value).end + 1 if value else 0
    tree.producer_ids = stat.version, following
    tree.changes.append({"type": "producer-ids", "next": following})


async def _read_brokers(session: Session, tree: Tree) -> None:
    ids = [int(name) for name in await session.children(paths.BROKER_IDS) if name.isdecimal()]
    values = await session.find_all([paths.broker(broker_id) for broker_id in ids])
    for broker_id, value in zip(ids, values, strict=True):
        if value is not None:
            broker = znodes.decode_registration(broker_id, value[0])
            tree.changes.append(broker_change(broker_id, broker, value[1].czxid))


def broker_change(broker_id: int, broker: znodes.Registration, epoch: int) -> Change:
    """Return the change that adds a live broker, as described by its registration."""
    return {
        "type": "broker",
        "id": broker_id,
        "epoch": epoch,
        "rack": broker.rack,
        "endpoints": [list(endpoint) for endpoint in broker.endpoints],
        "is_shutting_down": broker.is_shutting_down,
        "offline_log_dirs": [],
    }


def below(path: str, tree: dict[str, list[str]]) -> Iterator[str]:
    """Yield the paths below a path and then the path itself, children before their parents."""
    for name in tree.get(path, ()):
        yield from below(f"{path}/{name}", tree)
    yield path
