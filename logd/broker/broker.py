"""The broker: settings, topics with their partitions, groups, and its life from start to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path

from logd.broker.catalog import TopicCatalog, new_topic_id
from logd.broker.compaction import Compaction
from logd.broker.config_layers import ConfigLayers
from logd.broker.fetch_sessions import FetchSessions, random_id
from logd.broker.groups.groups import Groups
from logd.broker.housekeeping import Housekeeping
from logd.broker.log_dirs import LogDirs, absolute
from logd.broker.moves import Moves
from logd.broker.partition import Partition
from logd.broker.pool import to_its_end
from logd.broker.producer_ids import ProducerIds
from logd.broker.topic import GROUP_OFFSETS, TRANSACTION_STATE, Topic
from logd.broker.transactions.transactions import Transactions
from logd.broker.warming import Warmer
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint
from logd.config.topic import TopicConfig
from logd.errors import KafkaError, MillstreamError
from logd.metadata.embedded import EmbeddedStore
from logd.metadata.image import ClusterImage, TopicImage
from logd.metadata.store import MetadataStore
from logd.storage import FolderLocked, FolderMismatch, Log, LogFolder, StorageError
from logd.storage.disk import Disk, PosixDisk

log = logging.getLogger("logd.broker")


class Broker:
    """What handlers reach through ``RequestContext.broker``.

    ``start`` opens everything and returns; the server may listen then. ``stop`` closes it cleanly.

    Attributes: ``config``, ``node_id``, ``cluster_id``, ``catalog`` (topics, partitions), ``producer_ids``,
    ``groups`` and ``transactions`` (the shells around the coordinators), ``fetch_sessions``, ``warmer``
    (reads that would wait for the disk), ``endpoints`` (advertised, by listener, set by the server).

    ``disk`` is what everything is written through, ``executor`` runs what may block; both are for tests.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        on_dead: Callable[[], None] | None = None,
        disk: Disk | None = None,
        executor: Executor | None = None,
    ) -> None:
        self.config = config
        self.node_id = config.node_id
        self.cluster_id = ""
        self.log_dirs = LogDirs(config.log_dirs)
        self.folders: list[LogFolder] = self.log_dirs.folders
        self.endpoints: list[Endpoint] = []
        self._started_with = config.given
        self._on_dead = on_dead
        self._disk = disk or PosixDisk()
        self._executor = executor or ThreadPoolExecutor(config.background_threads, thread_name_prefix="logd")
        self._store: MetadataStore = EmbeddedStore(Path(config.log_dirs[0]), self._disk, self._executor)
        self._image: ClusterImage | None = None
        self._woken: set[Partition] = set()
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, random_id)
        self.warmer = Warmer(self._executor)
        self.loop: asyncio.AbstractEventLoop
        self.catalog: TopicCatalog
        self.moves: Moves
        self.groups: Groups
        self.housekeeping: Housekeeping
        self.compaction: Compaction
        self.producer_ids: ProducerIds
        self.transactions: Transactions

    @property
    def endpoint(self) -> Endpoint:
        """The advertised address of the first listener."""
        return self.endpoints[0]

    @property
    def image(self) -> ClusterImage:
        """What the metadata store remembers; read at the first use, which is after the folders are locked."""
        if self._image is None:
            self._image = self._store.load()
            self.config = self.config_layers.effective()
        return self._image

    @property
    def config_layers(self) -> ConfigLayers:
        """Where ``config`` comes from."""
        return ConfigLayers(self.node_id, self._started_with, self.image.broker_configs)

    @staticmethod
    def now_ms() -> int:
        """Wall clock in milliseconds since 1970."""
        return time.time_ns() // 1_000_000

    # Life

    async def start(self) -> None:
        """Lock and open the log folders (recovering what was not closed cleanly), put every topic in place.

        Raises StorageError when a folder cannot be used, ConfigError for settings that do not fit.
        """
        self.loop = asyncio.get_running_loop()
        try:
            for path in self.config.log_dirs:
                self._open_folder(Path(path))
        except BaseException:
            self._close_folders(None)  # opened and unharmed: their next start has nothing to recover
            raise
        self.cluster_id = self.folders[0].cluster_id
        self.housekeeping, self.catalog = self._keepers()
        self._open_topics()
        if self.log_dirs.is_complete:  # else files of deleted topics may come back with their folder
            self._store.compact(self.image)
        for folder in self.folders:
            self.housekeeping.discard(folder.deletions)
        self.producer_ids = ProducerIds(self._store, self.image)
        self.groups = Groups(
            self.config,
            self.catalog,
            now_ms=self.now_ms,
            create_topic=self.auto_create,
            read_in=self.warmer.read_in,
        )
        self.transactions = Transactions(
            self.config,
            self.catalog,
            self.groups,
            self.producer_ids,
            now_ms=self.now_ms,
            create_topic=self.auto_create,
            read_in=self.warmer.read_in,
        )
        self.catalog.set_guard(self.transactions)
        self.groups.start()
        self.transactions.start()
        self.housekeeping.start()
        self.compaction = Compaction(
            lambda: self.config,
            self.catalog.partitions,
            self.folders,
            self._executor,
            self.housekeeping.discard,
            self.now_ms,
        )
        self.compaction.start()
        self.moves = Moves(
            self.log_dirs,
            self.catalog.partitions,
            self._executor,
            config=lambda: self.config,
            discard=self.housekeeping.discard,
            flusher=self.housekeeping.flusher,
            compaction=self.compaction,
        )
        self.moves.resume()

    def _keepers(self) -> tuple[Housekeeping, TopicCatalog]:
        partitions: dict[tuple[str, int], Partition] = {}
        housekeeping = Housekeeping(self.config, partitions, self.folders, self._executor, self.now_ms)
        catalog = TopicCatalog(
            self._store,
            self.image,
            self.log_dirs,
            partitions,
            defaults=self.config.topic_defaults,
            now_ms=self.now_ms,
            has_appended=self.has_appended,
            flusher=housekeeping.flusher,
            hide=housekeeping.hide,
        )
        return housekeeping, catalog

    async def stop(self) -> None:
        """Stop what runs, then flush and close every log, leaving the clean-shutdown markers."""
        await self.transactions.stop()
        await self.groups.stop()
        await self.moves.stop()
        await self.compaction.stop()
        await self.housekeeping.stop()
        watermarks = {key: partition.high_watermark for key, partition in self.catalog.partitions.items()}
        self._close_folders(watermarks)
        self._store.close()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _close_folders(self, watermarks: Mapping[tuple[str, int], int] | None) -> None:
        for folder in self.folders:
            try:
                folder.close(watermarks)
            except (KafkaError, OSError) as error:
                log.error("log folder %s not closed cleanly: %s", folder.path, error)

    def _open_folder(self, path: Path) -> None:
        try:
            folder = LogFolder.open(
                path,
                node_id=self.node_id,
                cluster_id=self.folders[0].cluster_id if self.folders else None,
                config_for=self._config_at_start,
                now_ms=self.now_ms(),
                on_offline=self._folder_went_offline,
                disk=self._disk,
            )
        except (FolderLocked, FolderMismatch):
            raise
        except (StorageError, KafkaError, OSError) as error:
            if path == Path(self.config.log_dirs[0]):
                if isinstance(error, StorageError):
                    raise
                raise StorageError(path, str(error)) from error
            self.log_dirs.unusable[absolute(path)] = str(error)
            log.error("%s; left out: what is in there is not served until a restart finds it well", error)
            return
        self.folders.append(folder)

    def _config_at_start(self, topic: str) -> TopicConfig:
        image = self.image.topics.get(topic)
        defaults = self.config.topic_defaults
        try:
            return defaults.overridden(image.configs) if image is not None else defaults
        except MillstreamError:
            return defaults

    def _open_topics(self) -> None:
        """Logs of known topics are put in place, of deleted ones removed; a topic nobody knew is taken in.

        A log whose topic's id a power loss took is that of the topic of its name.
        """
        for folder in self.folders:
            for (name, index), opened in tuple(folder.logs.items()):
                if opened.topic_id is not None and opened.topic_id in self.image.deleted:
                    self.housekeeping.discard([folder.delete_log(name, index)])
        self.log_dirs.put_futures_in_place(self.image.topics, self._config_at_start, self.now_ms())
        self.log_dirs.set_remains_aside(self.image.topics)
        logs = self.log_dirs.logs(self.image.topics)
        for name, found in logs.items():
            if name not in self.image.topics:
                self.image.topics[name] = self._adopted(name, found)
        for image in tuple(self.image.topics.values()):
            found = logs.get(image.name, {})
            for opened in found.values():
                if opened.topic_id is None:
                    opened.identify(image.topic_id)
            self.catalog.open_topic(image, found)

    def _folder_went_offline(self, reason: str) -> None:
        """Called in whichever thread met the error, which storage has said in the log."""
        self.loop.call_soon_threadsafe(self._look_at_folders)

    def _look_at_folders(self) -> None:
        for folder in self.folders:
            if folder.failure is not None:
                offline = self.catalog.take_offline(folder)
                self.groups.went_offline(offline)
                self.transactions.went_offline(offline)
        if self._on_dead is not None and all(folder.failure is not None for folder in self.folders):
            log.critical("no log folder is left, stopping")
            self._on_dead()

    # Partitions' news

    def has_appended(self, partition: Partition) -> None:
        """Wake what waits for ``partition`` in the loop's next turn, once for all appends of this one."""
        if not self._woken:
            self.loop.call_soon(self._wake)
        self._woken.add(partition)

    def _wake(self) -> None:
        woken, self._woken = self._woken, set()
        for partition in woken:
            partition.wake_waiters()

    # Topics and settings

    async def auto_create(self, name: str) -> Topic:
        """Create a topic that a client only asked about, with the broker's defaults. KafkaError."""
        partitions = self.config.num_partitions
        if name == GROUP_OFFSETS:
            partitions = self.config.offsets_topic_num_partitions
        elif name == TRANSACTION_STATE:
            partitions = self.config.transaction_state_log_num_partitions
        return await self.catalog.create(name, partitions, self.internal_configs(name))

    async def delete_topic(self, topic: Topic) -> None:
        """Delete a topic, and what groups committed for it. KafkaError."""
        await to_its_end(self._delete_topic(topic))

    async def _delete_topic(self, topic: Topic) -> None:
        await self.catalog.delete(topic)
        self.groups.topics_deleted([topic.name])
        self.transactions.topics_deleted([topic.name])

    async def change_configs(self, broker: str, configs: Mapping[str, str], *, validate_only: bool) -> None:
        """Replace the changed settings of this broker (its id) or of all (an empty name). KafkaError."""
        config = self.config_layers.with_change(broker, configs).effective()
        if not validate_only:
            await to_its_end(self._change_configs(broker, configs, config))

    async def _change_configs(self, broker: str, configs: Mapping[str, str], config: BrokerConfig) -> None:
        await self.catalog.write([{"type": "broker-configs", "broker": broker, "configs": dict(configs)}])
        self.config = config
        self.housekeeping.configure(config)
        self.catalog.change_defaults(config.topic_defaults)

    # What coordinators need

    def internal_configs(self, name: str) -> dict[str, str]:
        """The overrides a topic of the coordinators is created with; none for any other topic."""
        if name == GROUP_OFFSETS:
            return {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": str(self.config.offsets_topic_segment_bytes),
            }
        if name == TRANSACTION_STATE:
            return {
                "cleanup.policy": "compact",
                "compression.type": "uncompressed",
                "min.insync.replicas": str(self.config.transaction_state_log_min_isr),
                "segment.bytes": str(self.config.transaction_state_log_segment_bytes),
                "unclean.leader.election.enable": "false",
            }
        return {}

    def _adopted(self, name: str, logs: Mapping[int, Log]) -> TopicImage:
        """A topic found on disk only, such as in a folder that Apache Kafka wrote."""
        known_ids = [opened.topic_id for opened in logs.values() if opened.topic_id is not None]
        log.info("topic %s was found on disk and taken in", name)
        return TopicImage(
            name=name,
            topic_id=known_ids[0] if known_ids else new_topic_id(),
            partitions=max(logs) + 1,
            configs=self.internal_configs(name),
        )
