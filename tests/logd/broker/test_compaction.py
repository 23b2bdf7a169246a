"""Compaction in a running broker: under reading and writing, under kills of broker and cleaner."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import Codec, build_batch, decode_records, iter_batches
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from logd.broker.broker import Broker
from logd.config.load import from_properties
from logd.storage.checkpoints import read_offsets
from logd.storage.cleaner.swap import Swap
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import SECONDS, wait_for

QUICK = {
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.dedupe.buffer.size": "2000000",
    "millstream.flush.interval.ms": "30",
    "log.segment.delete.delay.ms": "20",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "30000",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
NOW = 1_700_000_000_000
KEYS = 50
TOPIC_RESOURCE = 2
SET = 0


class Writer:
    """Puts to random keys, one batch after the other; `last` is what was acknowledged of each key.

    Every batch has to be taken; only where `is_killed` the broker may be gone, and its connections with it.
    """

    def __init__(self, logd: LogdProcess, topic: str, *, seed: int = 0, is_killed: bool = False) -> None:
        self._logd = logd
        self._topic = topic
        self._random = random.Random(seed)
        self.last: dict[bytes, bytes] = {}
        self.unsure: dict[bytes, set[bytes]] = {}
        self.count = 0
        self._is_killed = is_killed
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="writer")

    def batch(self) -> tuple[bytes, dict[bytes, bytes]]:
        codec = Codec(self._random.randrange(5))
        keys = [b"key-%d" % self._random.randrange(KEYS) for _ in range(self._random.randint(1, 10))]
        puts = [(key, b"%d-" % (self.count + number) + b"x" * 300) for number, key in enumerate(keys)]
        self.count += len(puts)
        records = [(NOW + self.count, key, value, ()) for key, value in puts]
        return build_batch(records, codec=codec), dict(puts)

    def write(self, client: RawClient) -> None:
        data, puts = self.batch()
        for key, value in puts.items():
            self.unsure.setdefault(key, set()).add(value)
        answer = client.produce(self._topic, data)
        assert answer.error_code == ErrorCode.NONE, ErrorCode(answer.error_code).name
        self.last.update(puts)
        for key in puts:
            self.unsure.pop(key, None)

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    self._write_on()
                except ConnectionError:
                    if not self._is_killed:
                        raise
                    self._stop.wait(0.02)
        except BaseException as error:
            self._error = error

    def _write_on(self) -> None:
        with RawClient(self._logd.port) as client:
            while not self._stop.is_set():
                self.write(client)

    def __enter__(self) -> Writer:
        self._thread.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._stop.set()
        self._thread.join()
        self.check()

    def check(self) -> None:
        """Raise the error that ended the writer, if any."""
        if self._error is not None:
            raise self._error


def read_all(logd: LogdProcess, topic: str) -> tuple[dict[bytes, bytes], int]:
    """Return each key's last value and the number of records; offsets must rise."""
    values: dict[bytes, bytes] = {}
    count, position, last = 0, 0, -1
    with RawClient(logd.port) as client:
        while True:
            answer = client.fetch(topic, position, max_wait_ms=1, partition_max_bytes=50_000)
            assert answer.error_code == ErrorCode.NONE
            before = position
            for start, header in iter_batches(answer.records):
                for offset, _, key, value, _ in decode_records(answer.records, start):
                    if offset < before:
                        continue
                    assert offset > last
                    last = offset
                    assert key is not None and value is not None
                    values[key] = value
                    count += 1
                position = header.next_offset
            if position >= answer.high_watermark:
                return values, count
            assert position > before


def holds(values: dict[bytes, bytes], writer: Writer) -> bool:
    return all(
        values.get(key) == value or values.get(key) in writer.unsure.get(key, ())
        for key, value in writer.last.items()
    )


def cleaner_pid(logd: LogdProcess) -> int | None:
    """Return the cleaner's process id, or None without a cleaner."""
    children = Path(f"/proc/{logd.pid}/task/{logd.pid}/children").read_text().split()
    for child in children:
        with suppress(FileNotFoundError, ProcessLookupError):  # it may end between the two looks
            if b"logd.storage.cleaner" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return None


def running_cleaner(logd: LogdProcess) -> int:
    """Wait for the cleaner process and return its id."""
    pids: list[int] = []

    def is_running() -> bool:
        pids.extend(pid for pid in [cleaner_pid(logd)] if pid is not None)
        return bool(pids)

    wait_for(is_running)
    return pids[0]


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def rounds(logd: LogdProcess, topic: str) -> int:
    return logd.log.count(f"compacted {topic}-0 ")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., LogdProcess]]:
    """Return a function that starts a broker which compacts at once."""
    started: list[LogdProcess] = []

    def begin(**overrides: str) -> LogdProcess:
        settings = {**QUICK, **{key.replace("_", "."): value for key, value in overrides.items()}}
        started.append(LogdProcess(tmp_path / "logd", settings).start())
        return started[-1]

    yield begin
    for logd in started:
        logd.kill()


@deep
def test_under_reading_and_writing(start: Callable[..., LogdProcess]) -> None:
    logd = start()
    create_topic(logd, "t", COMPACTED)
    assert cleaner_pid(logd) is None, "started when first needed"
    reads = 0
    with Writer(logd, "t") as writer:
        while rounds(logd, "t") < 5 or reads < 5:
            writer.check()
            before = dict(writer.last)
            values, _ = read_all(logd, "t")
            assert all(key in values for key in before)
            reads += 1
    assert read_all(logd, "t")[0] == writer.last
    wait_for(lambda: read_all(logd, "t")[1] < writer.count / 2)
    checkpoint = logd.folder / "data" / "cleaner-offset-checkpoint"
    assert read_offsets(checkpoint)["t", 0] > 0
    cleaner = running_cleaner(logd)
    assert logd.stop() == 0
    wait_for(lambda: not is_alive(cleaner))
    assert not list((logd.folder / "data" / "t-0").glob("*.swap"))
    logd.start()
    assert read_all(logd, "t")[0] == writer.last


def test_a_broker_alone_writes_nothing_for_replicas(start: Callable[..., LogdProcess]) -> None:
    """Brokers without a cluster write no removal offsets, which only replicas need."""
    logd = start()
    create_topic(logd, "t", {**COMPACTED, "segment.bytes": "1000"})
    with RawClient(logd.port) as client:
        client.produce("t", build_batch([(NOW, b"gone", b"x", ()), (NOW, b"gone", None, ())]))

        def is_gone() -> bool:
            assert client.produce("t", build_batch([(NOW, b"tick", b"x" * 500, ())])).error_code == 0
            answer = client.fetch("t", 0, max_wait_ms=1)
            return b"gone" not in bytes(answer.records)

        wait_for(is_gone)
    assert not list(logd.folder.glob("data/*/removal-offset-checkpoint"))


def test_a_stop_waits_for_the_exchange_of_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    has_begun, may_go_on = threading.Event(), threading.Event()
    prepare = Swap.prepare

    def slow(swap: Swap) -> bool:
        is_prepared = prepare(swap)
        has_begun.set()
        assert may_go_on.wait(SECONDS)
        return is_prepared

    async def run() -> None:
        monkeypatch.setattr(Swap, "prepare", slow)
        broker = Broker(from_properties({"log.dirs": str(tmp_path), **QUICK}).config)
        await broker.start()
        topic = await broker.catalog.create("t", 1, COMPACTED)
        for number in range(300):
            batch = build_batch([(NOW + number, b"key", b"x" * 300, ())])
            topic.partition(0).append(batch, NOW + number)
        assert await asyncio.to_thread(has_begun.wait, SECONDS)
        stopping = asyncio.create_task(broker.stop())
        await asyncio.sleep(0)
        may_go_on.set()
        await stopping

    asyncio.run(run())
    assert not list((tmp_path / "t-0").glob("*.swap"))


@deep
def test_the_broker_is_killed_meanwhile(start: Callable[..., LogdProcess]) -> None:
    logd = start()
    create_topic(logd, "t", COMPACTED)
    with Writer(logd, "t", is_killed=True) as writer:
        for kill in range(3):
            done = rounds(logd, "t")
            wait_for(lambda done=done: rounds(logd, "t") > done + 1)  # type: ignore[misc]
            cleaner = running_cleaner(logd)
            logd.kill()
            wait_for(lambda cleaner=cleaner: not is_alive(cleaner))  # type: ignore[misc]
            logd.start()
            written = set(writer.last)  # before the look at the log, for the writer goes on
            values, _ = read_all(logd, "t")
            assert set(values) >= written, f"kill {kill}"
    assert holds(read_all(logd, "t")[0], writer)


@deep
def test_the_cleaner_is_killed_meanwhile(start: Callable[..., LogdProcess]) -> None:
    logd = start(log_cleaner_io_max_bytes_per_second="200000")
    create_topic(logd, "t", COMPACTED)
    with Writer(logd, "t") as writer, RawClient(logd.port) as client:
        for kill in range(2):
            os.kill(running_cleaner(logd), signal.SIGKILL)
            wait_for(lambda kill=kill: logd.log.count("it is started again") > kill)  # type: ignore[misc]
        assert client.fetch("t", 0).error_code == ErrorCode.NONE
        done = rounds(logd, "t")
        wait_for(lambda: rounds(logd, "t") > done)
    assert read_all(logd, "t")[0] == writer.last


@deep
def test_a_damaged_log_is_set_aside_and_others_go_on(start: Callable[..., LogdProcess]) -> None:
    logd = start(log_cleaner_enable="false")
    for name in ("bad", "good"):
        create_topic(logd, name, COMPACTED)
        writer = Writer(logd, name)
        with RawClient(logd.port) as client:
            while writer.count < 500:
                writer.write(client)
    assert logd.stop() == 0
    path = logd.folder / "data" / "bad-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[1000] ^= 1
    path.write_bytes(data)
    logd.overrides["log.cleaner.enable"] = "true"
    logd.start()
    logd.wait_for_log("bad-0 is not compacted any more until a restart: batch CRC is")
    wait_for(lambda: rounds(logd, "good") > 0)
    assert rounds(logd, "bad") == 0
    wait_for(lambda: not list(path.parent.glob("*.cleaned")))
    assert read_all(logd, "good")[0] == writer.last


@deep
def test_a_topic_that_is_deleted_or_not_compacted_any_more_is_dropped(
    start: Callable[..., LogdProcess],
) -> None:
    logd = start(log_cleaner_io_max_bytes_per_second="20000")
    for name in ("deleted", "changed"):
        create_topic(logd, name, COMPACTED)
    with RawClient(logd.port) as client:
        for name in ("deleted", "changed"):
            writer = Writer(logd, name)
            while writer.count < 500:
                writer.write(client)
        running_cleaner(logd)
        client.request(DeleteTopicsRequest(topic_names=["deleted"], timeout_ms=10_000), 4)
        change = AlterableConfig(name="cleanup.policy", config_operation=SET, value="delete")
        resource = AlterConfigsResource(
            resource_type=TOPIC_RESOURCE, resource_name="changed", configs=[change]
        )
        client.request(IncrementalAlterConfigsRequest(resources=[resource]), 1)
        create_topic(logd, "deleted", COMPACTED)
        assert client.produce("deleted", [(NOW, b"k", b"new", ())]).error_code == ErrorCode.NONE
    assert read_all(logd, "deleted")[0] == {b"k": b"new"}
    assert read_all(logd, "changed")[0] == writer.last
    assert logd.stop() == 0


@deep
def test_compact_and_delete_drops_old_segments_too(start: Callable[..., LogdProcess]) -> None:
    logd = start(log_retention_check_interval_ms="50")
    policy = {"cleanup.policy": "compact,delete", "retention.bytes": "60000", "retention.ms": "-1"}
    create_topic(logd, "t", {**COMPACTED, **policy})
    writer = Writer(logd, "t")
    with RawClient(logd.port) as client:
        unique = 0
        while unique < 600:
            data = [(NOW + unique, b"u%d" % unique, b"x" * 300, ())]
            assert client.produce("t", data).error_code == ErrorCode.NONE
            unique += 1
            writer.write(client)
        wait_for(lambda: client.fetch("t", 0, max_wait_ms=1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE)
    wait_for(lambda: rounds(logd, "t") > 0)
