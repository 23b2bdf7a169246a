"""Producers and consumers of the simulated partition: one request at a time, all of it told to the checker.

They find the leader by asking some broker, which may be behind, and go on asking until they are served.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode
from tests.faults.replication.checker import Sent
from tests.faults.replication.memory_log import Batch
from tests.faults.replication.node import ACKS_ALL, Fetched, Produced

if TYPE_CHECKING:
    from tests.faults.replication.simulation import Host, Simulation

CLIENT = -1
"""The clients' place in the network."""
ANSWER_MS = 250
TRIES_MAX = 4
"""Tries of a producer that is not idempotent; the others try until they get a result."""


def leader_by(simulation: Simulation) -> tuple[Host | None, int]:
    """Whom some broker takes for the leader, and in which leader epoch."""
    some = simulation.rng.choice(list(simulation.hosts.values()))
    if not some.is_up or some.is_paused or some.node.image is None:
        return None, -1
    partition = some.node.image.partition
    return simulation.hosts.get(partition.leader), partition.leader_epoch


class ProducerModel:
    """Sends a batch, and the next one once that is decided."""

    def __init__(self, simulation: Simulation, number: int) -> None:
        rng = simulation.rng
        self._simulation = simulation
        self._number = number
        self._acks = rng.choice((0, 1, ACKS_ALL, ACKS_ALL, ACKS_ALL))
        self._is_idempotent = self._acks == ACKS_ALL and rng.random() < 0.6
        self._batches = 0
        self._values = 0
        self._batch: Batch | None = None
        self._tries = 0
        self.is_done = False

    def go(self) -> None:
        """Make the next batch and send it."""
        if self._simulation.is_over:
            self.is_done = True
            return
        first = self._values
        self._values += self._simulation.rng.randint(1, 3)
        values = tuple(f"{self._number}.{value}" for value in range(first, self._values))
        self._batch = Batch(0, 0, values, *((self._number, self._batches) if self._is_idempotent else ()))
        self._batches += 1
        self._tries = 0
        self._send()

    def _send(self) -> None:
        simulation, batch = self._simulation, self._batch
        assert batch is not None
        leader, _ = leader_by(simulation)
        if leader is None:
            simulation.at(30, self._again, batch, self._tries)
            return
        self._tries += 1
        for value in batch.values:
            simulation.checker.sent[value] = Sent(self._tries, self._is_idempotent)
        simulation.send(CLIENT, leader.node.id, self._arrive, leader, batch, self._tries)
        if self._acks == 0:
            simulation.at(20, self._decided, batch)
        else:
            simulation.at(ANSWER_MS, self._again, batch, self._tries)

    def _arrive(self, leader: Host, batch: Batch, tries: int) -> None:
        """At the broker, whose answer leaves at the moment it is given."""
        node, simulation = leader.node, self._simulation
        end = node.log.log_end_offset

        def reply(answer: Produced) -> None:
            if self._acks == 0:
                return
            if not answer.error_code:
                simulation.checker.acknowledge(
                    batch.values,
                    answer.base_offset,
                    acks_all=self._acks == ACKS_ALL,
                    broker_id=node.id,
                    is_stale=not simulation.has_session(node),
                )
                simulation.say(f"broker {node.id} acknowledges {batch.values} at {answer.base_offset}")
            simulation.send(node.id, CLIENT, self._answered, batch, tries, answer)

        node.produce(batch, self._acks, simulation.now_ms, reply)
        simulation.settled(node)
        if node.log.log_end_offset > end:
            written = node.log.batches[-1]
            simulation.say(f"broker {node.id} appends {written}")
            simulation.checker.wrote(node.id, written)

    def _answered(self, batch: Batch, tries: int, answer: Produced) -> None:
        if not answer.error_code:
            self._decided(batch)
        elif answer.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            self._lost_its_place(batch)
        else:
            self._simulation.at(20, self._again, batch, tries)

    def _lost_its_place(self, batch: Batch) -> None:
        """Note that the log has lost what was acknowledged. An idempotent producer goes on under a new id."""
        if batch is self._batch and self._is_idempotent:
            self._number += 100
            self._batches = 0
            self._decided(batch)

    def _again(self, batch: Batch, tries: int) -> None:
        if batch is not self._batch or tries != self._tries:
            return
        if not self._is_idempotent and tries >= TRIES_MAX:
            self._decided(batch)
        else:
            self._send()

    def _decided(self, batch: Batch) -> None:
        if batch is self._batch:
            self._batch = None
            self._simulation.at(10 + int(self._simulation.rng.random() * 60), self.go)


class ConsumerModel:
    """Reads from the beginning."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self._simulation = simulation
        self._name = name
        self._asks = 0
        self._last_epoch = -1
        self._leader_epoch = -1
        self.position = 0

    def go(self) -> None:
        """Ask for more."""
        simulation = self._simulation
        self._asks += 1
        simulation.at(60 + int(simulation.rng.random() * 60), self.go)
        leader, epoch = leader_by(simulation)
        if leader is not None and epoch >= self._leader_epoch:
            self._leader_epoch = epoch
            simulation.send(CLIENT, leader.node.id, self._arrive, leader, self._asks, self.position, epoch)

    def _arrive(self, leader: Host, asks: int, position: int, epoch: int) -> None:
        answer = leader.node.read(position, self._last_epoch, epoch)
        self._simulation.send(leader.node.id, CLIENT, self._answered, asks, answer)

    def _answered(self, asks: int, answer: Fetched) -> None:
        if asks != self._asks:
            return
        checker = self._simulation.checker
        if answer.diverging is not None:
            checker.went_back(self._name, self.position, answer.diverging[1])
            self.position, self._last_epoch = answer.diverging[1], -1
        elif answer.error_code == ErrorCode.OFFSET_OUT_OF_RANGE or (
            not answer.error_code and self.position < answer.log_start_offset
        ):
            if self.position < answer.log_start_offset:
                self.position, self._last_epoch = answer.log_start_offset, -1
        elif not answer.error_code:
            self._simulation.say(f"{self._name} is handed {answer.batches}")
            self.position = checker.poll(self._name, self.position, answer.batches)
            if answer.batches:
                self._last_epoch = answer.batches[-1].epoch
