"""Random histories of one partition on several brokers, in one thread and by one number: `play(seed)`.

The brokers (`node`) go by the real rules of `logd.replication`; controller, network, disks and clients are
models. Time is a heap of events, all chance comes from the seed, so that a seed gives its history again.

Faults
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

from logd.errors import ErrorCode
from logd.replication import Fetch, Follower, Leader, LeaderSettings, Proposal, Standby, Truncate
from tests.faults.replication.checker import Checker, Kind, Violation
from tests.faults.replication.clients import ConsumerModel, ProducerModel
from tests.faults.replication.controller import NO_LEADER, Altered, Controller, Image
from tests.faults.replication.memory_log import EpochsFall
from tests.faults.replication.node import Fetched, Node, Rules

SESSION_MS = 600
HEARTBEAT_MS = 120
REGISTER_MS = 150
TICK_MS = 60
LAG_MS = 300
REQUEST_MS = 200
"""After which an answer is not waited for any more."""
CONTROLLER = 0


@dataclass(frozen=True, kw_only=True)
class Profile:
    """What kind of history: how much of each fault, by weight."""

    duration_ms: int = 2_500
    storms: tuple[int, int] = (2, 6)
    """How many there are; each is a few faults in a short time."""
    late: tuple[float, ...] = (0.02, 0.05, 0.2)
    """Messages that are late, by up to `late_ms`."""
    late_ms: tuple[int, ...] = (60, 150, 400)
    loss: tuple[float, ...] = (0.0, 0.0, 0.02, 0.1)
    kill: int = 2
    power_loss: int = 4
    pause: int = 3
    part: int = 3
    cut_off: int = 3
    elect: int = 4
    reassign: int = 1
    delete: int = 1
    unclean: int = 0
    brokers: tuple[int, ...] = (2, 3, 3, 3, 4)


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
    """One history; `run` it once, then see `checker`. `trace` is what happened, where it was asked for."""

    def __init__(
        self,
        seed: int,
        profile: Profile | None = None,
        rules: Rules | None = None,
        *,
        traced: bool = False,
        without: frozenset[int] = frozenset(),
    ) -> None:
        self.without = without
        """Faults that are left out, by their number."""
        self.faults = 0
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
        """Who lost its power and has not been registered anew since."""
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
            self._start(host)
        for go in [one.go for one in self.producers] + [one.go for one in self.consumers]:
            self.at(rng.randrange(40), go)
        self.at(SESSION_MS // 4, self._expire)
        for _ in range(rng.randint(*profile.storms)):
            begin, length = rng.randrange(100, profile.duration_ms - 300), rng.choice((20, 80, 300))
            for _ in range(rng.choice((1, 2, 2, 3, 4))):
                self.at(begin + rng.randrange(length), self._fault)
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
                self._resume(host)
            if not host.is_up:
                self._start(host)

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
        """A message to a broker, which may be lost."""
        if self.rng.random() >= self.loss:
            self.send_surely(source, target, what, *arguments)

    def send_surely(self, source: int, target: int, what: Callable[..., None], *arguments: Any) -> None:
        """A message that is late at most, unless the network is parted."""
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
        """A broker's own timer."""
        self.at(delay_ms, self._arrive, host, host.life, what, arguments)

    # Sessions

    def _start(self, host: Host) -> None:
        self.say(f"broker {host.node.id} starts")
        host.is_up = True
        host.life += 1
        self._register(host)
        self.later(host, self.rng.randrange(TICK_MS), self._tick, host)
        self.later(host, self.rng.randrange(TICK_MS), self._fetch, host)
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
        self._publish()

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
        known = self.sessions.get(number)
        if known is not None and known[0] == epoch:
            self.sessions[number] = epoch, self.now_ms + SESSION_MS, known[2]
        is_known = known is not None and known[0] == epoch
        self.send_surely(
            CONTROLLER, number, self._heard, host, epoch, sent_ms, is_known, self.controller.image
        )

    def _heard(self, host: Host, epoch: int, sent_ms: int, is_known: bool, image: Image) -> None:
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
                self._publish()
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
        """A leader's high watermark may have risen."""
        if isinstance(node.role, Leader) and self.checker.commit(node.role.high_watermark, node.log):
            self._look()

    def _publish(self) -> None:
        image = self.controller.image
        self._look()
        for number in image.brokers:
            self.send(CONTROLLER, number, self._receive_image, self.hosts[number], image)

    def _receive_image(self, host: Host, image: Image) -> None:
        host.node.apply(image, self.now_ms)

    def has_session(self, node: Node) -> bool:
        """Whether the controller has not ended its session, whatever the broker believes."""
        known = self.sessions.get(node.id)
        return known is not None and known[0] == node.broker_epoch

    # Replication

    def _tick(self, host: Host) -> None:
        node, rng = host.node, self.rng
        if isinstance(node.role, Leader):
            node.role.tick(self.now_ms)
            node.settle(self.now_ms)
            self.settled(node)
            self._propose(host, node.role)
        if rng.random() < 0.1:
            node.log.flush()
        if rng.random() < 0.1:
            node.checkpoint()
        self.later(host, TICK_MS, self._tick, host)

    def _propose(self, host: Host, leader: Leader) -> None:
        proposal = leader.take_proposal()
        if proposal is None or host.node.broker_epoch is None:
            return
        self.say(f"broker {host.node.id} proposes {proposal}")
        arguments = (host, host.life, leader, proposal)
        self.send(host.node.id, CONTROLLER, self._receive_proposal, *arguments, host.node.broker_epoch)
        self.later(host, REQUEST_MS, self._give_up_proposal, leader, proposal)

    def _receive_proposal(
        self, host: Host, life: int, leader: Leader, proposal: Proposal, broker_epoch: int
    ) -> None:
        altered = self.controller.alter_partition(host.node.id, broker_epoch, proposal)
        self.say(f"broker {host.node.id}'s proposal: {altered}")
        if life == host.life:
            self.send(CONTROLLER, host.node.id, self._altered, host, leader, proposal, altered)
        if altered.error_code is ErrorCode.NONE:
            self._publish()

    def _altered(self, host: Host, leader: Leader, proposal: Proposal, altered: Altered) -> None:
        if host.node.role is not leader:
            return
        if altered.error_code:
            leader.refused(proposal, altered.error_code, self.now_ms)
        else:
            leader.accepted(
                proposal,
                altered.isr,
                leader_epoch=altered.leader_epoch,
                partition_epoch=altered.partition_epoch,
                now_ms=self.now_ms,
            )
        host.node.settle(self.now_ms)
        self.settled(host.node)

    def _give_up_proposal(self, leader: Leader, proposal: Proposal) -> None:
        leader.unanswered(proposal)

    def _fetch(self, host: Host) -> None:
        """Do what a follower has to do next."""
        node, follower = host.node, host.node.role
        if isinstance(follower, Follower) and node.broker_epoch is not None:
            if isinstance(follower.next, Truncate):
                self.say(f"broker {node.id} truncates: {follower.next}")
                node.truncate(follower.next)
                self.checker.truncated(node.id, takes_committed=node.truncated_committed)
            if isinstance(follower.next, Fetch):
                self._send_fetch(host, follower, follower.next)
                return
            if follower.next is Standby.LEADER_OFFSETS:
                self.send(node.id, follower.leader, self._serve_offsets, host, follower)
        self.later(host, 50, self._fetch, host)

    def _send_fetch(self, host: Host, follower: Follower, asked: Fetch) -> None:
        host.asks += 1
        node = host.node
        self.send(
            node.id,
            follower.leader,
            self._serve_fetch,
            host,
            host.asks,
            follower,
            node.broker_epoch,
            node.log.log_start_offset,
            asked,
        )
        self.later(host, REQUEST_MS, self._give_up_fetch, host, host.asks)

    def _serve_fetch(
        self, host: Host, number: int, follower: Follower, epoch: int, start: int, asked: Fetch
    ) -> None:
        leader = self.hosts[follower.leader]
        answer = leader.node.serve(host.node.id, epoch, start, asked, self.now_ms)
        self.settled(leader.node)
        self.send(follower.leader, host.node.id, self._fetched, host, number, asked, answer)

    def _fetched(self, host: Host, number: int, asked: Fetch, answer: Fetched) -> None:
        node = host.node
        node.take(asked, answer, lambda batch: self.checker.wrote(node.id, batch))
        if number == host.asks:
            host.asks += 1
            is_moved = isinstance(node.role, Follower) and node.role.next != asked
            self.later(host, 0 if is_moved else 15 + int(self.rng.random() * 25), self._fetch, host)

    def _give_up_fetch(self, host: Host, number: int) -> None:
        if number == host.asks:
            self._fetch(host)

    def _serve_offsets(self, host: Host, follower: Follower) -> None:
        node = self.hosts[follower.leader].node
        if isinstance(node.role, Leader) and node.leader_epoch == follower.leader_epoch:
            log = node.log
            self.send(
                node.id,
                host.node.id,
                follower.leader_offsets,
                log.log_start_offset,
                log.log_end_offset,
            )

    # Faults

    def _fault(self) -> None:
        """Something goes wrong, or is asked for."""
        number, self.faults = self.faults, self.faults + 1
        if self.is_over or number in self.without:
            return
        profile, rng = self.profile, self.rng
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
        way(self.hosts[rng.choice(list(self.hosts))])

    def _may_suffer(self, host: Host) -> bool:
        return host.is_up and not host.is_paused and host.node.id != self.spared

    def _kill(self, host: Host) -> None:
        if self._may_suffer(host):
            self.say(f"broker {host.node.id} is killed")
            self._stop(host)

    def _stop(self, host: Host) -> None:
        host.node.die()
        host.is_up = False
        host.life += 1
        host.backlog.clear()
        self.at(self.rng.choice((20, 100, 300, 900)), self._start_again, host)

    def _start_again(self, host: Host) -> None:
        if not host.is_up:
            self._start(host)

    def _lose_power(self, host: Host) -> None:
        """Only where another one keeps what is committed, and is known to be there."""
        isr = self.controller.image.partition.isr
        others = [number for number in isr if number != host.node.id and self._keeps(number)]
        if not self._may_suffer(host) or (host.node.id in isr and (not others or self.doomed is not None)):
            return
        if host.node.id in isr:
            self.doomed, self.spared = host.node.id, self.rng.choice(others)
        log = host.node.log
        kept = self.rng.randint(log.flushed_to, log.log_end_offset)
        self.say(f"broker {host.node.id} loses its power: {kept} of {log.log_end_offset} are left")
        self.lost.add(host.node.id)
        self._stop(host)
        log.lose_power(kept)
        host.node.checkpointed = min(host.node.checkpointed, log.log_end_offset)

    def _keeps(self, number: int) -> bool:
        host = self.hosts[number]
        cut = any(
            number in pair and CONTROLLER in pair for pair, until in self.cut.items() if self.now_ms < until
        )
        return host.is_up and not host.is_paused and not cut and self.has_session(host.node)

    def _pause(self, host: Host) -> None:
        if self._may_suffer(host):
            self.say(f"broker {host.node.id} stands still")
            host.is_paused = True
            self.at(self.rng.choice((50, 300, SESSION_MS, 2 * SESSION_MS)), self._resume, host)

    def _resume(self, host: Host) -> None:
        if not host.is_paused:
            return
        self.say(f"broker {host.node.id} goes on")
        host.is_paused = False
        backlog, host.backlog = host.backlog, []
        # Clients are waiting in the sockets beside the controller and the other brokers.
        self.rng.shuffle(backlog)
        for what, arguments in backlog:
            what(*arguments)

    def _part(self, host: Host) -> None:
        """Two brokers from each other."""
        other = self.rng.choice(list(self.hosts))
        self._cut(host.node.id, other)

    def _cut_off(self, host: Host) -> None:
        """A broker from the controller, or from everybody."""
        if not self._may_suffer(host):
            return
        self._cut(host.node.id, CONTROLLER)
        if self.rng.random() < 0.4:
            for other in self.hosts:
                self._cut(host.node.id, other)

    def _cut(self, one: int, other: int) -> None:
        until = self.now_ms + self.rng.choice((100, 400, 800, 1_500))
        way = self.rng.random()
        self.say(f"brokers {one} and {other} are parted until {until}")
        if way < 0.8:
            self.cut[one, other] = until
        if way > 0.2:
            self.cut[other, one] = until

    def _elect(self, host: Host) -> None:
        """Another leader, or the same again."""
        if self.controller.elect(self.rng.choice(self.controller.image.partition.isr)):
            self.say(f"elected: {self.controller.image.partition}")
            self._publish()

    def _elect_uncleanly(self, host: Host) -> None:
        if host.node.id in self.controller.image.partition.isr:
            return
        if self.controller.elect(host.node.id, unclean=True):
            self.checker.is_unclean = True
            self.say(f"elected uncleanly: {self.controller.image.partition}")
            self._publish()

    def _reassign(self, host: Host) -> None:
        """One replica more, or one less."""
        replicas, number = self.controller.image.partition.replicas, host.node.id
        if number not in replicas:
            wanted = (*replicas, number)
        elif len(replicas) > 2:
            wanted = tuple(replica for replica in replicas if replica != number)
        else:
            return
        if self.controller.reassign(wanted):
            self.say(f"reassigned: {self.controller.image.partition}")
            self._publish()

    def _delete(self, host: Host) -> None:
        """DeleteRecords, up to what is committed."""
        node = host.node
        if host.is_up and not host.is_paused and isinstance(node.role, Leader) and self.has_session(node):
            offset = self.rng.randint(
                node.log.log_start_offset, max(node.log.log_start_offset, node.high_watermark)
            )
            self.checker.deleted_before = max(self.checker.deleted_before, offset)
            self.say(f"broker {node.id} deletes before {offset}")
            node.log.delete_before(offset)


def play(
    seed: int,
    profile: Profile | None = None,
    rules: Rules | None = None,
    *,
    traced: bool = False,
    without: frozenset[int] = frozenset(),
) -> list[Violation]:
    """One history; what it broke. `traced` prints what happened."""
    simulation = Simulation(seed, profile, rules, traced=traced, without=without)
    violations = simulation.run().violations
    if simulation.trace is not None:
        print("\n".join(simulation.trace))
    return violations


def shrink(seed: int, profile: Profile | None = None, rules: Rules | None = None) -> frozenset[int]:
    """Which faults of a history that breaks something may be left out, so that it still does."""
    simulation = Simulation(seed, profile, rules)
    kinds = {violation.kind for violation in simulation.run().violations}
    without: frozenset[int] = frozenset()
    for number in range(simulation.faults):
        fewer = without | {number}
        if kinds & {violation.kind for violation in play(seed, profile, rules, without=fewer)}:
            without = fewer
    return without
