"""A broker with its listeners in the running event loop, for those who have one inside their own program.

The command `logd` runs it for the life of a process, `millstream.testing` in a test's. What is here beyond
starting and stopping is what tests ask for: the state taken away, what clients must be able to live with.
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
    """Where a partition's records begin, and where they end: all of them, and those of ended transactions."""

    topic: str
    partition: int
    log_start_offset: int
    high_watermark: int
    last_stable_offset: int


class PartitionState(NamedTuple):
    """Who leads a partition (-1: nobody), who holds it, and who is in sync, as a broker has been told."""

    topic: str
    partition: int
    leader: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


def membership_of(
    config: BrokerConfig, failed: Callable[[MillstreamError], None]
) -> ClusterMembership | None:
    """Return the cluster membership for these settings, or None for a standalone broker. Raises ConfigError.

    `failed` is called when the broker may not go on among the others, with why.
    """
    if not config.is_clustered:
        return None
    from logd.broker.cluster.membership import ClusterMembership
    from logd.broker.cluster.zookeeper_settings import zookeeper_settings

    return ClusterMembership(zookeeper_settings(ZooKeeperConfig.of(config.explicit)), failed=failed)


class BrokerServer:
    """Call `start`, in the end `stop`, both in the loop; everything else is for in between.

    `on_dead` is called when the last log directory has failed: `stop` then; `on_shutdown` when an operator
    asks for that over the network, which is refused without it. `now_ms` is the wall clock, and `disk` what
    everything is written through; `membership` where the metadata is of a cluster of several.
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

    async def start(self) -> None:
        """Bind the addresses, open the log directories, and accept clients.

        Raises ConfigError, CannotListen (an address is in use), StorageError or OSError; nothing is left
        running then.
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

    async def _join(self, membership: ClusterMembership) -> None:
        """Serve clients only once the controller has said what there is."""
        from logd.api.dispatch.not_joined import for_brokers_only

        self._server.intercept(for_brokers_only)
        self._server.accept()
        await membership.join()
        self._server.intercept(lambda before: serve)

    async def stop(self) -> None:
        """Close the connections and every log, leaving the clean-shutdown markers.

        In a cluster, the broker first hands over the partitions that it leads, while it still serves.
        """
        if self.broker.membership is not None:
            await self.broker.membership.hand_over(self.broker)
        await self._server.close()
        await self.broker.stop()

    # Telling

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
        """Every topic, internal ones included."""
        return list(self.broker.image.topics)

    @property
    def alive(self) -> list[int]:
        """The brokers of a cluster of several that are alive."""
        return list(self.broker.image.brokers)

    @property
    def controller_id(self) -> int:
        """The broker that is the controller, -1 where nobody is known to be."""
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
        """Delete all topics; with the internal ones go all groups and transactional ids.

        Clients stay connected, and members of groups look for their coordinator again. Producer ids are not
        used again.
        """
        for topic in tuple(self.broker.catalog.topics.values()):
            await self.broker.delete_topic(topic)

    async def apply_retention(self) -> None:
        """Drop segments whose time or size is over, without waiting for log.retention.check.interval.ms."""
        await self.broker.housekeeping.apply_retention()

    async def fence(self, transactional_id: str) -> int:
        """Do what a second producer of that id does at its start; the epoch the first one is fenced by.

        KafkaError TRANSACTIONAL_ID_NOT_FOUND.
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
        """Coordinate no group and no transaction until `elected`; clients hear NOT_COORDINATOR."""
        self.broker.groups.resign_all()
        self.broker.transactions.resign_all()

    def elected(self) -> None:
        """Coordinate again."""
        self.broker.groups.elect_all()
        self.broker.transactions.elect_all()

    # Requests

    def intercept(self, wrap: Callable[[Serving], Serving]) -> None:
        """Have requests go to `wrap` of what served them so far."""
        self._server.intercept(wrap)

    def drop_connections(self) -> None:
        """Close every connection; clients may come again."""
        self._server.drop_connections()
