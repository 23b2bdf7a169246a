"""The machines that brokers run on: started, killed, without power, standing still.

What runs there is the product's `BrokerServer` with all that it has, on files in memory
(`tests.support.power_loss` says what a power loss leaves of them).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kafka_client.errors import MillstreamError
from logd.broker.cluster.member import Member
from logd.broker.cluster.membership import ClusterMembership
from logd.broker_server import BrokerServer
from logd.config.broker import BrokerConfig
from logd.metadata.zookeeper.session.settings import ZooKeeperSettings
from tests.faults.cluster_simulation.machine import Life
from tests.support.power_loss import PowerLossDisk

if TYPE_CHECKING:
    from tests.faults.cluster_simulation.simulation import Simulation

PORT = 9092
ZOOKEEPER = "zookeeper:2181"
BEGAN_MS = 1_700_000_000_000
AGAIN_S = 0.5
"""After which a broker that has ended by itself is started again."""
SESSION_MS = 1_500
SETTINGS: Mapping[str, str] = {
    "zookeeper.connect": ZOOKEEPER,
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "replica.lag.time.max.ms": "900",
    "replica.fetch.wait.max.ms": "250",
    "replica.fetch.backoff.ms": "50",
    "replica.socket.timeout.ms": "1500",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "controlled.shutdown.retry.backoff.ms": "200",
    "leader.imbalance.check.interval.seconds": "3",
    "log.cleaner.enable": "false",  # it is another process, which writes past the disk
    "log.retention.check.interval.ms": "86400000",
    "log.segment.bytes": "4000",
    "log.index.interval.bytes": "300",
    "offsets.topic.segment.bytes": "6000",
    "transaction.state.log.segment.bytes": "6000",
    "log.segment.delete.delay.ms": "50",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "connections.max.idle.ms": "-1",
}


class BrokerHost:
    """Machine `id`; `server` is what runs there, None while nothing does."""

    def __init__(self, simulation: Simulation, id: int, folder: Path) -> None:
        self.id = id
        self.place = f"broker-{id}"
        self.life: Life | None = None
        self.server: BrokerServer | None = None
        self.is_up = False
        self.is_paused = False
        self.is_stopping = False
        self.has_joined = False
        self._simulation = simulation
        self._home = folder
        self._lives = 0
        self._settings = ZooKeeperSettings.of(ZOOKEEPER, session_timeout_ms=SESSION_MS)
        self.disk = self._new_disk(folder / "0")

    def _new_disk(self, path: Path) -> PowerLossDisk:
        path.mkdir(parents=True, exist_ok=True)
        return PowerLossDisk(path, random.Random(self._simulation.rng.getrandbits(64)))

    @property
    def config(self) -> BrokerConfig:
        """The settings that the broker starts with."""
        return BrokerConfig.of(
            {
                **SETTINGS,
                "node.id": str(self.id),
                "listeners": f"PLAINTEXT://{self.place}:{PORT}",
                "log.dirs": str(self.disk.root),
            }
        )

    @property
    def member(self) -> Member | None:
        """The broker's part in the cluster, None before it has one."""
        membership = None if self.server is None else self.server.broker.membership
        return None if membership is None else membership._member

    def start(self) -> None:
        """Begin a life, which is over when it fails."""
        assert self.life is None or self.life.is_dead
        self._lives += 1
        life = self.life = Life(self.place)
        simulation = self._simulation
        loop = simulation.loop
        loop.network.has_power_again(self.place)
        self.is_up, self.is_paused, self.is_stopping, self.has_joined = True, False, False, False
        loop.create_task(self._run(life), context=life.context()).add_done_callback(simulation.look_at)

    async def _run(self, life: Life) -> None:
        simulation = self._simulation
        began_ms, loop = BEGAN_MS, simulation.loop
        membership = ClusterMembership(
            self._settings, failed=lambda error: self._failed(life, error), clock=loop.time
        )
        server = self.server = BrokerServer(
            self.config,
            now_ms=lambda: began_ms + int(loop.time() * 1000),
            disk=self.disk,
            membership=membership,
        )
        try:
            await server.start()
            self.has_joined = True
        except MillstreamError as error:
            self._failed(life, error)

    def _failed(self, life: Life, error: MillstreamError) -> None:
        """Report an error that ends the broker, as the command does, and start the broker again later."""
        self._simulation.say(f"broker {self.id} ends: {error}")
        if self.life is life and not life.is_dead:
            self.kill()
            self._simulation.start_later(self, AGAIN_S)

    def shown(self) -> str:
        """Describe the broker's logs for a message."""
        if self.server is None or not self.has_joined:
            return "starting" if self.is_up else "down"
        broker = self.server.broker
        return ", ".join(
            f"{tp} {each.log_end_offset} hw {each.high_watermark} {broker.image.partitions.get(tp)}"
            for tp, each in broker.catalog.partitions.items()
        )

    # Ends

    def kill(self) -> None:
        """SIGKILL: the page cache stays, connections are reset."""
        self._end(silently=False)

    def lose_power(self) -> None:
        """Lose what was not synced, or some of it, without a signal to any peer."""
        self._end(silently=True)
        self._simulation.loop.network.dark.add(self.place)
        target = self._home / str(self._lives)
        self.disk.after_power_loss(target)
        self.disk = PowerLossDisk(target, self.disk.rng)

    def _end(self, *, silently: bool) -> None:
        life = self.life
        assert life is not None
        life.end()
        loop = self._simulation.loop
        loop.keep(life)
        life.references.append(self.server)
        loop.network.ended(life, silently=silently)
        if self.server is not None:
            for folder in self.server.broker.directories:
                for log in folder.logs.values():
                    log.release()
                folder.unlock()
        self.server = None
        self.is_up = self.is_paused = self.has_joined = False

    def pause(self) -> None:
        """SIGSTOP."""
        assert self.life is not None
        self.life.pause()
        self.is_paused = True

    def resume(self) -> None:
        """SIGCONT."""
        if self.is_paused and self.life is not None and not self.life.is_dead:
            self.is_paused = False
            self._simulation.loop.resume(self.life)

    def shut_down(self) -> None:
        """SIGTERM: it hands over, and ends by itself."""
        assert self.life is not None
        if self.server is not None and not self.is_stopping:
            self.is_stopping = True
            context = self.life.context()
            task = self._simulation.loop.create_task(self._stop(self.life, self.server), context=context)
            task.add_done_callback(self._simulation.look_at)

    async def _stop(self, life: Life, server: BrokerServer) -> None:
        await server.stop()
        self._simulation.say(f"broker {self.id} has stopped")
        if self.life is life:
            self.is_up = self.has_joined = False
            self.server = None
            life.end()
            loop = self._simulation.loop
            loop.keep(life)
            loop.network.ended(life, silently=False)
