"""A task with its commits, the producer they go through and a broker, all moved a step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from kafka_client import GroupMetadata, OffsetAndMetadata, TopicPartition
from kafka_client.errors import (
    AbortableTransactionError,
    ErrorCode,
    ProducerFenced,
    TransactionError,
    TransactionRebalanced,
)
from kafka_client.records import Codec, read_header
from streams import StreamsBuilder
from streams.runtime.commit.changelog_writer import ChangelogWriter
from streams.runtime.commit.commit import Committer
from streams.runtime.commit.guarantees import AtLeastOnce, ExactlyOnce
from streams.runtime.commit.output import Output
from streams.runtime.commit.positions import read_cut
from streams.runtime.commit.transactions import Transactions
from streams.runtime.task.environment import TaskEnvironment
from streams.runtime.task.input_start import InputStart
from streams.runtime.task.running import RunningTask
from streams.runtime.task.task import Task
from streams.runtime.task_id import TaskId
from streams.runtime.threads.worker import Worker
from streams.state import open_store

IN, CHANGELOG = TopicPartition("in", 0), TopicPartition("counts-changelog", 0)
WHO = GroupMetadata(group_id="app", generation=3, member_id="me")
ABORTABLE = AbortableTransactionError(ErrorCode.TRANSACTION_ABORTABLE, "scripted")
FENCED = ProducerFenced(ErrorCode.PRODUCER_FENCED, "scripted")
REBALANCED = TransactionRebalanced(ErrorCode.ILLEGAL_GENERATION, "scripted")


class Broker:
    """The log of one changelog, in which markers of transactions take offsets, and the committed offsets."""

    def __init__(self) -> None:
        self.end = 0
        self.committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self.transactions_committed = 0

    def append(self, count: int) -> int:
        first, self.end = self.end, self.end + count
        return first


async def _no_topic(topic: str) -> int:
    raise AssertionError(f"{topic} is not written")


class Producer:
    """A `TransactionalProducer` and a `BatchProducer` whose acknowledgements the test triggers."""

    codec, max_request_size, transactional_id = Codec.NONE, 1_000_000, "app-1"

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.calls: list[str] = []
        self.failure: TransactionError | None = None
        self.sent: list[tuple[int, asyncio.Future[int | None]]] = []
        self.closing: tuple[Any, asyncio.Future[None]] | None = None
        self._offsets: Any = None

    def partitioned(self, topic: str, records: list[Any], count: int) -> dict[int, list[Any]]:
        return {0: records}

    async def start(self) -> None:
        self.calls.append("start")

    async def close(self, *, timeout_ms: int = 0) -> None:
        self.calls.append("close")

    def begin(self) -> None:
        self._check()
        self.calls.append("begin")

    async def send(self, topic: str, partition: int, records: list[Any]) -> asyncio.Future[int | None]:
        return self._take("send", 0)

    async def send_batch(self, topic: str, partition: int, batch: bytes) -> asyncio.Future[int | None]:
        return self._take("send_batch", read_header(memoryview(batch)).count)

    def _take(self, what: str, count: int) -> asyncio.Future[int | None]:
        self._check()
        self.calls.append(what)
        ack: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()
        self.sent.append((count, ack))
        return ack

    async def flush(self) -> None:
        await asyncio.wait([ack for _, ack in self.sent])

    async def commit_soon(self, offsets: Any, group: GroupMetadata) -> asyncio.Future[None]:
        assert group == WHO and self.closing is None
        self._check()
        self.calls.append("commit_soon")
        self.closing = offsets, asyncio.get_running_loop().create_future()
        return self.closing[1]

    async def abort(self) -> None:
        if isinstance(self.failure, ProducerFenced):
            raise self.failure
        self.calls.append("abort")
        self.failure = None

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # -- what the broker does, told by the test

    def acknowledge(self, count: int | None = None) -> None:
        for records, ack in self.sent[:count]:
            ack.set_result(self.broker.append(records))
        del self.sent[:count]

    def take_offsets(self) -> None:
        assert self.closing is not None
        self._offsets = self.closing[0]()

    def end_transaction(self) -> None:
        assert self.closing is not None
        self.broker.committed.update(self._offsets)
        self.broker.append(1)  # the marker
        self.broker.transactions_committed += 1
        self.closing[1].set_result(None)
        self.closing = None

    def fail(self, error: TransactionError) -> None:
        self.failure = error
        if self.closing is not None:
            self.closing[1].set_exception(error)
            self.closing = None


class Application:
    """A task that counts, its commits, and the producer they go through."""

    def __init__(self, *, exactly_once: bool = True) -> None:
        self.broker = Broker()
        self.producers: list[Producer] = []
        self.now = self.holds = 0
        self.member = SimpleNamespace(
            confirm=self._nothing,
            group_metadata=lambda: WHO,
            commit=self._commit_offsets,
            is_joining=False,
            holding_generation=self._holding,
        )
        self.offset_commits: list[asyncio.Future[None]] = []
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        records = builder.stream("in")
        records.to("out")
        records.group_by_key().count(store="counts")
        topology = builder.build()
        self.store: Any = open_store(topology.stores["counts"], None)
        subtopology = topology.subtopologies[0]
        environment = TaskEnvironment(clock=lambda: self.now)
        self.task = Task(TaskId(0, 0), subtopology, {"counts": self.store}, environment)
        self.task.add_input(IN, subtopology.sources[0], InputStart(position=0))
        self.running = RunningTask(self.task, {"counts": CHANGELOG}, {"counts": 0}, {"counts": 0})
        self.worker, self._fed = Worker(), 0
        self.transactions = Transactions(
            self._make,  # type: ignore[arg-type]
            clock=lambda: self.now,
            timeout_ms=10_000,
            codec=Codec.NONE,
            max_request_size=1_000_000,
        )
        producer: Any = self.transactions if exactly_once else self.producers[0]
        names: Any = SimpleNamespace(topic=lambda topic: topic)
        member: Any = self.member
        self.output = Output(producer, names, {"out": 1}, lambda _: "fail", find_count=_no_topic)
        guarantee = (
            ExactlyOnce(self.transactions, member)
            if exactly_once
            else AtLeastOnce(producer, member, self.output)
        )
        writer = ChangelogWriter(producer, self.worker, undoable=not exactly_once)
        self.committer = Committer(
            guarantee,
            writer,
            member,
            self.output,
            self.worker,
            hold_max_ms=60_000,
            metadata_limit=_metadata_limit,
        )

    def _make(self) -> Producer:
        self.producers.append(Producer(self.broker))
        return self.producers[-1]

    async def _nothing(self) -> None:
        pass

    @contextmanager
    def _holding(self) -> Iterator[None]:
        assert not self.member.is_joining
        self.holds += 1
        yield
        self.holds -= 1

    async def _commit_offsets(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.offset_commits.append(asyncio.get_running_loop().create_future())
        await self.offset_commits[-1]
        self.broker.committed.update(offsets)

    @property
    def producer(self) -> Producer:
        return self.producers[-1]

    async def process(self, *keys: str) -> None:
        """Process these records and send the output, as one turn of the loop does."""
        records: list[Any] = [(self._fed + n, 7, key.encode(), bytes(8), ()) for n, key in enumerate(keys)]
        self._fed += len(keys)
        self.task.add(IN, records, self._fed, self._fed)
        assert self.task.process() == len(keys)
        await self.output.send(self.running)

    async def begin(self) -> None:
        await self.committer.begin([self.running], lambda tp, offset: 5)

    def counts(self) -> dict[str, int]:
        """Return the counts that the operators see."""
        counts: dict[str, int] = dict(self.store.all())
        assert counts == {key: self.store.get(key) for key in counts}
        return counts

    def on_disk(self) -> tuple[dict[str, int], int | None]:
        """Return the state after a restart: the counts, and the changelog's offset."""
        backend = self.store.backend
        return {
            key.decode(): int.from_bytes(value[8:], "big") for key, value in backend.scan()
        }, backend.checkpoint

    def committed(self) -> tuple[int, int | None]:
        """Return the offsets after a restart: the input's position, and the noted offset of the changelog."""
        cut = read_cut(self.broker.committed, [IN])
        return cut.positions.get(IN, 0), (cut.changelogs or {}).get("counts")


async def _metadata_limit() -> int | None:
    return 40


def run(test: Callable[[Application], Awaitable[None]], **settings: bool) -> None:
    async def whole() -> None:
        application = Application(**settings)
        try:
            await test(application)
        finally:
            application.worker.close()

    asyncio.run(whole())
