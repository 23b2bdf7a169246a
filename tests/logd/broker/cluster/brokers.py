"""A cluster of brokers in one event loop, on a real ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Self

from kafka_client.topic_partition import TopicPartition
from logd.broker.broker import wall_clock_ms
from logd.broker.cluster.member import Member
from logd.broker.cluster.membership import ClusterMembership
from logd.broker.cluster.zookeeper_settings import zookeeper_settings
from logd.broker.partition.partition import Partition
from logd.broker_server import BrokerServer
from logd.config.load import from_properties
from logd.config.zookeeper import ZooKeeperConfig
from logd.metadata.image import PartitionImage
from logd.metadata.zookeeper.session.clock import boottime

SESSION_MS = 2_000


class Brokers:
    """A cluster of brokers that runs while its async context is open. `{id}` in a setting's value is a
    broker's id.
    """

    def __init__(
        self, zookeeper: str, folder: Path, count: int = 3, *, folders: int = 1, **settings: str
    ) -> None:
        self.zookeeper = zookeeper
        self._folder = folder
        self._folders = folders
        self._settings = {name.replace("_", "."): value for name, value in settings.items()}
        self.clock: Callable[[], float] = boottime
        """The clock for the leases of brokers that are started from now on."""
        self.wall_clock_ms: Callable[[], int] = wall_clock_ms
        """The time of day of all brokers, in ms."""
        self.up: dict[int, BrokerServer] = {}
        self._ids = range(1, count + 1)

    async def __aenter__(self) -> Self:
        await asyncio.gather(*(self.start(id_) for id_ in self._ids))
        await self.until(
            lambda: all(len(each.broker.image.brokers) == len(self.up) for each in self.up.values())
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        for id_ in tuple(self.up):
            await self.stop(id_)

    async def start(self, id_: int) -> None:
        broker = self.create_broker(id_)
        await broker.start()
        self.up[id_] = broker

    def create_broker(
        self,
        id_: int,
        *,
        zookeeper: str | None = None,
        connection_timeout_ms: int | None = None,
        **other: str,
    ) -> BrokerServer:
        """Return a broker that is not started. Other settings and another ZooKeeper may be given."""
        config = from_properties(
            {
                "node.id": str(id_),
                "log.dirs": ",".join(str(self._folder / f"{id_}-{n}") for n in range(self._folders)),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "replica.fetch.wait.max.ms": "50",
                "replica.fetch.backoff.ms": "20",
                "zookeeper.connect": zookeeper or self.zookeeper,
                "zookeeper.session.timeout.ms": str(SESSION_MS),
                **(
                    {"zookeeper.connection.timeout.ms": str(connection_timeout_ms)}
                    if connection_timeout_ms is not None
                    else {}
                ),
                **{key: value.replace("{id}", str(id_)) for key, value in self._settings.items()},
                **{name.replace("_", "."): value for name, value in other.items()},
            }
        ).config
        membership = ClusterMembership(
            zookeeper_settings(ZooKeeperConfig.of(config.explicit)), clock=self.clock
        )
        return BrokerServer(config, membership=membership, now_ms=lambda: self.wall_clock_ms())

    def member(self, id_: int) -> Member:
        membership = self.up[id_].broker.membership
        assert membership is not None
        return membership.member

    async def stop(self, id_: int) -> None:
        await self.up.pop(id_).stop()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{each.broker.endpoint.port}" for each in self.up.values())

    @property
    def controller(self) -> BrokerServer:
        (active,) = [each for each in self.up.values() if each.broker.catalog.controller is not None]
        return active

    def state(self, tp: TopicPartition) -> PartitionImage | None:
        """Return a partition's state if all brokers have the same; None while their images differ."""
        states = {each.broker.image.partitions.get(tp) for each in self.up.values()}
        return states.pop() if len(states) == 1 else None

    def replicas(self, tp: TopicPartition) -> dict[int, Partition]:
        replicas = {id_: each.broker.catalog.partitions.get(tp) for id_, each in self.up.items()}
        return {id_: partition for id_, partition in replicas.items() if partition is not None}

    async def until(self, holds: Callable[[], bool], *, seconds: float = 60) -> None:
        async with asyncio.timeout(seconds):
            while not holds():  # noqa: ASYNC110 (of many things, and none tells)
                await asyncio.sleep(0.01)
