"""Faults one after the other and several at once, as a seed says; what is up and in sync nobody waits for.

For a while min.insync.replicas may not be reached, or nobody be the controller; writers have to go on when
that is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from kafka_client import Admin, Client, ElectionType, TopicPartition
from kafka_client.errors import MillstreamError
from millstream.zookeeper.ensemble import Ensemble
from tests.faults.cluster.cluster import REPLICAS, SESSION_MS, ZOOKEEPER, Cluster
from tests.faults.cluster.writers import Writer
from tests.support.full_disk import largest_file, limit_files
from tests.support.hosts import Hosts
from tests.support.network import Direction, Network, both_ways
from tests.support.waiting import wait_for
from tests.support.wall_clock import WallClock

ROOM = 20_000
"""Bytes that the largest file of a disk that is full soon may still grow."""
LONG_S = (5.0, 60.0)
"""How long brokers are parted where there is time: requests time out meanwhile, after 30 s."""
ASKED_MS = 3000
"""How long an operator waits for a leader's election."""
HOURS = (5, -5, 0)
"""Hours by which a wall clock is ahead."""


class Chaos:
    """`run` does so many faults, `run_for` as many as there is time for; `done` counts them by their kinds.

    With `clocks`, those of the brokers, these are set, and with `fills_disks` a broker may write no more.
    `parts_brokers`: the only faults are networks that part brokers from each other, for long, while leaders
    change. Connections are kept, and what was sent arrives when it is over.
    """

    def __init__(
        self,
        cluster: Cluster,
        ensemble: Ensemble,
        writers: Sequence[Writer],
        seed: int,
        network: Network | Hosts | None = None,
        *,
        clocks: Mapping[int, WallClock] | None = None,
        fills_disks: bool = False,
        parts_brokers: bool = False,
    ) -> None:
        self._cluster = cluster
        self._ensemble = ensemble
        self._writers = writers
        self._rng = random.Random(seed)
        self.done: Counter[str] = Counter()
        self._kinds: list[Callable[[], None]] = [
            self.kill,
            self.kill,
            self.kill_in_a_row,
            self.restart,
            self.hold_up,
            self.hold_up_briefly,
            self.kill_two,
            self.kill_while_held_up,
            self.zookeeper_away,
            self.zookeeper_held_up,
        ]
        if len(ensemble.servers) > 1:
            self._kinds += [self.kill_a_zookeeper, self.kill_a_zookeeper]
        self._network = network
        if network is not None:
            self._kinds += [
                self.part_from_zookeeper,
                self.part_from_brokers,
                self.part_from_all,
                self.part_two,
                self.part_one_way,
                self.kill_while_parted,
            ]
        if isinstance(network, Hosts):
            self._kinds += [self.unplug, self.take_down, self.cut_the_power, self.worsen]
        self._clocks = clocks or {}
        if clocks is not None:
            self._kinds += [self.set_a_clock]
        if fills_disks:
            self._kinds += [self.fill_a_disk]
        if parts_brokers:
            self._kinds = [
                self.part_two_for_long,
                self.part_two_for_long,
                self.part_one_way_for_long,
                self.part_one_way_for_long,
                self.part_from_brokers_for_long,
            ]

    def run(self, faults: int) -> None:
        """Cause so many faults, one after another."""
        for _ in range(faults):
            self.one()

    def run_for(self, seconds: float) -> None:
        """Cause faults as long as there is time. None begins later."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.one()

    def one(self) -> None:
        """At any moment after the one before; writers come forward between them now and then."""
        kind = self._rng.choice(self._kinds)
        self.done[kind.__name__] += 1
        kind()
        if self._rng.random() < 0.5:
            for writer in self._writers:
                writer.goes_on(100)
        else:
            self._pause(1)

    def _pause(self, seconds: float) -> None:
        time.sleep(self._rng.random() * seconds)

    def _pick(self, count: int = 1) -> list[int]:
        return self._rng.sample(sorted(self._cluster.brokers), count)

    def kill(self) -> None:
        """Kill a broker, and leave it down for less or more than its session."""
        (victim,) = self._pick()
        self._cluster.kill(victim)
        self._pause(2 * SESSION_MS / 1000)
        self._cluster.start(victim)

    def kill_in_a_row(self) -> None:
        """Kill and start brokers, each as soon as the one before is ready, in sync or not."""
        for victim in self._pick(3):
            self._cluster.kill(victim)
            self._cluster.start(victim)

    def kill_two(self) -> None:
        """Shortly after one another."""
        victims = self._pick(2)
        for victim in victims:
            self._cluster.kill(victim)
            self._pause(1)
        self._cluster.start(*victims)

    def restart(self) -> None:
        """SIGTERM."""
        self._cluster.restart(*self._pick())

    def hold_up(self, longest: float = 2.5 * SESSION_MS / 1000) -> None:
        """SIGSTOP."""
        (victim,) = self._pick()
        pid = self._cluster.brokers[victim].pid
        os.kill(pid, signal.SIGSTOP)
        self._pause(longest)
        os.kill(pid, signal.SIGCONT)

    def hold_up_briefly(self) -> None:
        """For less than a session, again and again."""
        for _ in range(3):
            self.hold_up(SESSION_MS / 1000 / 2)

    def kill_while_held_up(self) -> None:
        """Stop a broker for a while, and kill another meanwhile."""
        stopped, victim = self._pick(2)
        pid = self._cluster.brokers[stopped].pid
        os.kill(pid, signal.SIGSTOP)
        self._cluster.kill(victim)
        self._pause(2 * SESSION_MS / 1000)
        os.kill(pid, signal.SIGCONT)
        self._cluster.start(victim)

    def zookeeper_away(self) -> None:
        """Its server is ended, and begins again."""
        self._ensemble.stop()
        self._pause(SESSION_MS / 1000)
        self._ensemble.start()

    def zookeeper_held_up(self) -> None:
        """SIGSTOP: connections stay, nothing is answered."""
        for server in self._ensemble.servers:
            os.kill(server.pid, signal.SIGSTOP)
        self._pause(2 * SESSION_MS / 1000)
        for server in self._ensemble.servers:
            os.kill(server.pid, signal.SIGCONT)

    def kill_a_zookeeper(self) -> None:
        """Kill one server of several, which may be their leader."""
        server = self._rng.choice(self._ensemble.servers)
        server.kill()
        self._pause(2 * SESSION_MS / 1000)
        server.start()
        wait_for(lambda: server.state() is not None)

    def part_from_zookeeper(self) -> None:
        """Part a broker from ZooKeeper; the other brokers reach it."""
        (victim,) = self._pick()
        self._part(*both_ways(victim, [ZOOKEEPER]))

    def part_from_brokers(self) -> None:
        """Part a broker from the others; it keeps its session."""
        (victim,) = self._pick()
        self._part(*both_ways(victim, self._others(victim)))

    def part_from_all(self) -> None:
        """Part a broker from ZooKeeper and the others, but not from its clients."""
        (victim,) = self._pick()
        self._part(*both_ways(victim, [ZOOKEEPER, *self._others(victim)]))

    def part_two(self) -> None:
        """Part two brokers from each other."""
        one, two = self._pick(2)
        self._part(*both_ways(one, [two]))

    def part_one_way(self) -> None:
        """Lose all that a broker sends or all that is sent to it, for all ends or one."""
        (victim,) = self._pick()
        ends = [ZOOKEEPER, *self._others(victim)]
        pairs = both_ways(victim, ends)[self._rng.randrange(2) :: 2]
        self._part(*self._rng.sample(pairs, self._rng.choice([1, len(pairs)])))

    def part_two_for_long(self) -> None:
        """Part two brokers from each other for long, in both directions."""
        one, two = self._pick(2)
        self._part_for_long(*both_ways(one, [two]))

    def part_one_way_for_long(self) -> None:
        """Lose for long what one broker sends to another, requests and responses."""
        one, two = self._pick(2)
        self._part_for_long((one, two))

    def part_from_brokers_for_long(self) -> None:
        """Part a broker from all others for long; it keeps its session."""
        (victim,) = self._pick()
        self._part_for_long(*both_ways(victim, self._others(victim)))

    def kill_while_parted(self) -> None:
        """Part a broker from all, and kill another."""
        alone, victim = self._pick(2)
        pairs = both_ways(alone, [ZOOKEEPER, *self._others(alone)])
        self._part(*pairs, meanwhile=lambda: self._cluster.kill(victim))
        self._cluster.start(victim)

    def unplug(self) -> None:
        """Unplug a host from all others, without a signal to it."""
        self._without_network(self._hosts.unplug)

    def take_down(self) -> None:
        """Take a host's interface down, which it notices."""
        self._without_network(self._hosts.take_down)

    def cut_the_power(self) -> None:
        """Unplug and kill a broker, so that connections to it stay half open."""
        (victim,) = self._pick()
        self._hosts.unplug(victim)
        self._cluster.kill(victim)
        self._pause(2 * SESSION_MS / 1000)
        self._hosts.heal()
        self._cluster.start(victim)

    def worsen(self) -> None:
        """Packets are lost everywhere, or on the way to one broker."""
        self._hosts.worsen(self._rng.randrange(2, 20), *self._pick(self._rng.randrange(2)))
        self._pause(2.5 * SESSION_MS / 1000)
        self._hosts.heal()

    def fill_a_disk(self) -> None:
        """Fill the disk of one broker, so that it ends."""
        (victim,) = self._pick()
        broker = self._cluster.brokers[victim]
        limit_files(broker.pid, largest_file(broker.folder) + ROOM)
        wait_for(lambda: not broker.is_running)
        assert f"log directory {broker.overrides['log.dirs']} is offline" in broker.log, broker.log
        self._cluster.start(victim)

    def set_a_clock(self) -> None:
        """Set a broker's wall clock hours ahead, back or right, and leave it so."""
        (victim,) = self._pick()
        self._clocks[victim].set_by(timedelta(hours=self._rng.choice(HOURS)))

    @property
    def _hosts(self) -> Hosts:
        assert isinstance(self._network, Hosts)
        return self._network

    def _without_network(self, disturb: Callable[[int], None]) -> None:
        (victim,) = self._pick()
        disturb(victim)
        self._pause(2.5 * SESSION_MS / 1000)
        self._hosts.heal()

    def _others(self, victim: int) -> list[int]:
        return [id_ for id_ in self._cluster.brokers if id_ != victim]

    def _part_for_long(self, *directions: Direction) -> None:
        """Silence, with connections kept, while partitions are led by one broker after the other."""
        assert isinstance(self._network, Network)
        self._network.silence(*directions)
        deadline = time.monotonic() + self._rng.uniform(*LONG_S)
        while (left_s := deadline - time.monotonic()) > 0:
            self._elect()
            time.sleep(min(left_s, 3 * self._rng.random()))
        self._network.heal()

    def _elect(self) -> None:
        """Have a partition that is written to be led by another of its replicas, if that is in sync."""
        writer = self._rng.choice(self._writers)
        place = TopicPartition(writer.topic, self._rng.randrange(writer.partitions))
        with contextlib.suppress(MillstreamError):  # it may be the controller that is cut off
            asyncio.run(self._lead(place, self._pick(REPLICAS)))

    async def _lead(self, place: TopicPartition, replicas: list[int]) -> None:
        async with Client(self._cluster.bootstrap, request_timeout_ms=ASKED_MS) as client:
            admin = Admin(client, timeout_ms=ASKED_MS)
            await admin.alter_partition_reassignments({place: replicas})
            await admin.elect_leaders(ElectionType.PREFERRED, [place])

    def _part(self, *directions: Direction, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Silence, or broken connections, for less or more than a session."""
        network = self._network
        assert network is not None
        disturb = self._rng.choice([network.silence, network.silence, network.cut])
        disturb(*directions)
        meanwhile()
        self._pause(2.5 * SESSION_MS / 1000)
        network.heal()
