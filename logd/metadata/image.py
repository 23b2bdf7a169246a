"""The image of the cluster: its metadata in memory.

It has topics and their settings, brokers' changed settings, users' credentials, and producer ids. In a
cluster of several brokers it also has the live brokers and the state of every partition.

The controller decides a change, a store writes it, and ``apply`` replays it here. A change is a plain dict
(``Change``). The same ``apply`` serves live changes, the load at start, and the changes that brokers receive
from the controller.

    type                                                        stored or not
    topic, topic-deleted, broker-configs, producer-ids, acls    stored, also by a standalone broker
    user-configs, entity-configs                                the same
    decoy-key                                                   stored by a standalone broker only
    partition                                                   stored; a standalone broker writes none
    broker, broker-gone, replicas-offline                       current state: a store need not keep it
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka_client.first_use import at_first_use
from kafka_client.topic_partition import TopicPartition
from logd.metadata.broker_index import BrokerIndex

if TYPE_CHECKING:
    from kafka_client.acl import AclEntry, ResourcePattern
    from logd.metadata.shared_images import BrokerImage as BrokerImage
    from logd.metadata.shared_images import Endpoint as Endpoint
    from logd.metadata.shared_images import PartitionImage as PartitionImage

__getattr__ = at_first_use(
    __name__, {"logd.metadata.shared_images": ("BrokerImage", "Endpoint", "PartitionImage")}
)

Change = dict[str, Any]
"""A change as it is stored: ``{"type": "topic", ...}``; ``ClusterImage.apply`` knows the types."""

PRODUCER_ID_BLOCK = 1000
"""Producer ids in a block, as in Kafka; the unused ids of a block are lost at a restart."""

NO_CONFIGS: Final[dict[str, str]] = {}
"""The overrides of a topic without any; do not change this dict."""
NO_LEADER: Final = -1
"""The leader of a partition that has none."""


class TopicImage(NamedTuple):
    """A topic: its 16-byte id, number of partitions and overridden settings under Kafka's keys."""

    name: str
    topic_id: bytes
    partitions: int
    configs: dict[str, str] = NO_CONFIGS

    def as_change(self) -> Change:
        """Return the change that creates this topic or gives it this state."""
        return {
            "type": "topic",
            "name": self.name,
            "id": self.topic_id.hex(),
            "partitions": self.partitions,
            "configs": self.configs,
        }


def user_configs(user: str, configs: Mapping[str, str]) -> Change:
    """Return the change that replaces what is stored of a user; no configs remove the user."""
    return {"type": "user-configs", "user": user, "configs": dict(configs)}


def entity_configs(path: str, configs: Mapping[str, str]) -> Change:
    """Return the change that replaces what is stored at a path below `/config`; no configs remove it.

    `logd.metadata.client_quotas` makes the paths.
    """
    return {"type": "entity-configs", "entity": path, "configs": dict(configs)}


def broker_gone(broker: int) -> Change:
    """Return the change that removes a broker which is no longer alive."""
    return {"type": "broker-gone", "id": broker}


def replicas_offline(broker: int, partitions: Iterable[TopicPartition]) -> Change:
    """Return the change which says that a live broker cannot serve these replicas.

    Their log directory has failed.
    """
    by_topic: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    return {"type": "replicas-offline", "broker": broker, "partitions": by_topic}


class ClusterImage:
    """The state of the cluster: the sum of all changes.

    ``topics`` are by name. ``deleted`` has the ids of topics whose files may still be on disk.
    ``broker_configs`` are changed settings by broker; ``""`` means all brokers. ``user_configs`` are what
    Kafka keeps of users in `/config/users`, by user: SCRAM credentials by mechanism, which are secrets.
    ``entity_configs`` are the quotas of all entities but single users, by the path below `/config`.
    ``decoy_key`` is a standalone broker's secret for `logd.security.scram_users`. ``partitions`` is empty
    for a standalone broker, which hosts and leads every partition. ``brokers`` are the live ones, by id.
    ``acls`` are the access control lists, by the pattern of resources that they are about.
    ``offline`` has, by broker, the partitions lost with failed log directories, until the broker registers
    again.
    """

    __slots__ = (
        "acls",
        "broker_configs",
        "broker_index",
        "brokers",
        "decoy_key",
        "deleted",
        "entity_configs",
        "next_producer_id",
        "offline",
        "partitions",
        "topics",
        "user_configs",
    )

    def __init__(self) -> None:
        self.topics: dict[str, TopicImage] = {}
        self.deleted: set[bytes] = set()
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.user_configs: dict[str, dict[str, str]] = {}
        self.entity_configs: dict[str, dict[str, str]] = {}
        self.decoy_key = b""
        self.next_producer_id = 0
        self.partitions: dict[TopicPartition, PartitionImage] = {}
        self.brokers: dict[int, BrokerImage] = {}
        self.offline: dict[int, set[TopicPartition]] = {}
        self.broker_index = BrokerIndex()
        self.acls: dict[ResourcePattern, tuple[AclEntry, ...]] = {}

    @classmethod
    def of(cls, changes: Iterable[Change]) -> ClusterImage:
        """Return the image that results from these changes, such as those of a snapshot."""
        image = cls()
        for change in changes:
            image.apply(change)
        return image

    def holds(self, broker: int) -> Set[TopicPartition]:
        """Return the partitions of which the broker is a replica.

        The result is the index itself, valid until the next change.
        """
        return self.broker_index.held_by(broker)

    def leads(self, broker: int) -> Set[TopicPartition]:
        """Return the partitions that the broker leads.

        The result is the index itself, valid until the next change.
        """
        return self.broker_index.led_by(broker)

    def offline_of(self, broker: int) -> Collection[TopicPartition]:
        """Return the broker's partitions whose log directories have failed."""
        return self.offline.get(broker, ())

    def apply(self, change: Change) -> None:
        """Replay one change; skip a type that only a later version knows."""
        match change["type"]:
            case "topic":
                self._apply_topic(change)
            case "topic-deleted":
                deleted = self.topics.pop(change["name"], None)
                if deleted is not None:
                    self.deleted.add(deleted.topic_id)
                    self._forget_partitions(deleted)
            case "partition":
                self._apply_partition(change)
            case "broker":
                self._apply_broker(change)
            case "broker-gone":
                self.brokers.pop(change["id"], None)
                self.offline.pop(change["id"], None)
            case "replicas-offline":
                self._apply_offline(change)
            case "broker-configs":
                self.broker_configs[change["broker"]] = change["configs"]
            case "user-configs":
                self._apply_user(change)
            case "entity-configs":
                self._apply_entity(change)
            case "decoy-key":
                self.decoy_key = bytes.fromhex(change["key"])
            case "acls":
                self._apply_acls(change)
            case "producer-ids":
                self.next_producer_id = max(self.next_producer_id, change["next"])

    def _apply_user(self, change: Change) -> None:
        if change["configs"]:
            self.user_configs[change["user"]] = change["configs"]
        else:
            self.user_configs.pop(change["user"], None)

    def _apply_entity(self, change: Change) -> None:
        if change["configs"]:
            self.entity_configs[change["entity"]] = change["configs"]
        else:
            self.entity_configs.pop(change["entity"], None)

    def _apply_acls(self, change: Change) -> None:
        from logd.metadata.acls import changed_acls

        pattern, entries = changed_acls(change)
        if entries:
            self.acls[pattern] = entries
        else:
            self.acls.pop(pattern, None)

    def _apply_topic(self, change: Change) -> None:
        topic = TopicImage(
            name=change["name"],
            topic_id=bytes.fromhex(change["id"]),
            partitions=change["partitions"],
            configs=change["configs"],
        )
        before = self.topics.get(topic.name)
        if before is not None and before.topic_id != topic.topic_id:
            self._forget_partitions(before)
        self.topics[topic.name] = topic

    def _forget_partitions(self, topic: TopicImage) -> None:
        if not self.partitions:
            return  # a standalone broker has no partitions here
        for index in range(topic.partitions):
            tp = TopicPartition(topic.name, index)
            before = self.partitions.pop(tp, None)
            if before is not None:
                self.broker_index.remove(tp, before)
                self._forget_offline(tp, before.replicas)

    def _apply_partition(self, change: Change) -> None:
        from logd.metadata.shared_images import PartitionImage

        tp = TopicPartition(change["topic"], change["partition"])
        state = PartitionImage(
            replicas=tuple(change["replicas"]),
            isr=tuple(change["isr"]),
            leader=change["leader"],
            leader_epoch=change["leader_epoch"],
            partition_epoch=change["partition_epoch"],
            adding=tuple(change["adding"]),
            removing=tuple(change["removing"]),
        )
        before = self.partitions.get(tp)
        if before is not None:
            self.broker_index.remove(tp, before)
            self._forget_offline(tp, set(before.replicas).difference(state.replicas))
        self.partitions[tp] = state
        self.broker_index.add(tp, state)

    def _apply_broker(self, change: Change) -> None:
        from logd.metadata.shared_images import BrokerImage, Endpoint

        broker = BrokerImage(
            id=change["id"],
            epoch=change["epoch"],
            rack=change["rack"],
            endpoints=tuple(Endpoint(*endpoint) for endpoint in change["endpoints"]),
            is_shutting_down=change["is_shutting_down"],
            offline_log_dirs=tuple(change["offline_log_dirs"]),
        )
        before = self.brokers.get(broker.id)
        if before is None or before.epoch != broker.epoch:
            self.offline.pop(
                broker.id, None
            )  # the broker has restarted, and will report its offline replicas again
        self.brokers[broker.id] = broker

    def _apply_offline(self, change: Change) -> None:
        offline = self.offline.setdefault(change["broker"], set())
        for topic, indexes in change["partitions"].items():
            offline.update(TopicPartition(topic, index) for index in indexes)

    def _forget_offline(self, tp: TopicPartition, brokers: Iterable[int]) -> None:
        for broker in brokers:
            offline = self.offline.get(broker)
            if offline is not None:
                offline.discard(tp)
                if not offline:
                    del self.offline[broker]

    def as_changes(self) -> list[Change]:
        """Return the shortest list of changes that builds this image, without ids of deleted topics."""
        changes = [topic.as_change() for topic in self.topics.values()]
        changes += [
            {"type": "broker-configs", "broker": broker, "configs": configs}
            for broker, configs in self.broker_configs.items()
        ]
        changes += [user_configs(user, configs) for user, configs in self.user_configs.items()]
        changes += [entity_configs(path, configs) for path, configs in self.entity_configs.items()]
        if self.decoy_key:
            changes.append({"type": "decoy-key", "key": self.decoy_key.hex()})
        if self.acls:
            from logd.metadata.acls import acls_change

            changes += [acls_change(pattern, entries) for pattern, entries in self.acls.items()]
        changes += [state.as_change(tp) for tp, state in self.partitions.items()]
        changes += [broker.as_change() for broker in self.brokers.values()]
        changes += [replicas_offline(broker, partitions) for broker, partitions in self.offline.items()]
        changes.append({"type": "producer-ids", "next": self.next_producer_id})
        return changes
