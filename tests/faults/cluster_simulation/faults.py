"""Faults of a history, one after another; each is over by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.metadata.zookeeper.session.operations import Delete
from logd.metadata.zookeeper.znodes.paths import CONTROLLER
from tests.faults.cluster_simulation.machine import NOBODY
from tests.faults.cluster_simulation.zookeeper import PLACE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.faults.cluster_simulation.brokers import BrokerHost
    from tests.faults.cluster_simulation.simulation import Simulation


class Faults:
    """`happened` counts them by name."""

    def __init__(self, simulation: Simulation) -> None:
        self.happened: dict[str, int] = {}
        self._simulation = simulation
        self._rng = simulation.rng
        self._network = simulation.network
        self._parted = 0
        self._faults: list[Callable[[], str]] = [
            getattr(self, f"_{name}")
            for name, weight in simulation.profile.weights.items()
            for _ in range(weight)
        ]

    def one(self) -> None:
        """Cause a fault, unless a broker must be spared at present."""
        simulation = self._simulation
        if simulation.is_over or simulation.is_somebody_doomed:
            return
        fault = self._rng.choice(self._faults)
        what = fault()
        if what:
            name = fault.__name__.strip("_")
            self.happened[name] = self.happened.get(name, 0) + 1
            simulation.say(f"FAULT {what}")

    def _later(self, delay_s: float, what: Callable[..., None], *arguments: object) -> None:
        self._simulation.loop.call_later(delay_s, what, *arguments, context=NOBODY)

    def _how_long(self) -> float:
        return self._rng.choice(self._simulation.profile.lengths_s) * (0.5 + self._rng.random() / 2)

    def _any_up(self) -> BrokerHost | None:
        up = [host for host in self._simulation.hosts.values() if host.is_up and not host.is_paused]
        return self._rng.choice(up) if up else None

    # Processes

    def _kill(self) -> str:
        host = self._any_up()
        if host is None:
            return ""
        host.kill()
        self._simulation.start_later(host, self._how_long())
        return f"broker {host.id} is killed"

    def _lose_power(self) -> str:
        host = self._any_up()
        simulation = self._simulation
        if host is None or self._parted or not simulation.may_lose_power(host):
            return ""
        host.lose_power()
        simulation.lost_power(host)
        simulation.start_later(host, self._how_long())
        return f"broker {host.id} loses its power"

    def _pause(self) -> str:
        host = self._any_up()
        if host is None:
            return ""
        host.pause()
        self._later(self._how_long(), host.resume)
        return f"broker {host.id} stands still"

    def _shut_down(self) -> str:
        host = self._any_up()
        if host is None or host.server is None or host.is_stopping or not host.has_joined:
            return ""
        host.shut_down()
        self._simulation.start_later(host, 4 * self._how_long())
        return f"broker {host.id} is told to stop"

    # The network

    def _part(self, pairs: list[tuple[str, str]]) -> None:
        if self._rng.random() < 0.7:
            pairs += [(other, one) for one, other in pairs]
        self._network.part(pairs)
        self._parted += 1
        self._later(self._how_long(), self._join, pairs)

    def _join(self, pairs: list[tuple[str, str]]) -> None:
        self._parted -= 1
        self._network.join(pairs)
        self._simulation.say(f"{pairs} are together again")

    def _two(self) -> tuple[str, str]:
        one, other = self._rng.sample(sorted(host.place for host in self._simulation.hosts.values()), 2)
        return one, other

    def _part_brokers(self) -> str:
        one, other = self._two()
        self._part([(one, other)])
        return f"{one} and {other} are parted"

    def _part_from_zookeeper(self) -> str:
        one, _ = self._two()
        self._part([(one, PLACE)])
        return f"{one} is parted from ZooKeeper"

    def _isolate(self) -> str:
        one, _ = self._two()
        others = [*(host.place for host in self._simulation.hosts.values()), PLACE]
        self._part([(one, other) for other in others if other != one])
        return f"{one} is isolated"

    def _part_client(self) -> str:
        one, _ = self._two()
        client = self._rng.choice(self._simulation.actors).name
        self._part([(client, one)])
        return f"{client} is parted from {one}"

    def _drop_connections(self) -> str:
        one, other = self._two()
        self._network.drop(one, other)
        self._network.drop(self._rng.choice(self._simulation.actors).name, one)
        return f"connections of {one} to {other} break"

    # ZooKeeper

    def _lose_zookeeper_connection(self) -> str:
        one, _ = self._two()
        for client in self._simulation.zookeeper.clients:
            if client.life.place == one and not client.life.is_dead:
                client.break_down()
        return f"{one} loses its connection to ZooKeeper"

    def _zookeeper_away(self) -> str:
        zookeeper = self._simulation.zookeeper
        if zookeeper.is_away:
            return ""
        zookeeper.go_away()
        self._later(self._how_long(), zookeeper.come_back)
        return "ZooKeeper is away"

    def _depose_controller(self) -> str:
        zookeeper = self._simulation.zookeeper
        if zookeeper.is_away or CONTROLLER not in zookeeper.znodes:
            return ""
        zookeeper.carry_out(Delete(CONTROLLER), 0)
        return "somebody deletes /controller"
