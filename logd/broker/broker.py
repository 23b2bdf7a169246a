"""The broker: settings, topics with their partitions, groups, and its life from start to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from pathlib import Path

from logd.broker.catalog import TopicCatalog, new_topic_id
from logd.broker.compaction import Compaction
from logd.broker.config_layers import ConfigLayers
from logd.broker.fetch_sessions import FetchSessions, random_id
from logd.broker.groups.groups import Groups
from logd.broker.housekeeping import Housekeeping
from logd.broker.journal_folder import journal_folder
from logd.broker.known_answers import KnownAnswers
from logd.broker.log_dirs import LogDirs
from logd.broker.moves import Moves
from logd.broker.partition import Partition
from logd.broker.pool import JobPool, to_its_end
from logd.broker.producer_ids import ProducerIds
from logd.broker.replicas import Replicas
from logd.broker.topic import GROUP_OFFSETS, TRANSACTION_STATE, Topic
from logd.broker.transactions.transactions import Transactions
from logd.broker.wakeups import Wakeups
from logd.broker.warming import Warmer
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint
from logd.config.topic import TopicConfig
from logd.errors import KafkaError, MillstreamError
from logd.metadata.decisions import Alter, alter_broker
from logd.metadata.embedded import EmbeddedStore
from logd.metadata.found import beyond, take_in
from logd.metadata.image import ClusterImage
from logd.metadata.store import MetadataStore
from logd.storage import FolderLocked, FolderMismatch, Log, LogFolder, StorageError
from logd.storage.disk import Disk, PosixDisk
from logd.topic_partition import TopicPartition

log = logging.getLogger("logd.broker")


class Broker:
    """What handlers reach through ``RequestContext.broker``.

    ``start`` opens everything and returns; the server may listen then. ``stop`` closes it cleanly.

    Attributes: ``config``, ``node_id``, ``cluster_id``, ``catalog`` (topics, partitions), ``producer_ids``,
    ``groups`` and ``transactions`` (the shells around the coordinators), ``fetch_sessions``, ``warmer``
    (reads that would wait for the disk), ``wakeups`` (requests that wait and have news),
    ``metadata_answers``, ``endpoints`` (advertised, by listener, set by the server).

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
        self._executor = executor or JobPool(config.background_threads)
        self._store: MetadataStore
        self.image = ClusterImage()
        self._found: dict[str, dict[int, Log]] = {}
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, random_id)
        self.warmer = Warmer(self._executor)
        self.wakeups = Wakeups()
        self.metadata_answers = KnownAnswers()
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
    def config_layers(self) -> ConfigLayers:
        """Where ``config`` comes from."""
        return ConfigLayers(self.node_id, self._started_with, self.image.broker_configs)

    def _resize_pool(self) -> None:
        if isinstance(self._executor, JobPool):
            self._executor.resize(self.config.background_threads)

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
            unusable = self._lock_folders()
            home = journal_folder(self.folders, unusable, adopt=self.config.millstream_adopt_log_dirs)
            for error in unusable:
                self.log_dirs.leave_out(error)
            self._load_metadata(home)
            self._open_folders(home)
            self._make_keepers()
            self._tidy_folders()
            await self._take_in_what_was_found()
        except BaseException:
            self._close_folders(None)  # opened and unharmed: their next start has nothing to recover
            raise
        self._open_topics()
        if self.log_dirs.is_complete:  # else files of deleted topics may come back with their folder
            self._store.compact(self.image)
        self._start_coordinators()
        self._start_background()

    def _start_coordinators(self) -> None:
        self.producer_ids = ProducerIds(self._store, self.image)
        for path in self.log_dirs.unusable:
            self.producer_ids.unread(f"log folder {path}")
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

    def _start_background(self) -> None:
        for folder in self.folders:
            self.housekeeping.discard(folder.deletions)
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

    def _make_keepers(self) -> None:
        """Who keeps the partitions held here, their logs in order, and the topics."""
        partitions: dict[TopicPartition, Partition] = {}
        self.housekeeping = Housekeeping(self.config, partitions, self.folders, self._executor, self.now_ms)
        replicas = Replicas(
            self.log_dirs,
            partitions,
            now_ms=self.now_ms,
            flusher=self.housekeeping.flusher,
            hide=self.housekeeping.hide,
            run=self.housekeeping.run,
            rehomed=lambda: self.catalog.rehomed(),
        )
        self.catalog = TopicCatalog(
            self._store,
            self.image,
            replicas,
            defaults=self.config.topic_defaults,
            settings_changed=self._settings_changed,
        )

    async def stop(self) -> None:
        """Stop what runs, then flush and close every log, leaving the clean-shutdown markers."""
        await self.transactions.stop()
        await self.groups.stop()
        await self.moves.stop()
        await self.compaction.stop()
        await self.catalog.disk_work_ended()
        await self.housekeeping.stop()
        watermarks = {key: partition.high_watermark for key, partition in self.catalog.partitions.items()}
        self._close_folders(watermarks)
        self._store.close()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _close_folders(self, watermarks: Mapping[TopicPartition, int] | None) -> None:
        for folder in self.folders:
            try:
                folder.close(watermarks)
            except (KafkaError, OSError) as error:
                log.error("log folder %s not closed cleanly: %s", folder.path, error)

    def _lock_folders(self) -> list[StorageError]:
        """Lock every folder; what is wrong with those that cannot be used."""
        unusable = []
        for path in map(Path, self.config.log_dirs):
            try:
                folder = LogFolder.lock(
                    path, node_id=self.node_id, on_offline=self._folder_went_offline, disk=self._disk
                )
            except (FolderLocked, FolderMismatch):
                raise
            except StorageError as error:
                unusable.append(error)
            else:
                self.folders.append(folder)
        return unusable

    def _load_metadata(self, home: LogFolder) -> None:
        """Read the journal; every folder says from now on where it is."""
        self.cluster_id = self.log_dirs.identify(home)
        self._store = EmbeddedStore(home.path, self._disk, self._executor)
        try:
            self.image = self._store.load()
        except OSError as error:
            raise StorageError(home.path, f"its metadata cannot be read: {error}") from error
        self.config = self.config_layers.effective()
        self._resize_pool()

    def _open_folders(self, home: LogFolder) -> None:
        for folder in tuple(self.folders):
            try:
                folder.open_logs(self._config_at_start, self.now_ms())
            except (StorageError, KafkaError) as error:
                if not isinstance(error, StorageError):
                    error = StorageError(folder.path, str(error))
                if folder is home:
                    raise error from None
                self.folders.remove(folder)
                self.log_dirs.leave_out(error)

    def _config_at_start(self, topic: str) -> TopicConfig:
        image = self.image.topics.get(topic)
        defaults = self.config.topic_defaults
        try:
            return defaults.overridden(image.configs) if image is not None else defaults
        except MillstreamError:
            return defaults

    def _tidy_folders(self) -> None:
        """Take away logs of deleted topics and what crashes have left."""
        for folder in self.folders:
            deleted = [
                folder.delete_log(*key)
                for key, opened in tuple(folder.logs.items())
                if opened.topic_id is not None and opened.topic_id in self.image.deleted
            ]
            if deleted:
                folder.sync()  # before the journal may forget them
                self.housekeeping.discard(deleted)
        self.log_dirs.put_futures_in_place(self.image.topics, self._config_at_start, self.now_ms())
        self.log_dirs.set_remains_aside(self.image.topics)

    async def _take_in_what_was_found(self) -> None:
        """Have the metadata know of every topic that has a log here, and of every producer."""
        self._found = self.log_dirs.logs(self.image.topics)
        ids = {
            name: {index: opened.topic_id for index, opened in logs.items()}
            for name, logs in self._found.items()
        }
        changes = take_in(self.image, ids, new_topic_id=new_topic_id, configs_for=self.internal_configs)
        for name in self._found.keys() - self.image.topics.keys():
            log.info("topic %s was found on disk and taken in", name)
        producers = {
            producer_id
            for logs in self._found.values()
            for opened in logs.values()
            for producer_id in opened.producers.producers
        }
        next_id = beyond(self.image.next_producer_id, producers)
        if next_id != self.image.next_producer_id:
            changes.append({"type": "producer-ids", "next": next_id})
        if changes:
            await self.catalog.take_in(changes)

    def _open_topics(self) -> None:
        """Put every topic in place. A log whose topic's id a power loss took is that of the topic of its
        name.
        """
        for image in self.image.topics.values():
            found = self._found.get(image.name, {})
            for opened in found.values():
                if opened.topic_id is None:
                    opened.identify(image.topic_id)
            self.catalog.open(image, found)
        self._found = {}

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

    async def change_configs(self, broker: str, alter: Alter, *, validate_only: bool) -> None:
        """Give this broker (its id) or all (an empty name) the changed settings that ``alter`` makes of those
        there are once it is this change's turn. KafkaError.
        """
        await self.catalog.change(
            lambda image: alter_broker(
                image,
                broker,
                alter,
                lambda configs: self.config_layers.with_change(broker, configs).effective(),
            ),
            validate_only=validate_only,
        )

    def _settings_changed(self) -> None:
        self.config = self.config_layers.effective()
        self._resize_pool()
        self.housekeeping.configure(self.config)
        self.transactions.configure(self.config)
        self.catalog.change_defaults(self.config.topic_defaults)

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
