"""A broker's membership of its cluster: ZooKeeper's session, the other brokers, the roles of its partitions.

Call `open` before the log directories are touched, `create_parts` when the broker's own parts exist, and
`join` when the broker can be reached. From then on the controller assigns partitions to it.
"""

from __future__ import annotations

import logging
import ssl
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_client.errors import ErrorCode, KafkaError, MillstreamError, error_for
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire import Message
from kafka_client.wire.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from logd.broker.cluster.broker_login import BrokerLogin, new_secret
from logd.broker.cluster.controlled_shutdown import ControlledShutdown
from logd.broker.cluster.failed_log_dirs import FailedLogDirs
from logd.broker.cluster.member import Member, MemberCallbacks, MemberFacts
from logd.broker.cluster.older_brokers import OlderBrokers
from logd.broker.cluster.peer_connections import PeerConnections
from logd.broker.cluster.replica_selector import ReplicaSelector
from logd.broker.cluster.replication.assignment import Assignment
from logd.broker.cluster.replication.led_partitions import LedPartitions
from logd.broker.cluster.replication.replica_fetcher import FetcherSettings, FetchingBroker, ReplicaFetcher
from logd.broker.cluster.replication.replica_fetchers import ReplicaFetchers
from logd.broker.cluster.replication.replication_quota import ReplicationQuota
from logd.broker.coordinators.peers import Cluster, Leadership
from logd.broker.coordinators.producer_id_blocks import BlocksAhead
from logd.broker.coordinators.producer_ids import ProducerIds
from logd.broker.partition.partition import Partition
from logd.broker.topics.topic import GROUP_OFFSETS, TRANSACTION_STATE
from logd.config.listeners import inter_broker_listener, security_protocols
from logd.config.replication import RACK_AWARE
from logd.metadata.image import BrokerImage, Change, ClusterImage
from logd.metadata.zookeeper import cluster, moving
from logd.metadata.zookeeper.registration import refuse_foreign_brokers
from logd.metadata.zookeeper.session.clock import boottime
from logd.metadata.zookeeper.session.session import Session
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from logd.metadata.zookeeper.znodes.znodes import Endpoint, Registration
from logd.storage import DirectoryMismatch
from logd.storage.checkpoints import encode_uuid
from logd.storage.identity import DirectoryIdentity

if TYPE_CHECKING:
    from logd.broker.cluster.host import HostBroker
    from logd.broker.groups.groups import Groups
    from logd.broker.transactions.transactions import Transactions

_BY_ITSELF = (
    "it is of a broker by itself, whose metadata.journal is in a folder that log.dirs lacks: add that and "
    "move it to ZooKeeper with `millstream cluster move-to-zookeeper`, start the broker without "
    "zookeeper.connect, or give it other log.dirs"
)
_BROKER_CHANGES = {"broker", "broker-gone"}
"""The types of changes after which there may be other brokers of an older release."""

log = logging.getLogger("logd.cluster")


class ClusterMembership:
    """`failed` is called when the broker may not go on, with why; leases go by `clock` (s)."""

    def __init__(
        self,
        zookeeper: ZooKeeperSettings,
        *,
        failed: Callable[[MillstreamError], None] = lambda error: None,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.store = NoStore()
        self._zookeeper = zookeeper
        self._failed = failed
        self._clock = clock
        self._session: Session
        self._secret: str
        self._older: OlderBrokers
        self._member: Member | None = None
        self._listener = ""
        """The name of the listener by which brokers talk to each other."""
        self._assignment: Assignment | None = None
        self._blocks: BlocksAhead | None = None
        self._failed_log_dirs: FailedLogDirs | None = None
        self.has_joined = False
        """True once the broker has the cluster's metadata."""
        self.follower_quota: ReplicationQuota
        """The rate limit on copying throttled partitions; `create_parts` comes first."""

    async def open(self, broker: HostBroker, directories: Mapping[Path, DirectoryIdentity]) -> str:
        """Connect to ZooKeeper. Return the id of the cluster there, a new id if all log directories are new.

        Raises ConfigError, Unreachable, NotAllowed, BadZnode, UnfinishedMove or ForeignBroker, and
        DirectoryMismatch if a log directory is another cluster's. Nothing is written then: a mistyped chroot
        does not become a cluster.
        """
        listener_of(broker)
        self._session = await Session(self._zookeeper, clock=self._clock).open(create_chroot=False)
        try:
            await moving.refuse_unfinished(self._session)
            await refuse_foreign_brokers(self._session)
            _refuse_foreign(directories, await cluster.find_cluster_id(self._session), self.connect)
            await self._session.ensure_chroot()
            self._secret = await cluster.cluster_secret(self._session, new_secret)
            self._older = OlderBrokers(self._session)
            await self._older.read()
            return await cluster.cluster_id(self._session, lambda: encode_uuid(uuid.uuid4().bytes))
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Leave the cluster: the logs are closed."""
        if self._member is not None:
            await self._member.unregister()
        await self._session.close()

    @property
    def connect(self) -> str:
        """The `zookeeper.connect` it is reached by."""
        return self._zookeeper.connect

    @property
    def member(self) -> Member:
        """This broker among the others; `create_parts` comes first."""
        assert self._member is not None, "create_parts comes first"
        return self._member

    @property
    def is_leased(self) -> bool:
        """True if what is led here is surely led still: else nothing may be accepted or acknowledged."""
        assert self._member is not None, "create_parts comes first"
        return self._member.is_leased

    @property
    def session(self) -> Session:
        """With ZooKeeper; `open` comes first."""
        return self._session

    @property
    def max_lag(self) -> int:
        """See `ReplicaFetchers.max_lag`."""
        return 0 if self._assignment is None else self._assignment.fetchers.max_lag

    def fetchers(self) -> dict[str, int]:
        """See `ReplicaFetchers.statistics`."""
        return {} if self._assignment is None else self._assignment.fetchers.statistics()

    # What coordinators need of the others (`logd.broker.coordinators.peers`, `producer_id_blocks`)

    def others(self, broker: HostBroker) -> Cluster:
        """Return the leaders of partitions, and the connections to the other brokers."""
        return Cluster(_Leaders(broker), self)

    def producer_ids(self) -> ProducerIds:
        """Return producer ids, whose blocks the controller allots."""
        self._blocks = BlocksAhead(self)
        return ProducerIds.of_cluster(self._blocks)

    async def request(self, broker_id: int, message: Message) -> Any:
        """Ask another broker. See `logd.broker.coordinators.peers.Peers`."""
        # A lane for each kind: markers wait for replicas, and what asks for consent is not to wait for them.
        return await self.member.request(broker_id, message, lane=type(message).__name__)

    async def next_block(self) -> tuple[int, int]:
        """See `ProducerIdBlocks`."""
        member = self.member
        request = AllocateProducerIdsRequest(broker_id=member.node_id, broker_epoch=member.epoch)
        answer: AllocateProducerIdsResponse = await member.ask_controller(request)
        if answer.error_code:
            raise error_for(answer.error_code, "AllocateProducerIds")
        return answer.producer_id_start, answer.producer_id_start + answer.producer_id_len - 1

    # Life among the others

    def create_parts(self, broker: HostBroker) -> None:
        """Give the broker's partitions what they need of the others."""
        listener = self._listener = listener_of(broker)
        login = broker.broker_login = BrokerLogin.configured(
            self._secret,
            listener,
            self._older,
            properties=broker.config.explicit,
            protocol=security_protocols(broker.config)[listener],
            mechanism=broker.config.sasl_mechanism_inter_broker_protocol,
        )
        peers = PeerConnections(broker.node_id, lambda: self._brokers(broker), listener, login)
        member = self._member = Member(
            broker.node_id,
            self._session,
            peers,
            image=broker.image,
            catalog=broker.catalog,
            facts=MemberFacts(
                registration=lambda: registration_of(broker),
                config=lambda: broker.config,
                now_ms=broker.now_ms,
            ),
            callbacks=MemberCallbacks(
                failed=self._failed,
                controller_changed=broker.controller_changed,
                applied=lambda changes: _applied(broker, changes),
            ),
        )
        broker.controller_link = member
        self._failed_log_dirs = FailedLogDirs(
            member.ask_controller,
            own=lambda: (broker.node_id, member.epoch),
            failed=lambda: broker.log_dirs.failed,
            lost=lambda: broker.catalog.lost,
        )
        member.on_snapshot = self._failed_log_dirs.report
        leading = broker.leading = LedPartitions(
            broker.image,
            member.ask_controller,
            own=lambda: (broker.node_id, member.epoch),
            # Not the wall clock: setting that clock would make all followers late.
            now_ms=lambda: int(broker.loop.time() * 1000),
            replica_lag_time_max_ms=broker.config.replica_lag_time_max_ms,
            lease=lambda: member.is_leased,
            quota=ReplicationQuota(
                broker.node_id, lambda: broker.config.leader_replication_throttled_rate, broker.loop.time
            ),
        )
        self.follower_quota = ReplicationQuota(
            broker.node_id, lambda: broker.config.follower_replication_throttled_rate, broker.loop.time
        )
        if broker.config.replica_selector_class == RACK_AWARE:
            broker.replica_selector = ReplicaSelector(leading, broker.cluster, broker.config.broker_rack)
        fetchers = ReplicaFetchers(lambda leader: self._fetcher(broker, member, leader))
        self._assignment = Assignment(broker.node_id, leading, fetchers, _Coordinators(broker))
        broker.catalog.join(self._assignment, topics_deleted=lambda names: _forget_topics(broker, names))

    def _brokers(self, broker: HostBroker) -> Mapping[int, BrokerImage]:
        """Return the brokers that are alive; the controller's own image is ahead of its updates."""
        controller = self.member.controller_image
        return (controller or broker.image).brokers

    def _fetcher(self, broker: HostBroker, member: Member, leader: int) -> ReplicaFetcher:
        return ReplicaFetcher(
            leader,
            follower=FetchingBroker(
                node_id=broker.node_id,
                broker_epoch=lambda: member.epoch,
                truncations=broker.truncations,
                discard=broker.housekeeping.discard,
                now_ms=broker.now_ms,
            ),
            peers=member.peers,
            settings=FetcherSettings.of(broker.config),
            quota=self.follower_quota,
        )

    async def join(self) -> None:
        """Register, and wait until the controller has said what is held here."""
        await self.member.start()
        await self.member.wait_for_snapshot()
        self.has_joined = True

    def log_dirs_failed(self) -> None:
        """Report log directories that failed to the controller."""
        if self._failed_log_dirs is not None:
            self._failed_log_dirs.report()

    def settings_changed(self) -> None:
        """Have the controller, if it is on this broker, use the broker's changed settings."""
        if (controlling := self.member.if_controlling) is not None:
            controlling.settings_changed()

    def tls_changed(self, listener: str, context: ssl.SSLContext) -> None:
        """Connect to other brokers by these certificates, if they talk by that listener."""
        if self._member is not None and listener == self._listener:
            self._member.peers.use_tls(context)

    async def hand_over(self, broker: HostBroker) -> None:
        """Have others lead what is led here, as far as they can: before connections are closed."""
        member, leading = self._member, broker.leading
        if member is None or leading is None or member.epoch < 0:  # it has not come so far
            return
        if broker.config.controlled_shutdown_enable:
            await ControlledShutdown(member, leading, broker.config).run()

    async def leave(self) -> None:
        """Lead nothing and follow nothing any more, and be no controller; `close` comes last."""
        if self._assignment is not None:
            await self._assignment.stop()
        if self._failed_log_dirs is not None:
            await self._failed_log_dirs.stop()
        if self._blocks is not None:
            await self._blocks.stop()
        await self._older.stop()
        await self.member.stop()


def _refuse_foreign(
    directories: Mapping[Path, DirectoryIdentity], cluster_id: str | None, connect: str
) -> None:
    """Raise DirectoryMismatch if a log directory is not of the cluster in ZooKeeper; None: there is no
    cluster yet.
    """
    for path, directory in directories.items():
        if directory.cluster_id not in (None, cluster_id):
            there = "there is none" if cluster_id is None else f"cluster {cluster_id} is"
            raise DirectoryMismatch(
                path,
                f"belongs to cluster {directory.cluster_id}, and {there} at zookeeper.connect={connect}: "
                f"{directory.remedy if directory.journal_id is None else _BY_ITSELF}",
            )


class _Leaders:
    """See `logd.broker.coordinators.peers.Leaders`."""

    def __init__(self, broker: HostBroker) -> None:
        self.broker_id = broker.node_id
        self._broker = broker

    def leader_of(self, where: TopicPartition) -> int | None:
        """Return the id of a partition's leader by the image, -1 for no leader, or None."""
        state = self._broker.image.partitions.get(where)
        return None if state is None else state.leader

    def leadership_of(self, where: TopicPartition) -> Leadership | None:
        """Return a partition's leader, leader epoch and topic id by the image, or None."""
        image = self._broker.image
        state = image.partitions.get(where)
        if state is None:
            return None
        return Leadership(state.leader, state.leader_epoch, image.topics[where.topic].topic_id)


class _Coordinators:
    """Tells the coordinators which partitions of their topics are led here, and what leaders have changed."""

    def __init__(self, broker: HostBroker) -> None:
        self._broker = broker
        self._led: set[TopicPartition] = set()

    def __call__(self, partition: Partition, is_leader: bool) -> None:
        tp = partition.tp
        if is_leader is not (tp in self._led):
            self._broker.transactions.partition_moved(tp)
        if is_leader:
            self._led.add(tp)
        else:
            self._led.discard(tp)
        if partition.topic == GROUP_OFFSETS:
            _tell(self._broker.groups, partition, is_leader)
        elif partition.topic == TRANSACTION_STATE:
            _tell(self._broker.transactions, partition, is_leader)


def _tell(coordinator: Groups | Transactions, partition: Partition, is_leader: bool) -> None:
    if is_leader:
        coordinator.elected(partition.index, partition.leader_epoch)
    else:
        coordinator.resigned(partition.index, partition.leader_epoch)


def _applied(broker: HostBroker, changes: list[Change]) -> None:
    broker.transactions.leaders_changed()
    if broker.broker_login is not None and any(each["type"] in _BROKER_CHANGES for each in changes):
        broker.broker_login.refresh()
    if broker.leading is not None:
        broker.leading.image_changed(changes)


def _forget_topics(broker: HostBroker, names: list[str]) -> None:
    broker.groups.topics_deleted(names)
    broker.transactions.topics_deleted(names)


def listener_of(broker: HostBroker) -> str:
    """Return the listener by which brokers talk to each other. Raises ConfigError."""
    return inter_broker_listener(broker.config, [endpoint.listener for endpoint in broker.endpoints])


def registration_of(broker: HostBroker) -> Registration:
    """Return this broker's registration in ZooKeeper."""
    protocols = security_protocols(broker.config)
    return Registration(
        endpoints=tuple(
            Endpoint(each.listener, each.host, each.port, protocols[each.listener])
            for each in broker.endpoints
        ),
        rack=broker.config.broker_rack,
        is_logd=True,
        logs_in=True,
    )


class NoStore:
    """In place of a broker's own journal: what changes the cluster goes to the controller."""

    def load(self) -> ClusterImage:
        """Return an empty image, as the controller sends the metadata later."""
        return ClusterImage()

    def compact(self, image: ClusterImage) -> None:
        """Do nothing: the metadata is the controller's."""

    async def write(self, changes: list[Change]) -> None:
        """Raise KafkaError(NOT_CONTROLLER): only the controller writes."""
        raise KafkaError(
            ErrorCode.NOT_CONTROLLER, "changes of a cluster of several brokers are written by its controller"
        )

    def close(self) -> None:
        """Do nothing: there is nothing to close."""
