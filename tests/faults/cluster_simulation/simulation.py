"""Random histories of a cluster, in one thread and by one number: `Simulation(seed, folder).run()`.

Three or four brokers are real and whole (`logd.broker_server`): the controller, replication, the coordinators
of groups and of transactions, logs, recovery and checkpoints. So are their sessions with ZooKeeper down to
the wall around kazoo: leases, elections, watches, and the controller's writes. So is `kafka_client`, with
these clients:
- a producer with idempotence and one without, and transactional producers, of which two may have one id;
- consumers of committed and of all records, and members of a group that commit;
- a client that deletes a topic and creates it again, and one that moves partitions from broker to broker.

Models are time and the loop (`loop`), the network (`network`), ZooKeeper (`zookeeper`), and disks
(`tests.support.power_loss`, on files in memory). A thread pool's job is one step, a little later, in any
order. All chance comes from the seed, and sets keep their order (`ordered_sets`), so that a seed is a
history. The controller's update to a broker comes in parts if many partitions change at once. In some
histories a few changes are enough for that.

Faults (`faults`), each over by itself after less or more than a session
- A broker is killed: what it wrote is in the page cache. It loses its power: what was not synced is gone,
  whole or in part, without a signal to its peers. It stands still (SIGSTOP). It is told to stop (SIGTERM).
  All come back.
- The network parts: two brokers, one from ZooKeeper, one from everybody, a client from a broker; in one or in
  both directions. What was sent waits, as TCP has it. Connections break. In some histories much is late.
- In some histories brokers' requests to each other arrive late, as the kernel sends them again. A request
  that was stuck when two brokers were parted arrives up to some seconds after they are together. It comes
  behind later requests of another connection, whether or not its sender has given it up. Reset connections
  lose what was stuck, but between brokers not always: it may have arrived, to be read later. Brokers wait
  less for each other there than a parting lasts, leaders change all the while, and producers speak
  transaction version 1 as well. While markers are late another broker leads; the one before leads again just
  before they arrive, and transactions are open then.
- A connection to ZooKeeper is lost; ZooKeeper has no majority; somebody deletes `/controller`. Sessions
  expire by these and by what befalls brokers. In some histories two of its three servers are late, and what
  is read there is old.

Coordinators and controllers move by all of these, and every few seconds as preferred leaders are elected.

The promises are those of two or three replicas and min.insync.replicas=2 (`checker.Kind`). They hold as long
as one replica in the ISR keeps its disk. Nothing is lost, doubled or seen otherwise that was acknowledged
with acks=all, committed in a transaction, or committed as a group's offset. So power is cut only while all
other brokers are well, and no other fault happens before it is noticed. If no replica in an ISR has kept its
disk all the same, the history is void, and not judged. A producer that has its id alone and is in time is not
fenced. No broker writes as the controller once another one is elected, and none has a lease after its session
is over. In the end all replicas have to be in sync, and all clients done, within a minute. No broker may have
logged an error with a traceback.

Left out: disks that fail or lie, clocks that differ, compaction, sockets that take no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import hashlib
import json
import logging
import random
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from kafka_client import Admin, Client, Consumer, NewTopic, OffsetAndMetadata, TopicPartition
from kafka_client.errors import RetriableError
from logd.broker.cluster.peer_connections import PeerConnections
from logd.metadata.zookeeper.znodes.paths import CONTROLLER_EPOCH
from tests.faults.cluster_simulation.brokers import BrokerHost
from tests.faults.cluster_simulation.checker import Checker, Kind
from tests.faults.cluster_simulation.clients import (
    PARTITIONS,
    TOPIC,
    Actor,
    Committing,
    Electing,
    Moving,
    Producing,
    Reading,
    Renewing,
    Transacting,
)
from tests.faults.cluster_simulation.faults import Faults
from tests.faults.cluster_simulation.loop import LoopPool, SimulatedLoop, StandsStill
from tests.faults.cluster_simulation.machine import NOBODY, Life
from tests.faults.cluster_simulation.network import Acceptor, Network, StreamOutput
from tests.faults.cluster_simulation.ordered_sets import ordered_sets
from tests.faults.cluster_simulation.profile import Profile
from tests.faults.cluster_simulation.zookeeper import Ensemble, ZooKeeperClient
from tests.faults.simulation import repeatable

SETTLE_S = 60.0
LOOK_S = 0.05


class Simulation:
    """A history: call `run` once, then see `checker`. `trace` is what happened."""

    def __init__(
        self, seed: int, folder: Path, profile: Profile | None = None, *, traced: bool = False
    ) -> None:
        self.seed = seed
        self.profile = profile or Profile()
        self.rng = random.Random(seed)
        self.trace: list[str] = []
        self.is_over = False
        self.is_void = False
        self.loop = SimulatedLoop(self.rng)
        self.network = self.loop.network = Network(self.loop)
        self.zookeeper = Ensemble(self.loop, self._lags())
        self.zookeeper.written = self._written
        self.zookeeper.expired = self._session_expired
        self.checker = Checker()
        self.hosts = {id: BrokerHost(self, id, folder / str(id)) for id in range(1, self.profile.brokers + 1)}
        self.faults = Faults(self)
        self.actors: list[Actor] = []
        self.readers: list[Reading] = []
        self._traced = traced
        self._controller_epoch = 0
        self.late_markers_at = 0.0
        """When markers arrive that are late, and are overtaken by others."""
        self._isr: dict[TopicPartition, tuple[int, ...]] = {}
        self.leaders: dict[TopicPartition, int] = {}
        """By what the controller has written last."""
        self._lost: dict[int, set[TopicPartition]] = {}
        """By broker that lost its power: where it was in sync, and is so still by ZooKeeper."""

    # Telling

    def say(self, text: str) -> None:
        """Note what happened."""
        line = f"{self.loop.time():8.4f} {text}"
        self.trace.append(line)
        if self._traced:
            print(line, flush=True)

    def look_at(self, task: asyncio.Task[Any]) -> None:
        """Note a process that ended by an unexpected error."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.checker.broken(Kind.INTERNAL_ERROR, "".join(traceback.format_exception(error)))

    def digest(self) -> str:
        """Return a digest of all that happened."""
        trace = "\n".join((*self.trace, str(self.loop.handles), repr(self.loop.time())))
        return hashlib.sha256(trace.encode()).hexdigest()

    # What ZooKeeper is told

    def _written(self, path: str, data: bytes) -> None:
        if path == CONTROLLER_EPOCH:
            self._controller_epoch = int(data)
        parts = path.split("/")
        if len(parts) != 7 or parts[6] != "state":
            return
        tp = TopicPartition(parts[3], int(parts[5]))
        state = json.loads(data)
        if state["controller_epoch"] < self._controller_epoch:
            self.checker.broken(Kind.STALE_CONTROLLER, f"{tp} in epoch {self._controller_epoch}: {state}")
        isr = self._isr[tp] = tuple(state["isr"])
        self.leaders[tp] = state["leader"]
        self.say(f"{tp}: leader {state['leader']}, epoch {state['leader_epoch']}, in sync {isr}")
        for id, lost in self._lost.items():
            if id not in isr:
                lost.discard(tp)
        if all(tp in self._lost.get(id, ()) for id in isr):
            self.say(f"{tp}: nobody in sync has kept its disk")
            self.is_void = True

    def _session_expired(self, number: int) -> None:
        for host in self.hosts.values():
            member = host.member
            if member is not None and member.session.session_id == number and member.is_leased:
                self.checker.broken(Kind.STALE_LEASE, f"broker {host.id}, session {number:#x}")

    # Power

    @property
    def is_somebody_doomed(self) -> bool:
        """Whether somebody without power is in sync still: who keeps what is committed is spared."""
        return any(self._lost.values())

    def may_lose_power(self, host: BrokerHost) -> bool:
        """Return True if all other brokers are well and have what this one has."""
        if self.zookeeper.is_away or not all(
            each.is_up and not each.is_paused and not each.is_stopping and each.has_joined
            for each in self.hosts.values()
        ):
            return False
        return all(len(isr) > 1 or host.id not in isr for isr in self._isr.values())

    def lost_power(self, host: BrokerHost) -> None:
        """Its disk may have lost anything that was not synced."""
        self._lost[host.id] = {tp for tp, isr in self._isr.items() if host.id in isr}

    # The course of things

    def run(self) -> Checker:
        """Play it through: with faults first, then until everything is well again."""
        with self._patched(), _collected():
            try:
                self.loop.run_until_complete(self._nobody(self._play))
            except StandsStill as error:
                self.checker.broken(Kind.STUCK, str(error))
            for context in self.loop.reported:
                self.checker.broken(Kind.INTERNAL_ERROR, f"{context}")
            self._end()
        if self.is_void:
            self.checker.violations.clear()
        return self.checker

    def _lags(self) -> list[Callable[[], float]]:
        """Return the lags of ZooKeeper's servers: one is the leader, the others may be late."""
        rng, longest_s = self.rng, self.profile.stale_s

        def lag() -> float:
            return rng.random() * longest_s if rng.random() < 0.5 else 0.0

        return [lambda: 0.0, lag, lag] if longest_s else [lambda: 0.0]

    def _nobody(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        return self.loop.create_task(work(), context=NOBODY.copy())  # type: ignore[arg-type]

    async def _play(self) -> None:
        for host in self.hosts.values():
            host.start()
        await self._until("a cluster forms", self._has_formed)
        await self._as_client(self._create_topics)
        await self._until("the topic is in sync", self._are_in_sync)
        self._begin_clients()
        rng, network, profile = self.rng, self.network, self.profile
        network.slow, network.slow_s = rng.choice(profile.slow), rng.choice(profile.slow_s)
        network.late_s, network.peers = profile.late_s, frozenset(host.place for host in self.hosts.values())
        for _ in range(rng.randint(*profile.faults)):
            self.loop.call_later(0.3 + rng.random() * profile.storm_s, self.faults.one)
        await asyncio.sleep(profile.storm_s)
        self._heal()
        if await self._until("everything is well", self._is_well):
            await self._as_client(self._audit_offsets)
            if await self._until(
                "everything is well again", self._is_well
            ):  # transactions may have timed out
                self._audit()

    async def _until(self, what: str, holds: Callable[[], bool]) -> bool:
        deadline = self.loop.time() + SETTLE_S
        while not holds():
            if self.is_void:
                return False
            if self.loop.time() > deadline:
                self.checker.broken(Kind.STUCK, f"{what} not within {SETTLE_S:g} s: {self._state()}")
                return False
            await asyncio.sleep(LOOK_S)
        return True

    async def _as_client(self, work: Callable[[Client], Awaitable[None]]) -> None:
        actor = Actor(self, "operator")

        async def ask() -> None:
            client = await actor.connected()
            await work(client)
            await client.close()

        await self.loop.create_task(ask(), context=Life("operator").context())

    def _has_formed(self) -> bool:
        return all(
            host.server is not None and len(host.server.alive) == len(self.hosts)
            for host in self.hosts.values()
        )

    @staticmethod
    async def _create_topics(client: Client) -> None:
        await Admin(client).create_topics([NewTopic(TOPIC, PARTITIONS, 3)])

    def _begin_clients(self) -> None:
        rng = self.rng
        self.readers = [
            Reading(self, "uncommitted", committed_only=False),
            Reading(self, "committed", committed_only=True),
        ]
        self.actors = [
            Producing(self, "plain", idempotent=False),
            Producing(self, "idempotent", idempotent=True),
            Transacting(self, "tx-a", "tx"),
            Committing(self, "member-a", "readers"),
            *self.readers,
        ]
        if (chance := rng.random()) < max(0.5, self.profile.twins):
            name = "tx" if chance < self.profile.twins else "other"
            self.actors.append(Transacting(self, "tx-b", name))
        if rng.random() < 0.5:
            self.actors.append(Committing(self, "member-b", "readers"))
        if self.profile.renews and rng.random() < self.profile.renews:
            self.actors.append(Renewing(self, "renewer"))
        if self.profile.moves:
            self.actors.append(Moving(self, "operator"))
        if self.profile.elects:
            self.actors.append(Electing(self, "operator"))
            self.actors += [Transacting(self, f"tx-{name}", f"id-{name}") for name in "cdefgh"]
        for actor in self.actors:
            task = self.loop.create_task(actor.run(), context=Life(actor.name).context())
            task.add_done_callback(self.look_at)

    def start(self, host: BrokerHost) -> None:
        """Start what does not run."""
        if not host.is_up and (host.life is None or host.life.is_dead):
            self.say(f"broker {host.id} starts")
            host.start()

    def start_later(self, host: BrokerHost, delay_s: float) -> None:
        """Start it then, unless somebody else has."""
        self.loop.call_later(delay_s, self.start, host, context=NOBODY)

    def _heal(self) -> None:
        self.say("all faults are over")
        self.is_over = True
        self.network.slow = 0.0
        self.network.join()
        self.zookeeper.come_back()
        for host in self.hosts.values():
            host.resume()
            self.start(host)

    # In the end

    def _ends(self) -> dict[TopicPartition, int]:
        return {
            tp: partition.high_watermark
            for host in self.hosts.values()
            if host.server is not None
            for tp, partition in host.server.broker.catalog.partitions.items()
            if tp.topic == TOPIC
        }

    def _are_in_sync(self) -> bool:
        ends: dict[TopicPartition, int] = {}
        for host in self.hosts.values():
            self.start(host)  # which may have been told to stop before
        for host in self.hosts.values():
            if host.server is None or not host.has_joined or host.is_stopping:
                return False
            broker = host.server.broker
            if len(broker.image.brokers) < len(self.hosts) or not broker.image.partitions:
                return False
            if any(
                set(state.isr) != set(state.replicas) or state.is_reassigning
                for state in broker.image.partitions.values()
            ):
                return False
            for tp, partition in broker.catalog.partitions.items():
                end = ends.setdefault(tp, partition.log_end_offset)
                if not end == partition.log_end_offset == partition.high_watermark:
                    return False
        return True

    def _is_well(self) -> bool:
        if not self._are_in_sync():
            return False
        if not all(actor.is_done for actor in self.actors if actor not in self.readers):
            return False
        ends = self._ends()
        return all(reader.is_at(ends) for reader in self.readers)

    def _state(self) -> str:
        states = [f"broker {host.id}: {host.shown()}" for host in self.hosts.values()]
        waiting = [actor.name for actor in self.actors if not actor.is_done]
        readers = [f"{name} {tp} {reader.position}" for (name, tp), reader in self.checker.readers.items()]
        return "; ".join([*states, f"waited for {waiting}, {readers}"])

    async def _audit_offsets(self, client: Client) -> None:
        tps = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        offsets = await self._committed(client, "readers", tps)
        for tp in tps:
            self.checker.audit_offset("readers", tp, offsets[tp].offset if tp in offsets else -1)
        for actor in self.actors:
            if isinstance(actor, Transacting):
                offsets = await self._committed(client, actor.group, tps[:1])
                self.checker.audit_transactional_offset(
                    actor.group, offsets[tps[0]].offset if tps[0] in offsets else -1
                )

    async def _committed(
        self, client: Client, group: str, tps: list[TopicPartition]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Also where a transaction that its producer has left has to time out first."""
        deadline = self.loop.time() + SETTLE_S
        while True:
            try:
                return await Consumer(client, group).committed(tps)
            except RetriableError:
                if self.loop.time() > deadline:
                    raise
                await asyncio.sleep(1)

    def _audit(self) -> None:
        logs: dict[TopicPartition, dict[int, bytes]] = {}
        for id, host in self.hosts.items():
            assert host.server is not None
            for tp, partition in host.server.broker.catalog.partitions.items():
                logs.setdefault(tp, {})[id] = b"".join(partition.read_all())
        self.checker.audit(logs)

    # Around it

    @contextlib.contextmanager
    def _patched(self) -> Iterator[None]:
        """Let the seed decide the brokers' chance, and put models in place of the outside world."""
        state = random.getstate()
        random.seed(self.seed)
        logged_errors = _LoggedErrors(self)
        loggers = [logging.getLogger(name) for name in ("kafka_client", "logd")]
        before = [(logger.level, logger.propagate) for logger in loggers]
        for logger in loggers:
            logger.addHandler(logged_errors)
            logger.setLevel(logging.INFO if self._traced else logging.ERROR)
            logger.propagate = False
        try:
            with (
                repeatable(self.seed),
                ordered_sets(),
                self._fed(),
                mock.patch("logd.broker.broker.random_id", side_effect=lambda: self.rng.getrandbits(31)),
                mock.patch("logd.broker.broker.JobPool", LoopPool),
                mock.patch(
                    "logd.metadata.zookeeper.session.connection.Client",
                    lambda *arguments: ZooKeeperClient(self.zookeeper, *arguments),
                ),
                mock.patch(
                    "logd.broker.cluster.membership.PeerConnections",
                    partial(PeerConnections, request_timeout_ms=self.profile.peer_timeout_ms),
                ),
                mock.patch("logd.server.connection.Output", StreamOutput),
                mock.patch("logd.server.listener._bound_socket", self.network.bind),
                mock.patch("logd.server.listener.Acceptor", Acceptor),
            ):
                yield
        finally:
            for logger, (level, propagates) in zip(loggers, before, strict=True):
                logger.removeHandler(logged_errors)
                logger.setLevel(level)
                logger.propagate = propagates
            random.setstate(state)

    def _fed(self) -> contextlib.AbstractContextManager[Any]:
        """Send controllers' updates in parts of the profile's number of changes."""
        parts = self.profile.changes_per_update
        if not parts:
            return contextlib.nullcontext()
        return mock.patch("logd.metadata.feed.outbox.CHANGES_PER_UPDATE", self.rng.choice(parts))

    def _end(self) -> None:
        """Stop everything, without reports of what has not ended."""
        self.loop.set_exception_handler(lambda *_: None)
        for host in self.hosts.values():
            if host.life is not None and not host.life.is_dead:
                host.kill()
        self.loop.close()


class _LoggedErrors(logging.Handler):
    """Errors that brokers log with a traceback."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler`."""
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None and record.levelno >= logging.ERROR:
            text += "\n" + "".join(traceback.format_exception(record.exc_info[1]))
            self._simulation.checker.broken(Kind.INTERNAL_ERROR, text)
        self._simulation.say(f"log: {text}")


@contextlib.contextmanager
def _collected() -> Iterator[None]:
    """Collect no garbage meanwhile: when it is collected would be up to chance."""
    gc.freeze()
    gc.disable()
    hook = sys.unraisablehook
    try:
        yield
    finally:
        sys.unraisablehook = lambda _: None
        gc.enable()
        gc.collect()
        sys.unraisablehook = hook
