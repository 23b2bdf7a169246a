"""Reads that would wait for the disk run in threads, a few at a time, and no other request waits for them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from kafka_client.records.slice import FileSlice
from kafka_client.wire import decode, encode_request
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from logd.api.dispatch.dispatch import serve
from logd.api.fetch import fetch_attempt
from logd.api.request.context import RequestContext
from logd.broker.broker import Broker
from logd.broker.fetching.cold_reads import COLD_READS_MAX, ROUNDS_MAX, ColdReads
from logd.broker.fetching.delayed import Delayed
from logd.config.listeners import Endpoint
from logd.config.load import from_properties
from logd.config.topic import TopicConfig
from logd.storage import LogDirectory, NotResident
from logd.storage.disk import read_slice
from logd.storage.log.reader import LogReader
from tests.support.waiting import until

SECONDS = 100


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2 * COLD_READS_MAX) as executor:
        yield executor


class Gate:
    """A job that waits until the gate is open, and counts the jobs of its kind that run."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.running = self.most = self.ran = 0
        self._lock = threading.Lock()

    def __call__(self, *_: object) -> None:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        assert self.open.wait(SECONDS)
        with self._lock:
            self.running -= 1
            self.ran += 1


async def test_a_few_at_a_time_and_in_turn(pool: ThreadPoolExecutor) -> None:
    cold_reads, gate, done = ColdReads(pool), Gate(), list[int]()
    for number in range(3 * COLD_READS_MAX):
        cold_reads.start([gate], lambda error, number=number: done.append(number))  # type: ignore[misc]
    await until(lambda: gate.running == COLD_READS_MAX)
    statistics = cold_reads.statistics()
    assert statistics["running"] == statistics["running_max"] == COLD_READS_MAX
    assert (statistics["queued"], statistics["warmed"]) == (2 * COLD_READS_MAX, 0)
    gate.open.set()
    await until(lambda: len(done) == 3 * COLD_READS_MAX)
    assert gate.most == COLD_READS_MAX
    assert sorted(done) == list(range(3 * COLD_READS_MAX))


async def test_what_nobody_waits_for_is_not_read(pool: ThreadPoolExecutor) -> None:
    cold_reads, gate, other = ColdReads(pool), Gate(), Gate()
    other.open.set()
    running = [cold_reads.start([gate], pytest.fail) for _ in range(COLD_READS_MAX)]
    queued = cold_reads.start([other], pytest.fail)
    for warming in (*running, queued):
        warming.cancel()
    gate.open.set()
    await until(lambda: cold_reads.statistics()["running"] == 0)
    assert (gate.ran, other.ran) == (COLD_READS_MAX, 0)


async def test_reading_again_until_all_is_there(pool: ThreadPoolExecutor) -> None:
    missing = 3

    def read() -> str:
        def job() -> None:
            nonlocal missing
            missing -= 1

        if missing:
            raise NotResident(job)
        return "read"

    assert await ColdReads(pool).until_resident(read) == "read"


async def test_reading_ends_where_it_is_of_no_use(pool: ThreadPoolExecutor) -> None:
    rounds = 0

    def nothing() -> None:
        nonlocal rounds
        rounds += 1

    def fails() -> None:
        raise OSError(5, "Input/output error")

    def read(job: Callable[[], None]) -> None:
        raise NotResident(job)

    for job in (nothing, fails):
        with pytest.raises(KafkaError) as refused:
            await ColdReads(pool).until_resident(lambda job=job: read(job))  # type: ignore[misc]
        assert refused.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert rounds == ROUNDS_MAX


class NeedsColdRead:
    """A broker in this process; its topic "cold" is not in memory until ``gate`` lets its pages be read."""

    def __init__(self, runner: asyncio.Runner, broker: Broker) -> None:
        self.runner = runner
        self.broker = broker
        self.gate = Gate()
        self.pages_in = False
        self.error: OSError | None = None

    def is_resident(self, piece: FileSlice) -> bool:
        cold = self.broker.catalog.find("cold").partition(0).log.reader.read(0, 1 << 20)
        assert cold is not None
        return self.pages_in or piece.fd != cold.fd

    def warm(self, piece: FileSlice) -> None:
        self.gate()
        if self.error is not None:
            raise self.error
        self.pages_in = True

    def fetch(self, *topics: str, max_wait_ms: int = 60_000, min_bytes: int = 1) -> Any:
        rows = [
            FetchTopic(topic=name, partitions=[FetchPartition(partition_max_bytes=1000)]) for name in topics
        ]
        request = FetchRequest(topics=rows, max_wait_ms=max_wait_ms, min_bytes=min_bytes, max_bytes=10_000)
        frame = encode_request(request, 12, 7, "c")
        return serve(memoryview(frame), 4, len(frame), RequestContext(self.broker))


def answered(answer: Any) -> list[tuple[str, int, int]]:
    """Return (topic, error, bytes of records) of a response."""
    frame = b"".join(part if isinstance(part, bytes) else read_slice(part) for part in answer)
    return [
        (topic.topic, partition.error_code, len(partition.records))
        for topic in decode(FetchResponse, 12, frame, 9).responses
        for partition in topic.partitions
    ]


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NeedsColdRead]:
    monkeypatch.setattr(LogReader, "is_recent", lambda reader, offset: False)
    config = from_properties({"log.dirs": str(tmp_path), "offsets.topic.num.partitions": "1"}).config
    with asyncio.Runner() as runner:
        broker = Broker(config)
        runner.run(broker.start())
        broker.endpoints = [Endpoint("PLAINTEXT", "127.0.0.1", 9092)]
        for name in ("cold", "warm"):
            topic = runner.run(broker.auto_create(name))
            topic.partition(0).append(build_batch([(1, b"k", b"v", ())]), 1)
        state = NeedsColdRead(runner, broker)
        monkeypatch.setattr(fetch_attempt, "is_resident", state.is_resident)
        monkeypatch.setattr(fetch_attempt, "warm", state.warm)
        yield state
        state.gate.open.set()
        runner.run(broker.stop())


def test_others_are_answered_while_pages_are_read_in(cold: NeedsColdRead) -> None:
    async def run() -> None:
        answers: list[Any] = []
        waiting = cold.fetch("cold", "warm")
        assert isinstance(waiting, Delayed)
        waiting.start(answers.append, pytest.fail)
        await until(lambda: cold.gate.running == 1)
        assert answered(cold.fetch("warm"))[0][2] > 0, "at once"
        waiting.wake()
        assert not answers and cold.gate.running == 1, "news do not begin it again"
        cold.gate.open.set()
        await until(lambda: bool(answers))
        assert [(name, error) for name, error, size in answered(answers[0]) if size] == [
            ("cold", 0),
            ("warm", 0),
        ]
        assert isinstance(cold.fetch("cold"), list), "it is in memory now"

    cold.runner.run(run())


def test_nobody_is_answered_who_hung_up_meanwhile(cold: NeedsColdRead) -> None:
    async def run() -> None:
        waiting = cold.fetch("cold")
        waiting.start(pytest.fail, pytest.fail)
        await until(lambda: cold.gate.running == 1)
        waiting.cancel()
        cold.gate.open.set()
        await until(lambda: cold.broker.cold_reads.statistics()["running"] == 0)

    cold.runner.run(run())


def test_pages_that_cannot_be_read(cold: NeedsColdRead) -> None:
    async def run() -> None:
        answers: list[Any] = []
        cold.gate.open.set()
        cold.error = OSError(5, "Input/output error")
        cold.fetch("warm", "cold", max_wait_ms=0).start(answers.append, pytest.fail)
        await until(lambda: bool(answers))
        warm, failed = answered(answers[0])
        assert warm[1] == 0 and warm[2] > 0
        assert failed == ("cold", ErrorCode.KAFKA_STORAGE_ERROR, 0)

    cold.runner.run(run())


def test_indexes_that_are_not_in_memory(cold: NeedsColdRead, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetches read the indexes first if they are not in memory, and then wait if there is too little."""
    read = LogReader.read
    loaded = False

    def load() -> None:
        nonlocal loaded
        loaded = True

    def read_cold(reader: LogReader, offset: int, max_bytes: int, **bounds: Any) -> FileSlice | None:
        if not loaded:
            raise NotResident(load)
        return read(reader, offset, max_bytes, **bounds)

    monkeypatch.setattr(LogReader, "read", read_cold)

    async def run() -> None:
        answers: list[Any] = []
        partition = cold.broker.catalog.find("warm").partition(0)
        waiting = cold.fetch("warm", min_bytes=100)
        waiting.start(answers.append, pytest.fail)
        await until(lambda: loaded and bool(partition.waiters))
        assert not answers, "one batch is too little"
        partition.append(build_batch([(1, b"k", b"v", ())]), 1)
        await until(lambda: bool(answers))
        assert answered(answers[0])[0][2] > 100

    cold.runner.run(run())


def test_a_log_is_read_in_before_it_is_replayed(
    tmp_path: Path, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = TopicConfig(segment_bytes=400_000)
    folder = LogDirectory.open(tmp_path, node_id=1, cluster_id="c", config_for=lambda topic: config, now_ms=0)
    log = folder.create_log("t", 0, topic_id=bytes(16), config=config, now_ms=0)
    for _ in range(100):
        log.writer.append(build_batch([(0, None, os.urandom(10_000), ())]), 0, 0)
    read_in: list[FileSlice] = []
    # Whether the kernel drops pages when asked, and how soon it has them again, is its own affair.
    monkeypatch.setattr("logd.broker.fetching.cold_reads.is_resident", lambda piece: False)
    monkeypatch.setattr("logd.broker.fetching.cold_reads.warm", read_in.append)

    asyncio.run(ColdReads(pool).read_in(log))

    assert len({piece.fd for piece in read_in}) == 3, "segments"
    assert sum(piece.length for piece in read_in) == log.size
    folder.close()
