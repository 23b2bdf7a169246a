"""Random histories of one partition on several brokers, in one thread and by one number: `play(seed)`.

The brokers (`node`) go by the real rules of `logd.replication`; controller, network, disks and clients are
models. Time is a heap of events, all chance comes from the seed, so that a seed gives its history again.

Faults (`faults`)
- Messages are late, out of order or lost; between brokers and from clients. Sessions with the controller are
  a connection's: their messages are late, not lost, unless the broker is cut off.
- The network parts: two brokers from each other, one from the controller, one from everybody; in one or in
  both directions.
- A broker is killed and comes back: its log is whole, as what was written is in the page cache.
- A broker loses its power: what was not flushed is gone, from anywhere behind the last flush on. It comes
  back under its id with a new broker epoch, maybe before the controller has noticed anything.
- A broker stands still (SIGSTOP) for less or more than its session, and goes on with what it believed; what
  came meanwhile it finds in its sockets.
- Leaders are changed though nothing is wrong, replicas are added and removed (and their logs deleted),
  records deleted, disks flushed. Where a profile asks for it, replicas out of sync are elected.

What is promised, with min.insync.replicas of 1 or 2: nothing acknowledged to an acks=all producer is lost as
long as one replica in the controller's ISR keeps its disk. So no power is cut where no other one in the ISR
is up, and that other one is spared until the controller has noticed. It may still be that nobody else is left
in the ISR before that, by a proposal that was under way or by a lag. Then no rule of replication helps
(KIP-966 keeps whom to elect instead, which is the controller's): such a history is void, and not judged.

The controller is one that never fails (its own faults are tested where it is). All have the same clock; the
lease is counted from before the heartbeat was sent. Disks do not lie: what was flushed is there, whole.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from logd.replication import Follower, Leader, LeaderSettings
from tests.faults.replication.brokers import Brokers
from tests.faults.replication.checker import Checker, Kind, Violation
from tests.faults.replication.clients import ConsumerModel, ProducerModel
from tests.faults.replication.controller import NO_LEADER, Controller, Image
from tests.faults.replication.faults import Faults
from tests.faults.replication.memory_log import EpochsFall
from tests.faults.replication.node import Node, Rules
from tests.faults.replication.profile import Profile
from tests.faults.replication.times import CONTROLLER, HEARTBEAT_MS, LAG_MS, REGISTER_MS, SESSION_MS, TICK_MS


@dataclass
class Host:
    """A broker's machine: whether it is up, and what waits for it while it stands still."""

    node: Node
    is_up: bool = True
    is_paused: bool = False
    life: int = 0
    backlog: list[tuple[Callable[..., None], tuple[Any, ...]]] = field(default_factory=list)
    asks: int = 0
    """Fetches so far; an answer to another than the last one starts no next one."""


class Simulation:
    """A history: call `run` once, then see `checker`. `trace` holds its events if it is traced."""

    def __init__(
        self,
        seed: int,
        profile: Profile | None = None,
        rules: Rules | None = None,
        *,
        traced: bool = False,
        without: frozenset[int] = frozenset(),
    ) -> None:
        self.faults = Faults(self, without)
        self.brokers = Brokers(self)
        self.rng = random.Random(seed)
        self.profile = profile or Profile()
        self.rules = rules or Rules()
        self.trace: list[str] | None = [] if traced else None
        self.now_ms = 0
        self._heap: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self.checker = Checker()
        self.loss = self.rng.choice(self.profile.loss)
        self.late = self.rng.choice(self.profile.late)
        self.late_ms = self.rng.choice(self.profile.late_ms)
        ids = range(1, self.rng.choice(self.profile.brokers) + 1)
        replicas = tuple(self.rng.sample(ids, min(len(ids), self.rng.choice((2, 3, 3)))))
        self.settings = LeaderSettings(
            replica_lag_time_max_ms=LAG_MS,
            min_insync_replicas=min(self.rng.choice((1, 2, 2)), len(replicas)),
        )
        self.controller: Controller = self.rules.controller(replicas)
        self.hosts = {
            number: Host(Node(id=number, settings=self.settings, rules=self.rules)) for number in ids
        }
        self.sessions: dict[int, tuple[int, int, int]] = {}
        """By broker: its epoch, until when it is registered, and in which of its lives."""
        self.cut: dict[tuple[int, int], int] = {}
        """From, to: until when nothing gets through."""
        self.spared: int | None = None
        self.doomed: int | None = None
        """Who lost its power and is in the ISR still: `spared` is the one that keeps what is committed."""
        self.lost: set[int] = set()
        """Brokers that lost their power and have not registered again since."""
        self.is_over = self.is_void = False
        self.producers = [ProducerModel(self, number) for number in range(self.rng.choice((2, 3)))]
        self.consumers = [ConsumerModel(self, f"consumer {number}") for number in range(2)]

    # The course of things

    def run(self) -> Checker:
        """Play it through: with faults first, then until everything is well again."""
        try:
            self._run()
        except EpochsFall as error:
            self.checker.broken(Kind.DIVERGED_REPLICAS, str(error))
        if self.is_void:
            self.checker.violations.clear()
        return self.checker

    def _run(self) -> None:
        profile, rng = self.profile, self.rng
        for host in self.hosts.values():
            self.start(host)
        for go in [one.go for one in self.producers] + [one.go for one in self.consumers]:
            self.at(rng.randrange(40), go)
        self.at(SESSION_MS // 4, self._expire)
        for _ in range(rng.randint(*profile.storms)):
            begin, length = rng.randrange(100, profile.duration_ms - 300), rng.choice((20, 80, 300))
            for _ in range(rng.choice((1, 2, 2, 3, 4))):
                self.at(begin + rng.randrange(length), self.faults.one)
        self._play(profile.duration_ms)
        self._heal()
        limit = self.now_ms + 6_000
        while not self.is_void and not self._is_well():
            if self.now_ms >= limit:
                self.checker.broken(Kind.STUCK, self._state())
                break
            self._play(self.now_ms + 150)
        image = self.controller.image.partition
        if self._is_well():
            self.checker.audit({number: self.hosts[number].node.log for number in image.replicas})

    def at(self, delay_ms: int, what: Callable[..., None], *arguments: Any) -> None:
        """Have something happen later."""
        self._count += 1
        heapq.heappush(self._heap, (self.now_ms + delay_ms, self._count, what, arguments))

    def _play(self, until_ms: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= until_ms:
            self.now_ms, _, what, arguments = heapq.heappop(heap)
            what(*arguments)
        self.now_ms = until_ms

    def say(self, text: str) -> None:
        """Note what happened."""
        if self.trace is not None:
            self.trace.append(f"{self.now_ms:>6} {text}")

    def _heal(self) -> None:
        self.say("all faults are over")
        self.is_over, self.loss, self.late = True, 0.0, 0.0
        self.cut.clear()
        for host in self.hosts.values():
            if host.is_paused:
                self.faults.resume(host)
            if not host.is_up:
                self.start(host)

    def _is_well(self) -> bool:
        partition = self.controller.image.partition
        if partition.leader == NO_LEADER or set(partition.isr) != set(partition.replicas):
            return False
        end = self.hosts[partition.leader].node.log.log_end_offset
        for replica in partition.replicas:
            node = self.hosts[replica].node
            if node.leader_epoch != partition.leader_epoch or node.log.log_end_offset != end:
                return False
            if node.high_watermark != end:
                return False
        return all(one.is_done for one in self.producers) and all(
            one.position == end for one in self.consumers
        )

    def _state(self) -> str:
        nodes = [
            f"{number}: epoch {host.node.leader_epoch} end {host.node.log.log_end_offset} "
            f"hw {host.node.high_watermark} {type(host.node.role).__name__}"
            f" {host.node.role.next if isinstance(host.node.role, Follower) else ''}"
            for number, host in self.hosts.items()
        ]
        clients = [one.is_done for one in self.producers], [one.position for one in self.consumers]
        return f"{self.controller.image.partition} {nodes} {clients}"

    # Messages

    def send(self, source: int, target: int, what: Callable[..., None], *arguments: Any) -> None:
        """Send a message to a broker; it may be lost."""
        if self.rng.random() >= self.loss:
            self.send_surely(source, target, what, *arguments)

    def send_surely(self, source: int, target: int, what: Callable[..., None], *arguments: Any) -> None:
        """Send a message that is late at most, unless the network is parted."""
        if self.now_ms < self.cut.get((source, target), 0):
            return
        rng = self.rng
        delay = 1 + int(rng.random() * 6)
        if rng.random() < self.late:
            delay += int(rng.random() * self.late_ms)
        host = self.hosts.get(target)
        if host is None:
            self.at(delay, what, *arguments)
        elif host.is_up:
            self.at(delay, self._arrive, host, host.life, what, arguments)

    def _arrive(self, host: Host, life: int, what: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        if host.life != life:
            return
        if host.is_paused:
            host.backlog.append((what, arguments))
        else:
            what(*arguments)

    def later(self, host: Host, delay_ms: int, what: Callable[..., None], *arguments: Any) -> None:
        """Set a broker's own timer."""
        self.at(delay_ms, self._arrive, host, host.life, what, arguments)

    # Sessions

    def start(self, host: Host) -> None:
        self.say(f"broker {host.node.id} starts")
        host.is_up = True
        host.life += 1
        self._register(host)
        self.later(host, self.rng.randrange(TICK_MS), self.brokers.tick, host)
        self.later(host, self.rng.randrange(TICK_MS), self.brokers.fetch, host)
        self.later(host, self.rng.randrange(HEARTBEAT_MS), self._heartbeat, host)

    def _register(self, host: Host) -> None:
        if host.node.broker_epoch is None:
            self.send_surely(
                host.node.id, CONTROLLER, self._receive_registration, host, host.life, self.now_ms
            )
            self.later(host, REGISTER_MS, self._register, host)

    def _receive_registration(self, host: Host, life: int, sent_ms: int) -> None:
        number = host.node.id
        if life != host.life:
            return  # the connection is gone
        epoch, _, registered_life = self.sessions.get(number, (-1, -1, -1))
        if registered_life != life:
            epoch = self.controller.register(number)
            self._look()
            self._noticed(number)
            self.lost.discard(number)
            self.say(f"broker {number} is registered with epoch {epoch}: {self.controller.image.partition}")
        self.sessions[number] = epoch, self.now_ms + SESSION_MS, life
        image = self.controller.image
        self.send_surely(CONTROLLER, number, self._registered, host, epoch, sent_ms, image)
        self.publish()

    def _registered(self, host: Host, epoch: int, sent_ms: int, image: Image) -> None:
        node = host.node
        if node.broker_epoch is not None and epoch <= node.broker_epoch:
            return
        node.broker_epoch = epoch
        node.lease_ends_ms = sent_ms + SESSION_MS
        node.apply(image, self.now_ms)

    def _heartbeat(self, host: Host) -> None:
        node = host.node
        if node.broker_epoch is not None:
            self.send_surely(
                node.id, CONTROLLER, self._receive_heartbeat, host, node.broker_epoch, self.now_ms
            )
        self.later(host, HEARTBEAT_MS, self._heartbeat, host)

    def _receive_heartbeat(self, host: Host, epoch: int, sent_ms: int) -> None:
        number = host.node.id
        session = self.sessions.get(number)
        if session is not None and session[0] == epoch:
            self.sessions[number] = epoch, self.now_ms + SESSION_MS, session[2]
        is_known = session is not None and session[0] == epoch
        self.send_surely(
            CONTROLLER,
            number,
            self._heartbeat_answered,
            host,
            epoch,
            sent_ms,
            is_known,
            self.controller.image,
        )

    def _heartbeat_answered(self, host: Host, epoch: int, sent_ms: int, is_known: bool, image: Image) -> None:
        node = host.node
        if node.broker_epoch != epoch:
            return
        if is_known:
            node.lease_ends_ms = max(node.lease_ends_ms, sent_ms + SESSION_MS)
            node.apply(image, self.now_ms)
            node.settle(self.now_ms)
        else:
            node.broker_epoch = None
            self._register(host)

    def _expire(self) -> None:
        for number, (_, until_ms, _) in list(self.sessions.items()):
            if until_ms <= self.now_ms:
                del self.sessions[number]
                self.controller.session_ended(number)
                self._noticed(number)
                self.say(f"broker {number}'s session has ended: {self.controller.image.partition}")
                self.publish()
        self.at(SESSION_MS // 8, self._expire)

    def _noticed(self, number: int) -> None:
        if number == self.doomed:
            self.spared = self.doomed = None

    def _look(self) -> None:
        """Something has changed: see whether everybody in sync is."""
        isr = self.controller.image.partition.isr
        self.is_void |= self.lost.issuperset(isr)
        for number in isr:
            if number not in self.lost:
                self.checker.in_sync(number, self.hosts[number].node.log)

    def settled(self, node: Node) -> None:
        """Note that a leader's high watermark may have risen."""
        if isinstance(node.role, Leader) and self.checker.commit(node.role.high_watermark, node.log):
            self._look()

    def publish(self) -> None:
        image = self.controller.image
        self._look()
        for number in image.brokers:
            self.send(CONTROLLER, number, self._receive_image, self.hosts[number], image)

    def _receive_image(self, host: Host, image: Image) -> None:
        host.node.apply(image, self.now_ms)

    def has_session(self, node: Node) -> bool:
        """Return True if the controller has not ended the broker's session, whatever the broker believes."""
        session = self.sessions.get(node.id)
        return session is not None and session[0] == node.broker_epoch


def play(
    seed: int,
    profile: Profile | None = None,
    rules: Rules | None = None,
    *,
    traced: bool = False,
    without: frozenset[int] = frozenset(),
) -> list[Violation]:
    """Play a history and return what it broke. `traced` prints its events."""
    simulation = Simulation(seed, profile, rules, traced=traced, without=without)
    violations = simulation.run().violations
    if simulation.trace is not None:
        print("\n".join(simulation.trace))
    return violations


def shrink(seed: int, profile: Profile | None = None, rules: Rules | None = None) -> frozenset[int]:
    """Return faults that can be left out of a history so that it still breaks the same promise."""
    simulation = Simulation(seed, profile, rules)
    kinds = {violation.kind for violation in simulation.run().violations}
    without: frozenset[int] = frozenset()
    for number in range(simulation.faults.count):
        fewer = without | {number}
        if kinds & {violation.kind for violation in play(seed, profile, rules, without=fewer)}:
            without = fewer
    return without
