"""The topics of the cluster as this broker knows them, and the one way they change.

A change is decided on the image of the cluster (``logd.metadata.controller``), written to the metadata store,
and then applied, one after the other. In a cluster the controller does that, and is passed in. Only an
applied change opens or closes partitions (``replicas``); where it was decided makes no difference. A client
that goes away in the middle stops none of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from kafka_client.errors import ConfigError, ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from logd.broker.topics.topic import Topic
from logd.broker.work.pool import to_its_end
from logd.metadata import decisions
from logd.metadata.image import TopicImage
from logd.storage.checkpoints import new_uuid

if TYPE_CHECKING:
    from logd.broker.partition.admission import TransactionGuard
    from logd.broker.partition.partition import Partition
    from logd.broker.topics.cluster_view import ClusterView
    from logd.broker.topics.replicas import Replicas
    from logd.config.topic import TopicConfig
    from logd.metadata.controller.core import Controller
    from logd.metadata.controller.decision import Decision
    from logd.metadata.controller.topics import NewTopic
    from logd.metadata.decisions import Alter
    from logd.metadata.image import Change, ClusterImage, PartitionImage
    from logd.metadata.store import MetadataStore
    from logd.security.authorizer import Authorizer
    from logd.storage import Log, LogDirectory

T = TypeVar("T")

Decide: TypeAlias = "Callable[[Controller], Decision[T]]"
"""A decision on the controller's image. It raises KafkaError if the change is not allowed."""


class Assigning(Protocol):
    """Gives partitions their roles: `cluster.assignment.Assignment`."""

    @property
    def node_id(self) -> int:
        """This broker."""

    async def rest(self, partition: Partition, state: PartitionImage) -> None:
        """Wait for what is under way, and would be in the way of what `assign` does with this state."""

    def assign(self, partition: Partition, state: PartitionImage) -> None:
        """Give a partition that is held here the role that this state assigns."""

    def unassign(self, partition: Partition) -> None:
        """Take away the partition's role, before the partition is closed."""


class ClusterController(Protocol):
    """The controller of a cluster of several brokers, while it is on this one: a `ServingController`."""

    async def do(self, decide: Decide[T], *, validate_only: bool = False) -> Decision[T]:
        """Decide, write and publish. Returns once this broker, too, has applied what was published.

        KafkaError: those of ``decide``, KAFKA_STORAGE_ERROR, NOT_CONTROLLER.
        """


class TopicCatalog:
    """``topics`` by name and ``topics_by_id``: what is in the cluster, each with what is held of it here.

    ``version`` grows with each change that clients can see: an applied one, a partition that went offline.
    ``settings_changed`` is called when changed settings of brokers were applied.
    """

    def __init__(
        self,
        store: MetadataStore,
        image: ClusterImage,
        replicas: Replicas,
        *,
        cluster: ClusterView,
        defaults: TopicConfig,
        settings_changed: Callable[[], None],
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.version = 0
        self.defaults = defaults
        self._store = store
        self._image = image
        self._cluster = cluster
        self._settings_changed = settings_changed
        self._changing = asyncio.Lock()
        self._assigned: Assigning | None = None
        self._topics_deleted: Callable[[list[str]], None] = lambda names: None
        self.controller: ClusterController | None = None
        """Who decides instead, in a cluster of several brokers."""
        self._replicas = replicas
        self.authorizer: Authorizer | None = None
        """The authorizer, which gets changed ACLs."""
        self.quotas_changed: Callable[[], None] = lambda: None
        """Called after a change of what is stored of users, client ids or addresses."""

    @property
    def is_changing(self) -> bool:
        """True if a change is under way, from its decision to its end."""
        return self._changing.locked()

    @property
    def partitions(self) -> dict[TopicPartition, Partition]:
        """The partitions held here, by (name, index)."""
        return self._replicas.partitions

    @property
    def lost(self) -> Collection[TopicPartition]:
        """Partitions assigned to this broker that it cannot serve: see `Replicas.lost`."""
        return self._replicas.lost

    def set_guard(self, guard: TransactionGuard) -> None:
        """Set what every partition asks whether a producer may begin a transaction there."""
        self._replicas.set_guard(guard)

    def find(self, name: str) -> Topic:
        """Return the topic. Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION) if there is none."""
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic

    def find_by_id(self, topic_id: bytes) -> Topic:
        """Return the topic. Raises KafkaError(UNKNOWN_TOPIC_ID) if there is none."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {topic_id.hex()}")
        return topic

    def config_for(self, configs: Mapping[str, str]) -> TopicConfig:
        """Return a topic's effective settings with these overrides. Raises KafkaError(INVALID_CONFIG)."""
        return decisions.effective(configs, self.defaults)

    # Deciding

    async def create(
        self, name: str, partitions: int, configs: Mapping[str, str], *, replication_factor: int = 1
    ) -> Topic:
        """Create a topic. KafkaErrors of `add`."""
        await self.add(new_topic(name, partitions, configs, replication_factor=replication_factor))
        return self.find(name)

    async def add(self, new: NewTopic, *, validate_only: bool = False) -> TopicImage:
        """Create a topic with the given replica placement. A standalone broker hosts all replicas.

        Raises KafkaError: those of `decisions.create_topic` and of placement in a cluster
        (INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT), and KAFKA_STORAGE_ERROR.
        """
        return await self.decide(
            lambda controller: self._creation(controller, new), validate_only=validate_only
        )

    def _creation(self, controller: Controller, new: NewTopic) -> Decision[TopicImage]:
        if controller.image.brokers:
            return controller.create_topic(new)
        return self._creation_here(controller, new)

    def _creation_here(self, controller: Controller, new: NewTopic) -> Decision[TopicImage]:
        from logd.metadata.controller.decision import Decision

        if not self._replicas.can_begin:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no log directory can take topic {new.name}")
        changes = decisions.create_topic(
            controller.image,
            new.name,
            new.partitions,
            new.configs,
            topic_id=new.topic_id,
            defaults=self.defaults,
        )
        topic = TopicImage(
            name=new.name, topic_id=new.topic_id, partitions=new.partitions, configs=dict(new.configs)
        )
        return Decision(changes, topic)

    async def grow(
        self,
        name: str,
        partitions: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> None:
        """Give a topic more partitions. KafkaErrors of `decisions.grow_topic`, of placement in a cluster."""

        from logd.metadata.controller.decision import Decision

        def growth(controller: Controller) -> Decision[None]:
            if controller.image.brokers:
                return controller.grow_topic(name, partitions, assignments)
            return Decision(decisions.grow_topic(controller.image, name, partitions), None)

        await self.decide(growth, validate_only=validate_only)

    async def delete(self, topic: Topic) -> None:
        """Forget a topic; then its logs are deleted, and waiting fetches answered. KafkaError."""
        await self.decide(lambda controller: controller.delete_topic(topic.name, topic.topic_id))

    async def configure(self, topic: Topic, alter: Alter, *, validate_only: bool = False) -> None:
        """Give a topic the overrides that ``alter`` makes of those it has once it is this change's turn.

        KafkaError: those of ``alter``, INVALID_CONFIG, UNKNOWN_TOPIC_OR_PARTITION for one deleted meanwhile.
        """
        name, topic_id = topic.name, topic.topic_id
        await self.decide(
            lambda controller: controller.alter_topic(name, topic_id, alter), validate_only=validate_only
        )

    async def decide(self, decide: Decide[T], *, validate_only: bool = False) -> T:
        """Decide on the image as it is at this change's turn, write that down, and apply it; the answer.

        KafkaError: those of ``decide``, KAFKA_STORAGE_ERROR where it cannot be written.
        """
        if self.controller is not None:
            return (await self.controller.do(decide, validate_only=validate_only)).answer
        if validate_only:  # nothing is written: no turn to wait for
            return decide(self._itself()).answer
        return await to_its_end(self._decide(decide))

    def _itself(self) -> Controller:
        """Return the controller of a standalone broker. It is imported at the first change, which a start
        does without.
        """
        from logd.metadata.controller.core import Controller, ControllerSettings

        return Controller(self._image, epoch=0, settings=ControllerSettings(defaults=self.defaults))

    async def _decide(self, decide: Decide[T]) -> T:
        async with self._changing:
            decision = decide(self._itself())
            await self._write(decision.changes)
            for change in decision.changes:
                self._image.apply(change)
                await self._apply(change)
            await self._replicas.room()
            return decision.answer

    async def _write(self, changes: list[Change]) -> None:
        try:
            await self._store.write(changes)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cluster metadata not written: {error}"
            ) from error

    async def store_recovered(self, changes: list[Change]) -> None:
        """Write the changes for recovered topics at the start; ``open`` follows. Raises KafkaError."""
        await self._write(changes)
        for change in changes:
            self._image.apply(change)

    # Among several brokers

    def join(self, assigning: Assigning, *, topics_deleted: Callable[[list[str]], None]) -> None:
        """Join a cluster: changes come by `follow`, and only partitions with a replica here are kept."""
        self._assigned = assigning
        self._topics_deleted = topics_deleted

    async def follow(self, changes: Sequence[Change]) -> None:
        """Apply what the controller has decided, and written."""
        await to_its_end(self._follow(changes))

    async def _follow(self, changes: Sequence[Change]) -> None:
        async with self._changing:
            moved: dict[str, list[int]] = {}
            for change in changes:
                if moved and change["type"] in ("topic", "topic-deleted"):
                    # Before the image forgets them; all others see what the rest says of brokers.
                    await self._settle(moved)
                    moved = {}
                self._image.apply(change)
                if change["type"] == "partition":
                    moved.setdefault(change["topic"], []).append(change["partition"])
                    continue
                await self._apply(change)
            if moved:
                await self._settle(moved)
            await self._replicas.room()

    async def _settle(self, moved: Mapping[str, Collection[int]]) -> None:
        """Open, close and give roles to partitions as the image has them now."""
        assigned = self._assigned
        assert assigned is not None, "join comes first"
        for name, indexes in moved.items():
            topic = self.topics[name]
            states = {index: self._image.partitions[TopicPartition(name, index)] for index in indexes}
            mine = [index for index, state in states.items() if assigned.node_id in state.replicas]
            await self._replicas.begin(topic, [index for index in mine if topic.partitions[index] is None])
            ended = []
            for index, state in states.items():
                partition = topic.partitions[index]
                if partition is not None and assigned.node_id in state.replicas:
                    await assigned.rest(partition, state)
                    assigned.assign(partition, state)
                elif partition is not None:
                    assigned.unassign(partition)
                    ended.append(partition)
                elif assigned.node_id not in state.replicas:
                    self._replicas.lost.discard(TopicPartition(name, index))
            if ended:
                self._replicas.end_some(topic, ended)
        self.version += 1

    async def set_strays_aside(self) -> None:
        """Set aside the logs that the image does not assign to this broker, once it is complete."""
        await self._replicas.all_known()

    # Applying

    async def _apply(self, change: Change) -> None:
        """Open and close partitions after a change of the image."""
        match change["type"]:
            case "topic":
                await self._apply_topic(self._image.topics[change["name"]])
            case "topic-deleted":
                self._forget(self.topics.pop(change["name"]))
            case "broker-configs":
                self._settings_changed()
            case "user-configs" | "entity-configs":
                self.quotas_changed()
            case "acls" if self.authorizer is not None:
                from logd.metadata.acls import changed_acls

                self.authorizer.set_entries(*changed_acls(change))
        self.version += 1

    def _forget(self, topic: Topic) -> None:
        del self.topics_by_id[topic.topic_id]
        if self._assigned is not None:
            for index, partition in enumerate(topic.partitions):
                self._replicas.lost.discard(TopicPartition(topic.name, index))
                if partition is not None:
                    self._assigned.unassign(partition)
            self._topics_deleted([topic.name])
        self._replicas.end(topic)

    async def _apply_topic(self, image: TopicImage) -> None:
        topic = self.topics.get(image.name)
        if topic is None:
            topic = self._topic(image)
            first = 0
        else:
            first = len(topic.partitions)
            topic.image = image
            topic.configure(self._lenient_config(image))
            topic.partitions += [None] * (image.partitions - first)
        if first < image.partitions and self._assigned is None:
            await self._replicas.begin(topic, range(first, image.partitions))
        self._know(topic)

    def open(self, image: TopicImage, logs: Mapping[int, Log]) -> None:
        """Open a topic at the start, with the logs that the directories have of it. Blocks.

        See ``Replicas.open``.
        """
        topic = self._topic(image)
        self._replicas.open(topic, logs)
        self._know(topic)
        self.version += 1

    def _topic(self, image: TopicImage) -> Topic:
        return Topic(image, self._lenient_config(image), self._cluster)

    def _know(self, topic: Topic) -> None:
        self.topics[topic.name] = topic
        self.topics_by_id[topic.topic_id] = topic

    def _lenient_config(self, image: TopicImage) -> TopicConfig:
        """Return a topic's settings; the defaults if an override is not valid any more.

        Overrides were checked when they were set. One that a newer version refuses must not keep the topic
        from opening.
        """
        try:
            return self.defaults.overridden(image.configs)
        except ConfigError:
            return self.defaults

    def change_defaults(self, defaults: TopicConfig) -> None:
        """Set the broker's own defaults; topics use them where they override nothing."""
        self.defaults = defaults
        for topic in self.topics.values():
            topic.configure(self._lenient_config(topic.image))
        self.version += 1

    def take_offline(self, directory: LogDirectory) -> list[Partition]:
        """Take partitions offline after their log directory failed, as after a start without it. Return them.

        Requests that wait for one of the partitions are answered.
        """
        offline = self._replicas.take_offline(directory)
        for partition in offline:
            self.topics[partition.topic].partitions[partition.index] = None
            if self._assigned is not None:
                self._assigned.unassign(partition)
            partition.release_waiters()
        self.version += 1
        return offline

    def views_changed(self) -> None:
        """Note that clients get other metadata, though no change of the image was applied.

        A partition was opened again in another directory, or another broker is the controller.
        """
        self.version += 1

    def disk_work(self) -> dict[str, int]:
        """Return the count of topics whose files are being created or removed, and its bound."""
        return self._replicas.statistics()

    async def disk_work_ended(self) -> None:
        """Wait until the disk has what was applied."""
        await self._replicas.disk_work_ended()


def new_topic(
    name: str,
    partitions: int,
    configs: Mapping[str, str],
    *,
    replication_factor: int = 1,
    assignments: Mapping[int, Sequence[int]] | None = None,
) -> NewTopic:
    """Return a new topic with an id of its own, whose placement starts at a random broker."""
    from random import getrandbits

    from logd.metadata.controller.placement import Start
    from logd.metadata.controller.topics import NewTopic

    return NewTopic(
        name=name,
        topic_id=new_topic_id(),
        start=Start(getrandbits(31), getrandbits(31)),
        partitions=partitions,
        replication_factor=replication_factor,
        assignments=assignments,
        configs=configs,
    )


def new_topic_id() -> bytes:
    """Return a random topic id, which no other topic has."""
    return new_uuid()
