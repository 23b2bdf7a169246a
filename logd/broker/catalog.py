"""The topics of this broker: finding, creating, growing and deleting them.

Each change is checked, written to the metadata store and then carried out on the log folders, in this order:
what a crash leaves undone, the next start finishes (``Broker.start``). A client that goes away in the middle
stops none of it.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from logd.broker.flusher import Flusher
from logd.broker.log_dirs import LogDirs
from logd.broker.partition import Partition, TransactionGuard
from logd.broker.pool import to_its_end
from logd.broker.topic import Topic, check_collision, check_name
from logd.config.topic import TopicConfig
from logd.errors import ConfigError, ErrorCode, KafkaError
from logd.metadata.image import Change, ClusterImage, TopicImage
from logd.metadata.store import MetadataStore

if TYPE_CHECKING:
    from logd.storage import Deletion, Log, LogFolder

logger = logging.getLogger("logd.broker")

PARTITIONS_MAX = 10_000
"""Most partitions one topic may be created with or grown to, as Kafka bounds them."""


class TopicCatalog:
    """Owns topics and partitions; log folders are handed in.

    ``topics`` by name, ``topics_by_id``, ``partitions`` by (name, index).
    """

    def __init__(
        self,
        store: MetadataStore,
        image: ClusterImage,
        log_dirs: LogDirs,
        partitions: dict[tuple[str, int], Partition],
        *,
        defaults: TopicConfig,
        now_ms: Callable[[], int],
        has_appended: Callable[[Partition], None],
        flusher: Flusher,
        hide: Callable[[Sequence[Deletion], Iterable[LogFolder]], Awaitable[None]],
    ) -> None:
        self.topics: dict[str, Topic] = {}
        self.topics_by_id: dict[bytes, Topic] = {}
        self.partitions = partitions
        self.defaults = defaults
        self._store = store
        self._image = image
        self._log_dirs = log_dirs
        self._now_ms = now_ms
        self._has_appended = has_appended
        self._flusher = flusher
        self._hide = hide
        self._changing = asyncio.Lock()
        self._guard: TransactionGuard | None = None

    def set_guard(self, guard: TransactionGuard) -> None:
        """From now on, every partition asks it whether a producer may begin a transaction there."""
        self._guard = guard
        for partition in self.partitions.values():
            partition.guard = guard

    def find(self, name: str) -> Topic:
        """The topic, or KafkaError(UNKNOWN_TOPIC_OR_PARTITION)."""
        topic = self.topics.get(name)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return topic

    def find_by_id(self, topic_id: bytes) -> Topic:
        """The topic, or KafkaError(UNKNOWN_TOPIC_ID)."""
        topic = self.topics_by_id.get(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"there is no topic of id {topic_id.hex()}")
        return topic

    def config_for(self, configs: Mapping[str, str]) -> TopicConfig:
        """Effective settings of a topic with these overrides; KafkaError(INVALID_CONFIG)."""
        try:
            return self.defaults.overridden(configs)
        except ConfigError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None

    # Creation

    def check_creation(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Raise the KafkaError with which creating this topic would be refused."""
        check_name(name)
        if name in self.topics:
            raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {name} already exists")
        check_collision(name, self.topics)
        _check_count(name, partitions)
        self.config_for(configs)

    async def create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        """Create a topic; the KafkaErrors of ``check_creation``, or KAFKA_STORAGE_ERROR."""
        return await to_its_end(self._create(name, partitions, configs))

    async def _create(self, name: str, partitions: int, configs: Mapping[str, str]) -> Topic:
        async with self._changing:
            self.check_creation(name, partitions, configs)
            if not self._log_dirs.online:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"no log folder can take topic {name}")
            image = TopicImage(
                name=name, topic_id=new_topic_id(), partitions=partitions, configs=dict(configs)
            )
            await self.write([image.as_change()])
            return self.open_topic(image, {}, new=True)

    def open_topic(self, image: TopicImage, logs: Mapping[int, Log], *, new: bool = False) -> Topic:
        """Put a topic in place with the logs it has; the ones it should have as well are created.

        Unless the topic is ``new`` a log that was not found may be in a folder that is offline, and creating
        it elsewhere would lose what it holds: then the partition is offline until that folder is back, or is
        taken out of log.dirs.
        """
        topic = Topic(image, self.defaults)
        topic.config = self._lenient_config(image)
        self.topics[image.name] = topic
        self.topics_by_id[image.topic_id] = topic
        for index in range(image.partitions):
            self._open_partition(topic, index, logs.get(index), new=new)
        return topic

    def _lenient_config(self, image: TopicImage) -> TopicConfig:
        """Overrides were checked when made; one that no longer passes must not keep the topic shut."""
        try:
            return self.defaults.overridden(image.configs)
        except ConfigError:
            return self.defaults

    def _open_partition(self, topic: Topic, index: int, log: Log | None, *, new: bool) -> None:
        if log is None and not new and not self._log_dirs.is_complete:
            logger.error("%s-%d is offline: its log is in none of the folders that serve", topic.name, index)
            return
        if log is None:
            log = self._create_log(topic, index)
        if log is None:
            return
        folder = self._folder_of(log)
        partition = Partition(log, folder, topic.topic_id, topic.config, self._has_appended, self._flusher)
        partition.guard = self._guard
        topic.partitions[index] = partition
        self.partitions[topic.name, index] = partition

    def _create_log(self, topic: Topic, index: int) -> Log | None:
        """A new log in the best folder that takes it; None, and the next start tries again, if none does."""
        for folder in self._log_dirs.for_new(topic.name, index):
            try:
                return folder.create_log(
                    topic.name, index, topic_id=topic.topic_id, config=topic.config, now_ms=self._now_ms()
                )
            except KafkaError as error:
                logger.error("%s-%d not created: %s", topic.name, index, error)
        return None

    def _folder_of(self, log: Log) -> LogFolder:
        key = log.topic, log.partition
        return next(folder for folder in self._log_dirs if folder.logs.get(key) is log)

    def take_offline(self, folder: LogFolder) -> list[Partition]:
        """A folder failed: its partitions are known but not served, as after a start without it.

        Returns them; whoever waits for one of them is answered.
        """
        gone = [partition for partition in self.partitions.values() if partition.folder is folder]
        for partition in gone:
            del self.partitions[partition.topic, partition.index]
            self.topics[partition.topic].partitions[partition.index] = None
            partition.wake_waiters()
        return gone

    # Growth, deletion, settings

    async def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions; INVALID_PARTITIONS unless there are more than now."""
        await to_its_end(self._grow(name, partitions))

    async def _grow(self, name: str, partitions: int) -> None:
        async with self._changing:
            topic = self.find(name)
            check_growth(topic, partitions)
            grown = TopicImage(
                name=name, topic_id=topic.topic_id, partitions=partitions, configs=topic.image.configs
            )
            await self.write([grown.as_change()])
            topic.image = grown
            for index in range(len(topic.partitions), partitions):
                topic.partitions.append(None)
                self._open_partition(topic, index, None, new=True)

    async def delete(self, topic: Topic) -> None:
        """Forget a topic and take its logs away; waiting fetches are answered. Not to be cancelled."""
        async with self._changing:
            if self.topics.get(topic.name) is not topic:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic.name}")
            await self.write([{"type": "topic-deleted", "name": topic.name}])
            del self.topics[topic.name]
            del self.topics_by_id[topic.topic_id]
            partitions = [partition for partition in topic.partitions if partition is not None]
            folders = dict.fromkeys(partition.folder for partition in partitions)
            removed = [self._remove(partition) for partition in partitions]
            try:
                await self._hide([deletion for deletion in removed if deletion is not None], folders)
            except KafkaError as error:
                logger.error("topic %s is not deleted wholly yet: %s", topic.name, error)

    def _remove(self, partition: Partition) -> Deletion | None:
        del self.partitions[partition.topic, partition.index]
        self._flusher.forget(partition)
        partition.wake_waiters()
        try:
            return partition.folder.start_delete(partition.topic, partition.index)
        except KafkaError as error:  # the next start knows the topic as deleted and takes its files away
            logger.error("%s not deleted yet: %s", partition, error)
            return None

    async def configure(self, topic: Topic, configs: Mapping[str, str]) -> None:
        """Replace a topic's overrides; INVALID_CONFIG when one is not allowed."""
        await to_its_end(self._configure(topic, configs))

    async def _configure(self, topic: Topic, configs: Mapping[str, str]) -> None:
        async with self._changing:
            config = self.config_for(configs)
            image = TopicImage(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=topic.image.partitions,
                configs=dict(configs),
            )
            await self.write([image.as_change()])
            topic.image = image
            _apply(topic, config)

    def change_defaults(self, defaults: TopicConfig) -> None:
        """The broker's own settings changed: topics follow where they override nothing."""
        self.defaults = defaults
        for topic in self.topics.values():
            _apply(topic, self._lenient_config(topic.image))

    async def write(self, changes: list[Change]) -> None:
        """Store changes and replay them on the image; KafkaError(KAFKA_STORAGE_ERROR)."""
        try:
            await self._store.write(changes)
        except OSError as error:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"cluster metadata not written: {error}"
            ) from error
        for change in changes:
            self._image.apply(change)


def check_growth(topic: Topic, partitions: int) -> None:
    """Raise KafkaError(INVALID_PARTITIONS) unless the topic may grow to so many partitions."""
    if partitions <= len(topic.partitions):
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {topic.name} has {len(topic.partitions)} partitions; it can grow but not to {partitions}",
        )
    _check_count(topic.name, partitions)


def _check_count(name: str, partitions: int) -> None:
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"topic {name}: {partitions} partitions, 1 to {PARTITIONS_MAX} are allowed",
        )


def _apply(topic: Topic, config: TopicConfig) -> None:
    topic.config = config
    for partition in topic.partitions:
        if partition is not None:
            partition.configure(config)


def new_topic_id() -> bytes:
    """A version 4 uuid; os.urandom is asked directly since importing uuid costs start-up time."""
    random = bytearray(os.urandom(16))
    random[6] = random[6] & 0x0F | 0x40
    random[8] = random[8] & 0x3F | 0x80
    return bytes(random)
