"""A broker with its listeners in the running event loop, for programs that embed a broker.

The command `logd` runs it for the life of a process, `millstream.testing` for that of a test. Besides `start`
and `stop` it has methods for tests: they reset the state, and cause failures that clients must handle.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from logd.api.dispatch.dispatch import serve
from logd.broker.broker import Broker, wall_clock_ms
from logd.broker.broker_metrics import BrokerMetrics
from logd.config.zookeeper import ZooKeeperConfig
from logd.server.server import Server

if TYPE_CHECKING:
    from kafka_client.errors import MillstreamError
    from logd.api.dispatch.dispatch import Serving
    from logd.broker.cluster.membership import ClusterMembership
    from logd.config.broker import BrokerConfig
    from logd.storage.disk import Disk

BUSY_PAUSE_S = 0.005


class PartitionEnds(NamedTuple):
    """The first and last offsets of a partition: of all its records, and of ended transactions."""

    topic: str
    partition: int
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


class PartitionState(NamedTuple):
    """The state of a partition as a broker knows it: leader (-1 for none), replicas and in-sync replicas."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def membership_of(
    config: BrokerConfig, failed: Callable[[MillstreamError], None]
) -> ClusterMembership | None:
    """Return the cluster membership for these settings, or None for a standalone broker.

    `failed` is called with the error if the broker must leave the cluster. Raises ConfigError.
    """
    if not config.is_clustered:
        return None
    from logd.broker.cluster.membership import ClusterMembership
    from logd.broker.cluster.zookeeper_settings import zookeeper_settings

    return ClusterMembership(zookeeper_settings(ZooKeeperConfig.of(config.explicit)), failed=failed)


class BrokerServer:
    """A broker with its listeners: call `start` first and `stop` last, both in the loop.

    `on_dead` is called when the last log directory has failed: call `stop` then. `on_shutdown` is called when
    an operator requests a shutdown over the network; without it that is refused. `now_ms` is the wall clock,
    `disk` does all disk I/O, and `membership` is that of a broker in a cluster.
    """

    def __init__(
        self,
        config: BrokerConfig,
        *,
        on_dead: Callable[[], None] | None = None,
        on_shutdown: Callable[[], None] | None = None,
        now_ms: Callable[[], int] = wall_clock_ms,
        disk: Disk | None = None,
        membership: ClusterMembership | None = None,
    ) -> None:
        self.broker = Broker(
            config, on_dead=on_dead, on_shutdown=on_shutdown, now_ms=now_ms, disk=disk, membership=membership
        )
        self._server = Server(self.broker)
        self._state = "starting"
        """`starting`, `serving` or `stopping`."""

    async def start(self) -> None:
        """Bind the addresses, open the log directories, and accept clients.

        Raises ConfigError, CannotListen if an address is in use, StorageError or OSError. After an error
        nothing is left running.
        """
        try:
            self._server.bind()  # before the log directories are touched, which may take long to recover
            await self.broker.start()
            BrokerMetrics(self.broker).add_to(self.broker.metrics)
        except BaseException:
            await self._server.close()
            raise
        try:
            if self.broker.membership is None:
                self._server.accept()
            else:
                await self._join(self.broker.membership)
        except BaseException:
            await self.stop()
            raise
        self._state = "serving"

    async def _join(self, membership: ClusterMembership) -> None:
        """Join the cluster, and serve clients only after the controller has sent the metadata."""
        from logd.api.dispatch.not_joined import for_brokers_only

        self._server.intercept(for_brokers_only)
        self._server.accept()
        await membership.join()
        self._server.intercept(lambda before: serve)

    async def stop(self) -> None:
        """Close the connections and every log, leaving the clean-shutdown markers.

        In a cluster, the broker first hands over the partitions that it leads, while it still serves.
        """
        self._state = "stopping"
        if self.broker.membership is not None:
            await self.broker.membership.hand_over(self.broker)
        await self._server.close()
        await self.broker.stop()

    # State

    def problem(self) -> str | None:
        """Return why the broker does not serve clients now, or None if it does."""
        if self._state != "serving":
            return f"the broker is {self._state}"
        membership = self.broker.membership
        if membership is not None and not membership.is_leased:
            return "the broker has no registration in ZooKeeper that the controller has confirmed"
        return None

    def ends(self) -> list[PartitionEnds]:
        """Return the ends of every partition, including internal topics."""
        return [
            PartitionEnds(
                key.topic,
                key.partition,
                partition.log_start_offset,
                partition.high_watermark,
                partition.last_stable_offset,
            )
            for key, partition in sorted(self.broker.catalog.partitions.items())
        ]

    def states(self) -> list[PartitionState]:
        """Return the state of every partition in a cluster; a standalone broker has none."""
        return [
            PartitionState(*tp, state.leader, state.replicas, state.isr)
            for tp, state in sorted(self.broker.image.partitions.items())
        ]

    @property
    def topics(self) -> list[str]:
        """The names of all topics, including internal ones."""
        return list(self.broker.image.topics)

    @property
    def alive(self) -> list[int]:
        """The ids of the live brokers of the cluster."""
        return list(self.broker.image.brokers)

    @property
    def controller_id(self) -> int:
        """The id of the controller, -1 if it is not known."""
        return self.broker.cluster.controller_id

    @property
    def has_own_settings(self) -> bool:
        """True if a client has changed settings of brokers."""
        return bool(self.broker.image.broker_configs)

    # Changing

    async def create_topic(self, name: str, partitions: int, configs: Mapping[str, str]) -> None:
        """Create a topic.

        Raises KafkaError TOPIC_ALREADY_EXISTS, INVALID_TOPIC_EXCEPTION or INVALID_CONFIG.
        """
        await self.broker.catalog.create(name, partitions, configs)

    async def delete_all_topics(self) -> None:
        """Delete all topics, including the internal ones with all groups and transactional ids.

        Clients stay connected, and members of groups look up their coordinator again. Producer ids are not
        reused.
        """
        for topic in tuple(self.broker.catalog.topics.values()):
            await self.broker.delete_topic(topic)

    async def apply_retention(self) -> None:
        """Delete segments that are beyond retention, without waiting for log.retention.check.interval.ms."""
        await self.broker.housekeeping.apply_retention()

    async def fence(self, transactional_id: str) -> int:
        """Fence the producer of a transactional id, as a second producer does at its start.

        Return the new producer epoch. Raises KafkaError(TRANSACTIONAL_ID_NOT_FOUND).
        """
        transactions = self.broker.transactions
        timeout_ms = transactions.describe(transactional_id).timeout_ms
        while True:
            try:
                return (await transactions.init_producer(transactional_id, timeout_ms, None)).epoch
            except KafkaError as error:
                if error.code is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    raise
            await asyncio.sleep(BUSY_PAUSE_S)  # its open transaction is being aborted

    def resign(self) -> None:
        """Stop coordinating groups and transactions until `elected`; clients get NOT_COORDINATOR."""
        self.broker.groups.resign_all()
        self.broker.transactions.resign_all()

    def elected(self) -> None:
        """Coordinate all groups and transactions again."""
        self.broker.groups.elect_all()
        self.broker.transactions.elect_all()

    # Requests

    def intercept(self, wrap: Callable[[Serving], Serving]) -> None:
        """Serve requests by `wrap(serve)` from now on, where `serve` is what has served them so far."""
        self._server.intercept(wrap)

    def drop_connections(self) -> None:
        """Close every connection; clients may connect again."""
        self._server.drop_connections()
