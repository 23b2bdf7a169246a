"""Faults and requests of a history: see `simulation`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from logd.replication import Leader
from tests.faults.replication.times import CONTROLLER, SESSION_MS

if TYPE_CHECKING:
    from tests.faults.replication.simulation import Host, Simulation


class Faults:
    """Faults of a history. `without` are left out, by their number; `count` is how many there were."""

    def __init__(self, world: Simulation, without: frozenset[int]) -> None:
        self.world = world
        self.without = without
        self.count = 0

    def one(self) -> None:
        """Something goes wrong, or is asked for."""
        number, self.count = self.count, self.count + 1
        if self.world.is_over or number in self.without:
            return
        profile, rng = self.world.profile, self.world.rng
        ways: list[tuple[Callable[[Host], None], int]] = [
            (self._kill, profile.kill),
            (self._lose_power, profile.power_loss),
            (self._pause, profile.pause),
            (self._part, profile.part),
            (self._cut_off, profile.cut_off),
            (self._elect, profile.elect),
            (self._reassign, profile.reassign),
            (self._delete, profile.delete),
            (self._elect_uncleanly, profile.unclean),
        ]
        way = rng.choices([way for way, _ in ways], [weight for _, weight in ways])[0]
        way(self.world.hosts[rng.choice(list(self.world.hosts))])

    def _may_suffer(self, host: Host) -> bool:
        return host.is_up and not host.is_paused and host.node.id != self.world.spared

    def _kill(self, host: Host) -> None:
        if self._may_suffer(host):
            self.world.say(f"broker {host.node.id} is killed")
            self._stop(host)

    def _stop(self, host: Host) -> None:
        host.node.die()
        host.is_up = False
        host.life += 1
        host.backlog.clear()
        self.world.at(self.world.rng.choice((20, 100, 300, 900)), self._start_again, host)

    def _start_again(self, host: Host) -> None:
        if not host.is_up:
            self.world.start(host)

    def _lose_power(self, host: Host) -> None:
        """Cut a broker's power, but only if another one is sure to have what is committed."""
        isr = self.world.controller.image.partition.isr
        others = [number for number in isr if number != host.node.id and self._keeps(number)]
        is_risky = host.node.id in isr and (not others or self.world.doomed is not None)
        if is_risky or not self._may_suffer(host):
            return
        if host.node.id in isr:
            self.world.doomed, self.world.spared = host.node.id, self.world.rng.choice(others)
        log = host.node.log
        log_end = self.world.rng.randint(log.flushed_to, log.log_end_offset)
        self.world.say(f"broker {host.node.id} loses its power: {log_end} of {log.log_end_offset} are left")
        self.world.lost.add(host.node.id)
        self._stop(host)
        log.lose_power(log_end)
        host.node.checkpointed = min(host.node.checkpointed, log.log_end_offset)

    def _keeps(self, number: int) -> bool:
        host = self.world.hosts[number]
        now_ms, cuts = self.world.now_ms, self.world.cut.items()
        cut = any(number in pair and CONTROLLER in pair for pair, until in cuts if now_ms < until)
        return host.is_up and not host.is_paused and not cut and self.world.has_session(host.node)

    def _pause(self, host: Host) -> None:
        if self._may_suffer(host):
            self.world.say(f"broker {host.node.id} stands still")
            host.is_paused = True
            self.world.at(self.world.rng.choice((50, 300, SESSION_MS, 2 * SESSION_MS)), self.resume, host)

    def resume(self, host: Host) -> None:
        if not host.is_paused:
            return
        self.world.say(f"broker {host.node.id} goes on")
        host.is_paused = False
        backlog, host.backlog = host.backlog, []
        # Clients are waiting in the sockets beside the controller and the other brokers.
        self.world.rng.shuffle(backlog)
        for what, arguments in backlog:
            what(*arguments)

    def _part(self, host: Host) -> None:
        """Part two brokers from each other."""
        other = self.world.rng.choice(list(self.world.hosts))
        self._cut(host.node.id, other)

    def _cut_off(self, host: Host) -> None:
        """Part a broker from the controller, or from all."""
        if not self._may_suffer(host):
            return
        self._cut(host.node.id, CONTROLLER)
        if self.world.rng.random() < 0.4:
            for other in self.world.hosts:
                self._cut(host.node.id, other)

    def _cut(self, one: int, other: int) -> None:
        until = self.world.now_ms + self.world.rng.choice((100, 400, 800, 1_500))
        way = self.world.rng.random()
        self.world.say(f"brokers {one} and {other} are parted until {until}")
        if way < 0.8:
            self.world.cut[one, other] = until
        if way > 0.2:
            self.world.cut[other, one] = until

    def _elect(self, host: Host) -> None:
        """Another leader, or the same again."""
        if self.world.controller.elect(self.world.rng.choice(self.world.controller.image.partition.isr)):
            self.world.say(f"elected: {self.world.controller.image.partition}")
            self.world.publish()

    def _elect_uncleanly(self, host: Host) -> None:
        if host.node.id in self.world.controller.image.partition.isr:
            return
        if self.world.controller.elect(host.node.id, unclean=True):
            self.world.checker.is_unclean = True
            self.world.say(f"elected uncleanly: {self.world.controller.image.partition}")
            self.world.publish()

    def _reassign(self, host: Host) -> None:
        """Add or remove a replica."""
        replicas, number = self.world.controller.image.partition.replicas, host.node.id
        if number not in replicas:
            target = (*replicas, number)
        elif len(replicas) > 2:
            target = tuple(replica for replica in replicas if replica != number)
        else:
            return
        if self.world.controller.reassign(target):
            self.world.say(f"reassigned: {self.world.controller.image.partition}")
            self.world.publish()

    def _delete(self, host: Host) -> None:
        """DeleteRecords, up to what is committed."""
        node = host.node
        is_awake = host.is_up and not host.is_paused
        if is_awake and isinstance(node.role, Leader) and self.world.has_session(node):
            offset = self.world.rng.randint(
                node.log.log_start_offset, max(node.log.log_start_offset, node.high_watermark)
            )
            self.world.checker.deleted_before = max(self.world.checker.deleted_before, offset)
            self.world.say(f"broker {node.id} deletes before {offset}")
            node.log.delete_before(offset)
