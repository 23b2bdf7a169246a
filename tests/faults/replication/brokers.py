"""Messages between the brokers and the controller of a history: see `simulation`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode
from logd.replication import Fetch, Follower, Leader, Proposal, Standby, Truncate
from tests.faults.replication.controller import Altered
from tests.faults.replication.node import Fetched
from tests.faults.replication.times import CONTROLLER, REQUEST_MS, TICK_MS

if TYPE_CHECKING:
    from tests.faults.replication.simulation import Host, Simulation


class Brokers:
    """Rounds, proposals and fetches of a history's brokers."""

    def __init__(self, world: Simulation) -> None:
        self.world = world

    def tick(self, host: Host) -> None:
        node, rng = host.node, self.world.rng
        if isinstance(node.role, Leader):
            node.role.tick(self.world.now_ms)
            node.settle(self.world.now_ms)
            self.world.settled(node)
            self._propose(host, node.role)
        if rng.random() < 0.1:
            node.log.flush()
        if rng.random() < 0.1:
            node.checkpoint()
        self.world.later(host, TICK_MS, self.tick, host)

    def _propose(self, host: Host, leader: Leader) -> None:
        proposal = leader.take_proposal()
        if proposal is None or host.node.broker_epoch is None:
            return
        self.world.say(f"broker {host.node.id} proposes {proposal}")
        arguments = (host, host.life, leader, proposal)
        epoch = host.node.broker_epoch
        self.world.send(host.node.id, CONTROLLER, self._receive_proposal, *arguments, epoch)
        self.world.later(host, REQUEST_MS, self._give_up_proposal, leader, proposal)

    def _receive_proposal(
        self, host: Host, life: int, leader: Leader, proposal: Proposal, broker_epoch: int
    ) -> None:
        altered = self.world.controller.alter_partition(host.node.id, broker_epoch, proposal)
        self.world.say(f"broker {host.node.id}'s proposal: {altered}")
        if life == host.life:
            self.world.send(CONTROLLER, host.node.id, self._altered, host, leader, proposal, altered)
        if altered.error_code is ErrorCode.NONE:
            self.world.publish()

    def _altered(self, host: Host, leader: Leader, proposal: Proposal, altered: Altered) -> None:
        if host.node.role is not leader:
            return
        host.node.answered(leader, proposal, altered, self.world.now_ms)
        self.world.settled(host.node)

    def _give_up_proposal(self, leader: Leader, proposal: Proposal) -> None:
        leader.unanswered(proposal)

    def fetch(self, host: Host) -> None:
        """Do what a follower has to do next."""
        node, follower = host.node, host.node.role
        if isinstance(follower, Follower) and node.broker_epoch is not None:
            if isinstance(follower.next, Truncate):
                self.world.say(f"broker {node.id} truncates: {follower.next}")
                node.truncate(follower.next)
                self.world.checker.truncated(node.id, takes_committed=node.truncated_committed)
            if isinstance(follower.next, Fetch):
                self._send_fetch(host, follower, follower.next)
                return
            if follower.next is Standby.LEADER_OFFSETS:
                self.world.send(node.id, follower.leader, self._serve_offsets, host, follower)
        self.world.later(host, 50, self.fetch, host)

    def _send_fetch(self, host: Host, follower: Follower, request: Fetch) -> None:
        host.asks += 1
        node = host.node
        self.world.send(
            node.id,
            follower.leader,
            self._serve_fetch,
            host,
            host.asks,
            follower,
            node.broker_epoch,
            node.log.log_start_offset,
            request,
        )
        self.world.later(host, REQUEST_MS, self._give_up_fetch, host, host.asks)

    def _serve_fetch(
        self, host: Host, number: int, follower: Follower, epoch: int, start: int, request: Fetch
    ) -> None:
        leader = self.world.hosts[follower.leader]
        answer = leader.node.serve(host.node.id, epoch, start, request, self.world.now_ms)
        self.world.settled(leader.node)
        self.world.send(follower.leader, host.node.id, self._fetched, host, number, request, answer)

    def _fetched(self, host: Host, number: int, request: Fetch, answer: Fetched) -> None:
        node = host.node
        node.take(request, answer, lambda batch: self.world.checker.wrote(node.id, batch))
        if number == host.asks:
            host.asks += 1
            is_moved = isinstance(node.role, Follower) and node.role.next != request
            delay_ms = 0 if is_moved else 15 + int(self.world.rng.random() * 25)
            self.world.later(host, delay_ms, self.fetch, host)

    def _give_up_fetch(self, host: Host, number: int) -> None:
        if number == host.asks:
            self.fetch(host)

    def _serve_offsets(self, host: Host, follower: Follower) -> None:
        node = self.world.hosts[follower.leader].node
        if isinstance(node.role, Leader) and node.leader_epoch == follower.leader_epoch:
            log = node.log
            self.world.send(
                node.id,
                host.node.id,
                follower.leader_offsets,
                log.log_start_offset,
                log.log_end_offset,
            )
