"""The broker: settings, topics with their partitions, groups, and its life from start to stop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError, MillstreamError
from kafka_client.metrics.metrics import Metrics
from logd.broker.background.compaction import Compaction
from logd.broker.background.housekeeping import Housekeeping
from logd.broker.background.log_dir_moves import LogDirMoves
from logd.broker.background.truncation import Truncations
from logd.broker.coordinators.producer_ids import ProducerIds
from logd.broker.fetching.cold_reads import ColdReads
from logd.broker.fetching.fetch_sessions import FetchSessions, random_id
from logd.broker.fetching.response_cache import ResponseCache
from logd.broker.groups.groups import Groups
from logd.broker.log_dirs.journal_directory import journal_directory
from logd.broker.log_dirs.log_dirs import LogDirs
from logd.broker.log_dirs.opening import LogDirsOpening
from logd.broker.topics.catalog import TopicCatalog, new_topic_id
from logd.broker.topics.cluster_view import ClusterView
from logd.broker.topics.config_layers import ConfigLayers
from logd.broker.topics.internal_topics import overrides_of, partitions_of, replicas_of
from logd.broker.topics.recovered_logs import RecoveredLogs
from logd.broker.topics.replicas import Replicas
from logd.broker.transactions.transactions import Transactions
from logd.broker.work.pool import JobPool, Validator, to_its_end
from logd.broker.work.timeouts import Timeouts
from logd.broker.work.wakeups import Wakeups
from logd.metadata.image import ClusterImage
from logd.metadata.journal_store import JournalStore
from logd.storage import StorageError
from logd.storage.disk import PosixDisk

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.cluster.broker_login import BrokerLogin
    from logd.broker.cluster.controller_link import ControllerLink, RemoteCreations
    from logd.broker.cluster.membership import ClusterMembership
    from logd.broker.cluster.replica_selector import ReplicaSelector
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.broker.partition.partition import Partition
    from logd.broker.quotas.client_quotas import ClientQuotas
    from logd.broker.topics.topic import Topic
    from logd.config.broker import BrokerConfig
    from logd.config.listeners import Endpoint
    from logd.config.topic import TopicConfig
    from logd.metadata.decisions import Alter
    from logd.metadata.store import MetadataStore
    from logd.security.authorizer import Authorizer
    from logd.storage import LogDirectory
    from logd.storage.disk import Disk

log = logging.getLogger("logd.broker")


def wall_clock_ms() -> int:
    """Return the system clock's time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


class Broker:
    """The broker: everything that handlers reach through ``RequestContext.broker``.

    ``start`` opens everything and returns; the server may listen then. ``stop`` closes it cleanly.

    Attributes: ``config``, ``now_ms``, ``node_id``, ``cluster_id``, ``catalog`` (topics, partitions),
    ``cluster`` (who the brokers are, who leads what), ``controller_link`` (None on a standalone broker),
    ``producer_ids``, ``groups`` and ``transactions`` (the coordinators' shells), ``fetch_sessions``,
    ``cold_reads`` (reads that would wait for the disk), ``validator`` (batches validated in threads),
    ``wakeups`` (requests that wait and have news), ``timeouts`` (those that wait for a limited time),
    ``metadata_responses``, ``metrics``, ``requests_served`` (how many, by API key), ``endpoints``
    (advertised, by listener, set by the server).

    ``on_shutdown`` begins to stop this broker's process, None where that is somebody else's to do.

    ``disk`` is what everything is written through, ``executor`` runs what may block, ``now_ms`` is the wall
    clock in milliseconds since 1970: all are for tests. Sessions and intervals go by the event loop's clock.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        on_dead: Callable[[], None] | None = None,
        on_shutdown: Callable[[], None] | None = None,
        disk: Disk | None = None,
        executor: Executor | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
        membership: ClusterMembership | None = None,
    ) -> None:
        self.config = config
        self.membership = membership
        self.now_ms = now_ms
        self.node_id = config.node_id
        self.cluster_id = ""
        self.log_dirs = LogDirs(config.log_dirs)
        self.directories: list[LogDirectory] = self.log_dirs.directories
        self.endpoints: list[Endpoint] = []
        self._started_with = config.explicit
        self._on_dead = on_dead
        self.on_shutdown = on_shutdown
        self._disk = disk or PosixDisk()
        self._executor = executor or JobPool(config.background_threads)
        self._store: MetadataStore
        self.image = ClusterImage()
        self.fetch_sessions = FetchSessions(config.max_incremental_fetch_session_cache_slots, random_id)
        self.cold_reads = ColdReads(self._executor)
        self.validator = Validator(self._executor)
        self.wakeups = Wakeups()
        self.timeouts = Timeouts()
        self.metadata_responses = ResponseCache()
        self.metrics = Metrics()
        self.requests_served: Counter[int] = Counter()
        self.loop: asyncio.AbstractEventLoop
        self.controller_link: ControllerLink | None = None
        self.broker_login: BrokerLogin | None = None
        """The login of other brokers to this one; None for a standalone broker."""
        self.authorizer: Authorizer | None = None
        """Decides what a peer may do; None without authorizer.class.name: everybody may do everything."""
        self.client_quotas: ClientQuotas | None = None
        """The quotas of clients; None while the cluster has none, so that nothing is counted."""
        self._remote_creations: RemoteCreations | None = None
        self.catalog: TopicCatalog
        self.cluster: ClusterView
        self.moves: LogDirMoves
        self.groups: Groups
        self.housekeeping: Housekeeping
        self.compaction: Compaction
        self.producer_ids: ProducerIds
        self.leading: LedPartitions | None = None
        """The partitions led here that have other replicas; None for a standalone broker."""
        self.replica_selector: ReplicaSelector | None = None
        """Where consumers are to read what is led here, if not here."""
        self.bytes_out = self.replication_bytes_out = 0
        """Records sent to consumers, and to followers."""
        self.transactions: Transactions
        self.truncations: Truncations

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

    # Life

    async def start(self) -> None:
        """Lock and open the log directories, recover those not closed cleanly, and open every topic.

        Raises StorageError when a directory cannot be used, ConfigError for settings that do not fit.
        """
        self.loop = asyncio.get_running_loop()
        if self.membership is None:
            await self._open_alone()
        else:
            await self._open_among_others(self.membership)
        if isinstance(self._executor, JobPool):
            self.metrics.add("millstream", "jobs", self._executor.statistics)

    async def _open_alone(self) -> None:
        opening = LogDirsOpening(self.log_dirs)
        try:
            home = self._lock_directories(opening)
            opening.check(home)
            self._load_metadata(home)
            self.cluster_id = opening.identify(home)
            opening.open_logs(home, self._config_at_start, self.now_ms())
            self._make_keepers()
            self.housekeeping.discard(opening.delete_logs_of(self.image.deleted))
            opening.put_futures_in_place(self.image.topics, self._config_at_start, self.now_ms())
            opening.set_remains_aside(self.image.topics)
            recovered = RecoveredLogs.among(self.directories, self.image.topics)
            await self._store_recovered(recovered)
        except BaseException:
            self.log_dirs.close(None)  # opened and unharmed: their next start has nothing to recover
            raise
        for topic in self.image.topics.values():
            self.catalog.open(topic, recovered.identified(topic))
        if self.log_dirs.is_complete:  # else files of deleted topics may come back with their directory
            self._store.compact(self.image)
        self._start_coordinators()
        self._start_background()

    async def _open_among_others(self, membership: ClusterMembership) -> None:
        """Open as a member of a cluster. The controller names the replicas held here after `join`."""
        from logd.broker.topics.unassigned_logs import UnassignedLogs  # in a cluster only

        LogDirsOpening.refuse_journals(map(Path, self.config.log_dirs))
        directories = LogDirsOpening.identities(map(Path, self.config.log_dirs), self.node_id)
        self.cluster_id = await membership.open(self, directories)
        opening = LogDirsOpening(self.log_dirs)
        try:
            for error in self._locked(opening):
                self.log_dirs.leave_out(error)
            opening.identify_in(self.cluster_id, membership.connect)
            opening.open_replicas(self.config.topic_defaults, self.now_ms())
            self._store = membership.store
            replicas = self._make_keepers()
        except BaseException:
            self.log_dirs.close(None)
            await membership.close()
            raise
        replicas.keep_unassigned(UnassignedLogs(self.directories, self.image, self.node_id))
        self._start_coordinators()
        self._start_background()
        membership.create_parts(self)

    def _locked(self, opening: LogDirsOpening) -> list[StorageError]:
        return opening.lock(
            map(Path, self.config.log_dirs),
            node_id=self.node_id,
            disk=self._disk,
            on_offline=self._directory_went_offline,
        )

    def _lock_directories(self, opening: LogDirsOpening) -> LogDirectory:
        """Lock the log directories. Return the one with the journal of the metadata."""
        unusable = self._locked(opening)
        home = journal_directory(self.directories, unusable, adopt=self.config.millstream_adopt_log_dirs)
        for error in unusable:
            self.log_dirs.leave_out(error)
        return home

    def _load_metadata(self, home: LogDirectory) -> None:
        """Read the journal, and go by the settings in it from now on."""
        self._store = JournalStore(home.path, self._disk, self._executor)
        try:
            self.image = self._store.load()
        except OSError as error:
            raise StorageError(home.path, f"its metadata cannot be read: {error}") from error
        self.config = self.config_layers.allowed().effective()
        self._resize_pool()

    def _config_at_start(self, topic: str) -> TopicConfig:
        image = self.image.topics.get(topic)
        defaults = self.config.topic_defaults
        try:
            return defaults.overridden(image.configs) if image is not None else defaults
        except MillstreamError:
            return defaults

    def _make_keepers(self) -> Replicas:
        """Create the parts that keep the partitions held here, their logs and the topics."""
        partitions: dict[TopicPartition, Partition] = {}
        self.housekeeping = Housekeeping(
            self.config, partitions, self.directories, self._executor, self.now_ms
        )
        replicas = Replicas(
            self.log_dirs,
            partitions,
            now_ms=self.now_ms,
            flusher=self.housekeeping.flusher,
            hide=self.housekeeping.hide,
            run=self.housekeeping.run,
            rehomed=lambda: self.catalog.views_changed(),
        )
        self.cluster = ClusterView(self.image, self.node_id, self.config.broker_rack)
        self.catalog = TopicCatalog(
            self._store,
            self.image,
            replicas,
            cluster=self.cluster,
            defaults=self.config.topic_defaults,
            settings_changed=self._settings_changed,
        )
        self._make_authorizer()
        self.catalog.quotas_changed = self._quotas_changed
        self._quotas_changed()
        return replicas

    def _quotas_changed(self) -> None:
        """Go by the quotas in the image."""
        if not (self.image.user_configs or self.image.entity_configs):
            self.client_quotas = None
            return
        from logd.broker.quotas.client_quotas import ClientQuotas

        quotas = self.client_quotas
        if quotas is None:
            quotas = ClientQuotas(self.image, self.loop.time)
        else:
            quotas.configure(self.image)
        self.client_quotas = quotas if quotas.limits else None

    def _make_authorizer(self) -> None:
        if not self.config.authorizer_class_name:
            return
        from logd.broker.authorizer_settings import authorizer_of

        self.authorizer = self.catalog.authorizer = authorizer_of(self.config, self.image)

    async def _store_recovered(self, recovered: RecoveredLogs) -> None:
        """Add topics and producer ids recovered from disk to the metadata."""
        changes = recovered.changes(self.image, new_topic_id=new_topic_id, configs_for=self._overrides_of)
        if changes:
            await self.catalog.store_recovered(changes)

    def _start_coordinators(self) -> None:
        membership = self.membership
        if membership is None:
            self.producer_ids = ProducerIds.stored(self._store, self.image)
        else:
            self.producer_ids = membership.producer_ids()
        for path in self.log_dirs.unusable:
            self.producer_ids.unread(f"log directory {path}")
        self.groups = Groups(
            self.config,
            self.catalog,
            now_ms=self.now_ms,
            create_topic=self.auto_create,
            read_in=self.cold_reads.read_in,
        )
        self.transactions = Transactions(
            self.config,
            self.catalog,
            self.groups,
            self.producer_ids,
            now_ms=self.now_ms,
            create_topic=self.auto_create,
            read_in=self.cold_reads.read_in,
            cluster=None if membership is None else membership.others(self),
        )
        self.catalog.set_guard(self.transactions)
        if membership is not None:
            self.groups.only_elected()
            self.transactions.only_elected()
        self.groups.start()
        self.transactions.start()

    def _start_background(self) -> None:
        for directory in self.directories:
            self.housekeeping.discard(directory.deletions)
        self.housekeeping.start()
        self.compaction = Compaction(
            lambda: self.config,
            self.catalog.partitions,
            self.directories,
            self._executor,
            self.housekeeping.discard,
            self.now_ms,
        )
        self.compaction.start()
        self.moves = LogDirMoves(
            self.log_dirs,
            self.catalog.partitions,
            self._executor,
            config=lambda: self.config,
            discard=self.housekeeping.discard,
            flusher=self.housekeeping.flusher,
            compaction=self.compaction,
        )
        self.moves.resume()
        self.truncations = Truncations(
            run=self.housekeeping.run,
            now_ms=self.now_ms,
            high_watermarks=self.housekeeping.high_watermarks,
            discard=self.housekeeping.discard,
            flusher=self.housekeeping.flusher,
            compaction=self.compaction,
            moves=self.moves,
        )

    async def stop(self) -> None:
        """Stop what runs, then flush and close every log, leaving the clean-shutdown markers."""
        if self.membership is not None:
            await self.membership.leave()
        await self.transactions.stop()
        await self.groups.stop()
        await self.truncations.stop()
        await self.moves.stop()
        await self.compaction.stop()
        await self.catalog.disk_work_ended()
        await self.housekeeping.stop()
        self.log_dirs.close(self.housekeeping.high_watermarks())
        self._store.close()
        if self.membership is not None:
            await self.membership.close()
        self._executor.shutdown(wait=True, cancel_futures=True)

    def _directory_went_offline(self, reason: str) -> None:
        """Have the failed directory's partitions taken offline. Thread-safe; storage has logged the error."""
        self.loop.call_soon_threadsafe(self._look_at_directories)

    def _look_at_directories(self) -> None:
        for directory in self.directories:
            if directory.failure is not None:
                offline = self.catalog.take_offline(directory)
                self.groups.went_offline(offline)
                self.transactions.went_offline(offline)
        if self.membership is not None:
            self.membership.log_dirs_failed()
        if self._on_dead is not None and all(directory.failure is not None for directory in self.directories):
            log.critical("no log directory is left, stopping")
            self._on_dead()

    # Topics and settings

    def controller_changed(self, broker_id: int) -> None:
        """Note that another broker is the controller, or -1 if no controller is known. Cluster only."""
        self.cluster.controller_id = broker_id
        self.catalog.views_changed()

    async def auto_create(self, name: str) -> Topic:
        """Create a topic that a client only asked about, with the broker's defaults.

        KafkaError; LEADER_NOT_AVAILABLE where the controller has created it, and its news is on its way here.
        """
        partitions, factor = partitions_of(name, self.config), replicas_of(name, self.config)
        configs, link = self._overrides_of(name), self.controller_link
        if link is None or link.is_active:
            return await self.catalog.create(name, partitions, configs, replication_factor=factor)
        from logd.broker.cluster.controller_link import RemoteCreations, topic_to_create

        if self._remote_creations is None:
            self._remote_creations = RemoteCreations()
        await self._remote_creations.create(link, topic_to_create(name, partitions, factor, configs))
        if (topic := self.catalog.topics.get(name)) is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {name} is being created")
        return topic

    def _overrides_of(self, name: str) -> dict[str, str]:
        return overrides_of(name, self.config)

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
        await self.catalog.decide(
            lambda controller: controller.alter_broker(
                broker, alter, lambda configs: self.config_layers.with_change(broker, configs).effective()
            ),
            validate_only=validate_only,
        )

    def _settings_changed(self) -> None:
        self.config = self.config_layers.allowed().effective()
        self._resize_pool()
        self.housekeeping.configure(self.config)
        self.transactions.configure(self.config)
        self.catalog.change_defaults(self.config.topic_defaults)
        if self.membership is not None:
            self.membership.settings_changed()
