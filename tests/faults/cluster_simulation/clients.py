"""The clients of a history: producers, transactional producers, consumers and an operator.

Each is a process on a machine of its own, and all of what they are told is told to the checker.

They go on until the history is over, and then end what they have begun.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kafka_client import (
    NO_TIMEOUT_MS,
    Admin,
    BatchFetcher,
    BatchProducer,
    Client,
    Consumer,
    ElectionType,
    NewTopic,
    TopicPartition,
    TransactionalProducer,
)
from kafka_client.errors import (
    AbortableTransactionError,
    LogTruncated,
    MillstreamError,
    OffsetOutOfRange,
    ProducerFenced,
    RebalanceNeeded,
)
from logd.broker.topics.topic import INTERNAL_TOPICS, TRANSACTION_STATE
from tests.faults.cluster_simulation.brokers import BEGAN_MS, PORT
from tests.faults.cluster_simulation.checker import Kind, Outcome, Reader, Transaction
from tests.faults.cluster_simulation.network import Late

if TYPE_CHECKING:
    from tests.faults.cluster_simulation.simulation import Simulation

TOPIC = "flights"
PARTITIONS = 2
RENEWED = "gates"
"""The topic that is deleted and made again."""
REQUEST_MS = 1_500
AGAIN_S = 0.1
OVERTAKEN_S = 1.5
"""How soon at least markers that come late leave time to be sent by another connection, to another leader."""
OUTLASTED_S = 2.0
"""How long at most a transaction is kept open for markers that come late."""


class Actor:
    """`is_done` once it has ended what it began. `run` is its process."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        self.simulation = simulation
        self.name = name
        self.rng = simulation.rng
        self.is_done = False

    def client(self) -> Client:
        """Its own, which knows all brokers."""
        servers = [f"{host.place}:{PORT}" for host in self.simulation.hosts.values()]
        return Client(
            servers, client_id=self.name, request_timeout_ms=REQUEST_MS, connect_timeout_ms=REQUEST_MS
        )

    async def connected(self) -> Client:
        """Connected, after as many attempts as it takes."""
        while True:
            try:
                return await self.client().connect()
            except MillstreamError:
                await asyncio.sleep(AGAIN_S)

    async def pause(self, longest_s: float) -> None:
        """Do nothing for a while."""
        await asyncio.sleep(self.rng.random() * longest_s)

    async def run(self) -> None:
        """From start to end."""
        raise NotImplementedError


class Producing(Actor):
    """Sends a few records and waits until they are acknowledged, again and again; at times three at once."""

    def __init__(self, simulation: Simulation, name: str, *, idempotent: bool) -> None:
        super().__init__(simulation, name)
        self._idempotent = idempotent
        self._values = 0

    async def run(self) -> None:
        client = await self.connected()
        producer = BatchProducer(
            client,
            enable_idempotence=self._idempotent,
            linger_ms=0,
            delivery_timeout_ms=NO_TIMEOUT_MS,
        )
        while True:
            try:
                await producer.start()
                break
            except MillstreamError:
                await asyncio.sleep(AGAIN_S)
        while not self.simulation.is_over:
            await asyncio.gather(*[self._send(producer) for _ in range(self.rng.choice((1, 1, 3)))])
            await self.pause(self.simulation.profile.pause_s)
        self.is_done = True

    async def _send(self, producer: BatchProducer) -> None:
        checker, tp = self.simulation.checker, TopicPartition(TOPIC, self.rng.randrange(PARTITIONS))
        values = self.next_values(tp)
        try:
            offset = await (await producer.send(*tp, [(BEGAN_MS, None, value, ()) for value in values]))
        except MillstreamError as error:
            self.simulation.say(f"{self.name}: {values} failed: {error}")
            return
        checker.acknowledge(tp, values, offset)
        self.simulation.say(f"{self.name}: {values} at {tp} {offset}")

    def next_values(self, tp: TopicPartition) -> list[bytes]:
        """New ones, unlike any other."""
        first = self._values
        self._values += self.rng.randint(1, 3)
        values = [b"%s.%d" % (self.name.encode(), number) for number in range(first, self._values)]
        for value in values:
            self.simulation.checker.sent[value] = tp, self._idempotent
        return values


class Transacting(Producing):
    """Transactions, committed or aborted, some with a group's offset; another process may have its id too."""

    def __init__(self, simulation: Simulation, name: str, transactional_id: str) -> None:
        super().__init__(simulation, name, idempotent=True)
        self._transactional_id = transactional_id
        self._began = 0.0
        self._timeout_ms = simulation.profile.transaction_ms
        versions = simulation.profile.versions
        self._version = self.rng.choice(versions) if versions else 0
        self._transactions = 0
        self.group = f"of-{name}"
        """The group whose offset its transactions commit."""

    async def run(self) -> None:
        client = await self.connected()
        while not self.simulation.is_over:
            producer = TransactionalProducer(
                client, self._transactional_id, linger_ms=0, transaction_timeout_ms=self._timeout_ms
            )
            if self._version:
                # Not what the brokers say, whichever of them is asked.
                producer._transactions._coordinator.version = self._spoken  # type: ignore[method-assign]
            try:
                await producer.start(timeout_ms=5_000)
                while not self.simulation.is_over:
                    await self._transact(producer)
                    await self.pause(self.simulation.profile.pause_s)
            except MillstreamError as error:
                self.simulation.say(f"{self.name}: {type(error).__name__} {error}")
                if isinstance(error, ProducerFenced):
                    self._fenced(error)
            await producer.close(timeout_ms=2_000)
            await self.pause(1.0)
        self.is_done = True

    async def _spoken(self, *, timeout_ms: int | None = None) -> int:
        return self._version

    async def _transact(self, producer: TransactionalProducer) -> None:
        checker, rng = self.simulation.checker, self.rng
        self._transactions += 1
        transaction = Transaction(f"{self.name} #{self._transactions}")
        checker.transactions.append(transaction)
        self._began = self.simulation.loop.time()
        producer.begin()
        try:
            for _ in range(rng.randint(1, 3)):
                tp = TopicPartition(TOPIC, rng.randrange(PARTITIONS))
                values = self.next_values(tp)
                transaction.values += [(tp, value) for value in values]
                await producer.send(*tp, [(BEGAN_MS, None, value, ()) for value in values])
                await self.pause(self.simulation.profile.open_s)
            if rng.random() < 0.4:
                transaction.group, transaction.offset = self.group, self._transactions
                await producer.send_offsets({TopicPartition(TOPIC, 0): self._transactions}, self.group)
            await self._outlast_late_markers()
            if rng.random() < self.simulation.profile.aborts:
                await self._abort(producer, transaction)
            else:
                transaction.is_commit_asked = True
                await producer.commit()
                self._ended(transaction, Outcome.COMMITTED)
        except ProducerFenced:
            raise
        except AbortableTransactionError as error:
            self.simulation.say(f"{transaction.name}: to be aborted: {error}")
            await self._abort(producer, transaction)

    async def _outlast_late_markers(self) -> None:
        """Have the transaction open when markers come that may be of the one before."""
        until_s = self.simulation.late_markers_at - self.simulation.loop.time()
        if 0 < until_s < OUTLASTED_S:
            await asyncio.sleep(until_s + 0.05)

    def _fenced(self, error: ProducerFenced) -> None:
        """Note that the producer is fenced, which is allowed if it shares its id or was open for too long.

        Also, as with Apache Kafka, for who asks for its next epoch again where the coordinator has moved: the
        epoch before is not in its log.
        """
        open_s = self.simulation.loop.time() - self._began
        others = [each for each in self.simulation.actors if isinstance(each, Transacting)]
        is_alone = sum(each._transactional_id == self._transactional_id for each in others) == 1
        is_asked_again = "InitProducerId" in str(error)
        if is_alone and not is_asked_again and open_s < self._timeout_ms / 1000:
            self.simulation.checker.broken(Kind.FENCED, f"{self.name}, {open_s:.3f} s after begin: {error}")

    async def _abort(self, producer: TransactionalProducer, transaction: Transaction) -> None:
        await producer.abort()
        self._ended(transaction, Outcome.ABORTED)

    def _ended(self, transaction: Transaction, outcome: Outcome) -> None:
        transaction.outcome = outcome
        self.simulation.say(f"{transaction.name}: {outcome.value} {transaction.values}")


class Renewing(Producing):
    """Has a topic of its own deleted and made again under the same name, with other records each time."""

    def __init__(self, simulation: Simulation, name: str) -> None:
        super().__init__(simulation, name, idempotent=True)

    async def run(self) -> None:
        client = await self.connected()
        admin = Admin(client, timeout_ms=5_000)
        while not self.simulation.is_over:
            try:
                await admin.create_topics([NewTopic(RENEWED, 1, 3)], exist_ok=True)
                await self._fill(client)
                await self.pause(0.6)
                if not self.simulation.is_over:
                    await self._delete(admin)
            except MillstreamError as error:
                self.simulation.say(f"{self.name}: {type(error).__name__} {error}")
                await asyncio.sleep(AGAIN_S)
        self.is_done = True

    async def _fill(self, client: Client) -> None:
        checker, tp = self.simulation.checker, TopicPartition(RENEWED, 0)
        producer = await BatchProducer(client, linger_ms=0, delivery_timeout_ms=4_000).start()
        for _ in range(self.rng.randint(1, 6)):
            values = self.next_values(tp)
            try:
                offset = await (await producer.send(*tp, [(BEGAN_MS, None, value, ()) for value in values]))
            except MillstreamError as error:
                self.simulation.say(f"{self.name}: {values} failed: {error}")
                break
            checker.acknowledge(tp, values, offset)
            self.simulation.say(f"{self.name}: {values} at {tp} {offset}")
        await producer.close(timeout_ms=0)

    async def _delete(self, admin: Admin) -> None:
        """From now on what was acknowledged is not to be there; what failed may be, if it is on its way."""
        checker = self.simulation.checker
        deleted = [value for value, (tp, _) in checker.acknowledged.items() if tp.topic == RENEWED]
        for value in deleted:
            del checker.acknowledged[value]
        await admin.delete_topics([RENEWED], missing_ok=True)
        self.simulation.say(f"{self.name}: {RENEWED} is deleted, with {deleted}")
        checker.deleted.update(deleted)


class Moving(Actor):
    """Has partitions moved to other brokers, two or three replicas each, and calls some moves off."""

    async def run(self) -> None:
        client = await self.connected()
        admin = Admin(client, timeout_ms=5_000)
        tps = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        tps += [TopicPartition(topic, 0) for topic in sorted(INTERNAL_TOPICS)]
        brokers = list(self.simulation.hosts)
        while not self.simulation.is_over:
            await self.pause(0.5)
            tp, is_wanted = self.rng.choice(tps), self.rng.random() < 0.85
            replicas = self.rng.sample(brokers, self.rng.choice((2, 3, 3))) if is_wanted else None
            try:
                refused = (await admin.alter_partition_reassignments({tp: replicas}))[tp]
                self.simulation.say(f"{self.name}: {tp} to {replicas}: {refused or 'begun'}")
            except MillstreamError as error:
                self.simulation.say(f"{self.name}: {tp} to {replicas}: {type(error).__name__} {error}")
        self.is_done = True


class Electing(Actor):
    """Has partitions led by another replica for a while, and then again by the one before; none moves.

    Where markers are late it is for a while that ends before they arrive: the coordinator sends them again to
    the leader that there is meanwhile, and producers have begun their next transactions by then.
    """

    def __init__(self, simulation: Simulation, name: str) -> None:
        super().__init__(simulation, name)
        self._late: asyncio.Queue[Late] = asyncio.Queue(1)
        simulation.network.markers_are_late = self._are_late

    async def run(self) -> None:
        admin = Admin(await self.connected(), timeout_ms=5_000)
        pause_s = self.rng.choice(self.simulation.profile.elects)
        steps: list[tuple[TopicPartition, list[int]]] = []
        while not self.simulation.is_over:
            late = await self._wait(3.0 if steps else pause_s)
            if late is not None:
                steps.clear()
                await self._change_until(admin, late)
            elif steps:
                await self._lead(admin, *steps.pop(0))
            else:
                steps = self._to_and_fro()
        self.is_done = True

    def _are_late(self, late: Late) -> None:
        if self._late.full():
            self._late.get_nowait()
        self._late.put_nowait(late)

    async def _wait(self, longest_s: float) -> Late | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.rng.random() * longest_s):
                return await self._late.get()
        return None

    def _to_and_fro(self) -> list[tuple[TopicPartition, list[int]]]:
        """Choose leaders to whom the coordinator of transactions has to send its markers, if it can be."""
        leaders, ids = self.simulation.leaders, list(self.simulation.hosts)
        coordinator = leaders.get(TopicPartition(TRANSACTION_STATE, 0), 0)
        tps = [TopicPartition(TOPIC, partition) for partition in range(PARTITIONS)]
        tp = self.rng.choice([tp for tp in tps if leaders.get(tp) == coordinator] or tps)
        before = self.rng.choice([id for id in ids if id != coordinator])
        other, *rest = self.rng.sample([id for id in ids if id != before], len(ids) - 1)
        there, back = [other, before, *rest], [before, other, *rest]
        return [(tp, back), (tp, there), (tp, back)]

    async def _change_until(self, admin: Admin, late: Late) -> None:
        """Have the markers' sender lead, and so write them itself, until just before they arrive."""
        loop = self.simulation.loop
        ids = {host.place: id for id, host in self.simulation.hosts.items()}
        before, other = ids[late.receiver], ids[late.sender]
        rest = [id for id in ids.values() if id not in (before, other)]
        tps = [tp for tp, leader in self.simulation.leaders.items() if tp.topic == TOPIC and leader == before]
        if not tps or late.at - loop.time() < OVERTAKEN_S:
            return
        self.simulation.say(f"{self.name}: markers come late: {late}")
        self.simulation.late_markers_at = late.at
        for tp in tps:
            await self._lead(admin, tp, [other, before, *rest])
        await asyncio.sleep(max(0.0, late.at - loop.time() - 0.1 - self.rng.random() * 0.3))
        for tp in tps:
            await self._lead(admin, tp, [before, other, *rest])
        await asyncio.sleep(max(0.0, late.at - loop.time() + 0.1))
        while not self._late.empty():
            self._late.get_nowait()

    async def _lead(self, admin: Admin, tp: TopicPartition, replicas: list[int]) -> None:
        try:
            await admin.alter_partition_reassignments({tp: replicas})
            refused = (await admin.elect_leaders(ElectionType.PREFERRED, [tp]))[tp]
            self.simulation.say(f"{self.name}: {tp} led by {replicas[0]}: {refused or 'done'}")
        except MillstreamError as error:
            self.simulation.say(f"{self.name}: {tp} by {replicas}: {type(error).__name__} {error}")


class Reading(Actor):
    """Reads both partitions from the beginning."""

    def __init__(self, simulation: Simulation, name: str, *, committed_only: bool) -> None:
        super().__init__(simulation, name)
        self._committed_only = committed_only
        self.fetcher: BatchFetcher | None = None

    async def run(self) -> None:
        client = await self.connected()
        checker = self.simulation.checker
        fetcher = self.fetcher = BatchFetcher(
            client,
            isolation_level="read_committed" if self._committed_only else "read_uncommitted",
            fetch_max_wait_ms=250,
        )
        for partition in range(PARTITIONS):
            tp = TopicPartition(TOPIC, partition)
            checker.readers[self.name, tp] = Reader(self.name, self._committed_only)
            fetcher.add(tp, 0)
        while True:
            try:
                for fetched in await fetcher.fetch():
                    records = [(offset, value or b"") for offset, _, _, value, _ in fetched.records()]
                    reader = checker.readers[self.name, fetched.tp]
                    checker.poll(reader, fetched.tp, records, fetched.next_offset)
                    self.simulation.say(f"{self.name}: {fetched.tp} {records}")
            except (LogTruncated, OffsetOutOfRange) as error:
                self._went_back(fetcher, error)
            except MillstreamError as error:
                self.simulation.say(f"{self.name}: {type(error).__name__} {error}")
                self._go_on(fetcher)
            await self.pause(0.05)

    def _went_back(self, fetcher: BatchFetcher, error: MillstreamError) -> None:
        checker = self.simulation.checker
        for tp in fetcher.failures():
            reader = checker.readers[self.name, tp]
            checker.went_back(reader, tp, str(error))
            fetcher.seek(tp, reader.position)

    def _go_on(self, fetcher: BatchFetcher) -> None:
        for tp in fetcher.failures():
            fetcher.seek(tp, self.simulation.checker.readers[self.name, tp].position)

    def is_at(self, ends: dict[TopicPartition, int]) -> bool:
        """Return True if the consumer has read up to these ends."""
        readers = self.simulation.checker.readers
        return all(
            (self.name, tp) in readers and readers[self.name, tp].position >= end for tp, end in ends.items()
        )


class Committing(Actor):
    """A member of a group that commits what it has read; it comes and goes."""

    def __init__(self, simulation: Simulation, name: str, group: str) -> None:
        super().__init__(simulation, name)
        self._group = group

    async def run(self) -> None:
        client = await self.connected()
        while not self.simulation.is_over:
            consumer = Consumer(
                client,
                self._group,
                auto_offset_reset="earliest",
                session_timeout_ms=1_500,
                heartbeat_interval_ms=300,
                rebalance_timeout_ms=2_000,
                fetch_max_wait_ms=250,
            )
            try:
                await consumer.subscribe([TOPIC])
                for _ in range(self.rng.randint(10, 40)):
                    if self.simulation.is_over:
                        break
                    await self._poll(consumer)
            except MillstreamError as error:
                self.simulation.say(f"{self.name}: {type(error).__name__} {error}")
            await consumer.close()
        self.is_done = True

    async def _poll(self, consumer: Consumer) -> None:
        positions: dict[TopicPartition, int] = {}
        for fetched in await consumer.fetch(timeout_ms=200, max_records=5):
            positions[fetched.tp] = fetched.next_offset
        if not positions:
            return
        checker = self.simulation.checker
        for tp, position in positions.items():
            checker.requested[self._group, tp].append(position)
        try:
            await consumer.commit(positions)
        except RebalanceNeeded:
            return
        for tp, position in positions.items():
            # The largest: another member may have gone on before this one's answer came.
            before = checker.committed.get((self._group, tp), -1)
            checker.committed[self._group, tp] = max(position, before)
        self.simulation.say(f"{self.name}: committed {_shown(positions)}")


def _shown(positions: dict[TopicPartition, int]) -> Sequence[str]:
    return [f"{tp} {position}" for tp, position in sorted(positions.items())]
