"""The store of the cluster's metadata in ZooKeeper: it loads changes of the image, and writes them as znodes.

Each write is conditional on the last known version of the znode, and on the controller's epoch. A partition's
epoch is the version of its state's znode, so a change implies the expected version. Live brokers and their
offline replicas are not written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kafka_client.topic_partition import TopicPartition
from logd.metadata.acls import changed_acls
from logd.metadata.image import PRODUCER_ID_BLOCK, Change, ClusterImage
from logd.metadata.zookeeper.batches import write_all
from logd.metadata.zookeeper.election import Elected
from logd.metadata.zookeeper.errors import NodeExists, NoNode
from logd.metadata.zookeeper.session.operations import Create, Delete, SetData, Write
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.znodes import acl_znodes, paths, topic_znodes, znodes
from logd.metadata.zookeeper.znodes.topic_znodes import Assignment, PartitionState
from logd.metadata.zookeeper.znodes.tree import SLICE, KnownConfigs, KnownTopic, Tree, below, read_tree
from logd.metadata.zookeeper.znodes.znodes import ProducerIdBlock

NEVER_WRITTEN: Final = frozenset(("broker", "broker-gone", "replicas-offline", "decoy-key"))

log = logging.getLogger("logd.zookeeper")


class ZooKeeperStore:
    """The store of one controller's term: call `load` first, then `write`, one task at a time.

    After an error the changes may be written in part: resign, or `load` again.
    """

    def __init__(self, session: Session, elected: Elected) -> None:
        self._session = session
        self._elected = elected
        self._tree: Tree | None = None
        self._written: dict[TopicPartition, int] = {}

    async def load(self) -> list[Change]:
        """Return all stored metadata, as changes that build the image: topics before their partitions.

        Some broker must have called `cluster.prepare` before. A topic from before Kafka 2.8 has an id of
        zeros. A partition whose creation was interrupted has no leader and the epochs -1, and all its
        replicas are in sync. Raises BadZnode.
        """
        self._tree = None
        self._tree = await read_tree(self._session)
        changes, self._tree.changes = self._tree.changes, []
        self._written, self._tree.written = self._tree.written, {}
        return changes

    def restarted(self, image: ClusterImage) -> dict[int, list[TopicPartition]]:
        """Return, by live broker, the partitions whose loaded state is older than the broker's registration.

        The broker may have lost records of them since. Call it once after `load`.
        """
        written, self._written = self._written, {}
        by_broker: dict[int, list[TopicPartition]] = {}
        for tp, zxid in written.items():
            for replica in image.partitions[tp].replicas:
                broker = image.brokers.get(replica)
                if broker is not None and broker.epoch > zxid:
                    by_broker.setdefault(replica, []).append(tp)
        return by_broker

    async def write(self, changes: Sequence[Change]) -> None:
        """Write the changes in order; they are durable on a majority of the ensemble on return.

        Raises ControllerMoved if a newer controller has been elected. Raises BadVersion, NodeExists or NoNode
        if another writer has changed the loaded znodes, and NotAllowed. Few changes are written all or none.
        Of many, a part may be written; the next controller that loads continues from there.
        """
        tree = self._tree
        assert tree is not None, "load comes first"
        # The plan updates the tree, which is valid again only after the changes are written.
        self._tree = None
        plan = Plan(tree, self._elected)
        for number, change in enumerate(changes, 1):
            if number % SLICE == 0:
                await asyncio.sleep(0)
            if change["type"] != "topic-deleted":
                plan.add(change)
                continue
            await write_all(self._session, self._elected, plan.operations())
            await self._delete(tree, change["name"])
            plan = Plan(tree, self._elected)
        await write_all(self._session, self._elected, plan.operations())
        self._tree = tree

    async def _delete(self, tree: Tree, name: str) -> None:
        """Delete all znodes of a topic.

        Operators request deletions by a znode of their own, and may delete or create that znode meanwhile. If
        that happens, the topic's znodes are read again.
        """
        while True:
            plan = Plan(tree, self._elected)
            await self._plan_deletion(plan, name)
            try:
                await write_all(self._session, self._elected, plan.operations())
                return
            except (NodeExists, NoNode) as error:
                if error.path != paths.deletion(name):
                    raise
                log.info("topic %s is being deleted, and somebody has changed %s", name, error.path)

    async def _plan_deletion(self, plan: Plan, name: str) -> None:
        """Plan the deletion of a topic from its current znodes.

        The tree may not have all of them, since the topic's creation or deletion may have been interrupted.
        """
        session, topic = self._session, paths.topic(name)
        indexes = await session.find_children(paths.partitions(name))
        each = [f"{paths.partitions(name)}/{index}" for index in indexes]
        tree = dict(zip(each, await session.children_of_all(each), strict=True))
        tree[paths.partitions(name)] = indexes
        tree[topic] = await session.find_children(topic)
        others = [
            path
            for path in (paths.config("topics", name), paths.deletion(name))
            if await session.exists(path) is not None
        ]
        is_there = await session.exists(topic) is not None
        plan.delete_topic(name, [*below(topic, tree)] if is_there else [], others)


class Plan:
    """The conversion of changes to operations, which also updates the known state of the tree."""

    def __init__(self, tree: Tree, elected: Elected) -> None:
        self._tree = tree
        self._elected = elected
        self._parts: list[list[Write] | str] = []
        """Operations, or the name of a topic whose znode is to be written at this place."""
        self._created: dict[str, KnownTopic] = {}
        self._changed: set[str] = set()

    def add(self, change: Change) -> None:
        """Add any change except the deletion of a topic."""
        match change["type"]:
            case "topic":
                self._topic(change)
            case "partition":
                self._partition(change)
            case "broker-configs":
                entity = change["broker"] or paths.DEFAULT_ENTITY
                self._parts.append([*self._configs("brokers", entity, change["configs"], is_told=True)])
            case "user-configs":
                entity = paths.sanitized(change["user"])
                self._parts.append([*self._configs("users", entity, change["configs"], is_told=True)])
            case "acls":
                self._parts.append([*self._acls(change)])
            case "producer-ids":
                self._parts.append([self._producer_ids(change)])
            case other:
                assert other in NEVER_WRITTEN, f"there is no znode for a change of type {other}"

    def delete_topic(self, name: str, children: Sequence[str], others: Sequence[str]) -> None:
        """Add the deletion of a topic: of `children`, and then of `others`.

        `children` are the topic's znodes, children before parents. `others` are its settings and the request
        to delete it, as far as they exist.
        """
        if not (children or others):
            return
        # The marker exists while several batches delete the topic, so that a later controller continues.
        marker = [] if paths.deletion(name) in others else [Create(paths.deletion(name))]
        self._parts.append([*marker, *map(Delete, children), *map(Delete, others)])
        if marker:
            self._parts.append([Delete(paths.deletion(name))])
        topic = self._tree.topics.pop(name, None)
        self._tree.configs.pop(paths.config("topics", name), None)
        for index in topic.assignments if topic is not None else ():
            self._tree.stateless.discard(TopicPartition(name, index))

    def operations(self) -> Iterator[Write]:
        """Yield all operations; a topic's znode is written once, with all changes to it."""
        for part in self._parts:
            if not isinstance(part, str):
                yield from part
                continue
            topic = self._tree.topics[part]
            if part in self._created:
                yield Create(paths.topic(part), topic.encoded())
                yield Create(paths.partitions(part))
            else:
                yield SetData(paths.topic(part), topic.encoded(), topic.version - 1)
                if not topic.has_partitions:
                    topic.has_partitions = True
                    yield Create(paths.partitions(part))

    def _topic(self, change: Change) -> None:
        name, topic_id = change["name"], bytes.fromhex(change["id"])
        topic = self._tree.topics.get(name)
        self._parts.append([*self._configs("topics", name, change["configs"], is_told=topic is not None)])
        if topic is None:
            created = KnownTopic(topic_id, {}, 0)
            self._tree.topics[name] = self._created[name] = created
            self._parts.append(name)
        elif topic.topic_id != topic_id:
            topic.topic_id = topic_id
            self._change(name, topic)

    def _partition(self, change: Change) -> None:
        name, index, epoch = change["topic"], change["partition"], change["partition_epoch"]
        topic = self._tree.topics[name]
        assignment = Assignment(tuple(change["replicas"]), tuple(change["adding"]), tuple(change["removing"]))
        if topic.assignments.get(index) != assignment:
            topic.assignments[index] = assignment
            self._change(name, topic)
        if epoch == 0 and not topic.has_partitions:
            self._change(name, topic)
        state = PartitionState(
            change["leader"], change["leader_epoch"], tuple(change["isr"]), self._elected.epoch
        )
        path, data = paths.state(name, index), topic_znodes.encode_state(state)
        if epoch > 0:
            self._parts.append([SetData(path, data, epoch - 1)])
            return
        tp = TopicPartition(name, index)
        parent = [] if tp in self._tree.stateless else [Create(paths.partition(name, index))]
        self._tree.stateless.discard(tp)
        self._parts.append([*parent, Create(path, data)])

    def _change(self, name: str, topic: KnownTopic) -> None:
        """Plan the write of a topic's znode, unless one is planned already.

        The znode is written at the place of the first change, with the result of all changes.
        """
        if name not in self._created and name not in self._changed:
            self._changed.add(name)
            topic.version += 1
            self._parts.append(name)

    def _configs(
        self, kind: str, entity: str, configs: Mapping[str, str], *, is_told: bool
    ) -> Iterator[Write]:
        path, data = paths.config(kind, entity), znodes.encode_config(configs)
        current = self._tree.configs.get(path)
        if current is not None and current.configs == configs:
            return
        version = -1 if current is None else current.version
        self._tree.configs[path] = KnownConfigs(dict(configs), version + 1)
        yield Create(path, data) if current is None else SetData(path, data, version)
        if is_told:
            notification = znodes.encode_config_change(f"{kind}/{entity}")
            yield Create(paths.CONFIG_CHANGE_PREFIX, notification, sequential=True)

    def _acls(self, change: Change) -> Iterator[Write]:
        pattern, entries = changed_acls(change)
        path, version = acl_znodes.path_of(pattern), self._tree.acls.get(acl_znodes.path_of(pattern))
        if entries:
            self._tree.acls[path] = 0 if version is None else version + 1
            data = acl_znodes.encode_entries(entries)
            yield Create(path, data) if version is None else SetData(path, data, version)
        elif version is not None:
            del self._tree.acls[path]
            yield Delete(path)
        else:
            return
        notification = acl_znodes.encode_change(pattern)
        yield Create(acl_znodes.change_path_of(pattern), notification, sequential=True)

    def _producer_ids(self, change: Change) -> Write:
        version, first = self._tree.producer_ids
        following = change["next"]
        self._tree.producer_ids = version + 1, following
        start = max(first, following - PRODUCER_ID_BLOCK)
        block = ProducerIdBlock(change.get("broker", self._elected.broker_id), start, following - 1)
        return SetData(paths.PRODUCER_ID_BLOCK, znodes.encode_producer_ids(block), version)
