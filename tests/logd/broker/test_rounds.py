"""Background tasks of a broker go on after an unexpected error, and report it.

The story: a mistake in one round of the flusher, of retention or of a group's clock ended its task silently.
The broker never flushed, never deleted, never ended a session again.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import build_batch
from logd.broker.background.flusher import Flusher
from logd.broker.background.housekeeping import Housekeeping
from logd.broker.broker import Broker
from logd.broker.coordinators import coordinator as coordinator_module
from logd.broker.fetching.cold_reads import ColdReads
from logd.broker.work import periodic as rounds_module
from logd.broker.work.periodic import PeriodicTasks
from logd.config.broker import BrokerConfig
from logd.config.load import from_properties
from logd.groups import GroupShard
from logd.storage.cleaner.swap import Swap
from logd.storage.log.compaction import LogCompaction
from logd.storage.log.flusher import LogFlusher
from logd.storage.log.shortening import LogShortening
from logd.transactions import TransactionShard
from tests.support.waiting import until

SECONDS = 100
NOW = 1_700_000_000_000


class Mistake(Exception):
    """An unexpected error."""


class Once:
    """A stand-in for a function, which fails at its first call and then calls the function."""

    def __init__(self, real: Callable[..., Any]) -> None:
        self.calls = 0
        self._real = real

    def __get__(self, owner: object, kind: type | None = None) -> Callable[..., Any]:
        return lambda *args, **kwargs: self(owner, *args, **kwargs)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.calls += 1
        if self.calls == 1:
            raise Mistake
        return self._real(*args, **kwargs)


class Paper:
    """An object with the given attributes."""

    def __init__(self, **facts: Any) -> None:
        self.__dict__.update(facts)


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_module, "PAUSE_AFTER_MISTAKE_S", 0.0)
    monkeypatch.setattr(coordinator_module, "PAUSE_AFTER_MISTAKE_S", 0.0)


@pytest.fixture(autouse=True)
def _reported(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Check after every test that its mistake was logged with a traceback."""
    yield
    records = caplog.get_records("call")
    assert any(record.exc_info and record.exc_info[0] is Mistake for record in records)


def in_broker(
    tmp_path: Path, test: Callable[[Broker], Any], settings: dict[str, str] | None = None, **facts: Any
) -> None:
    async def run() -> None:
        broker = Broker(from_properties({"log.dirs": str(tmp_path), **(settings or {})}).config, **facts)
        await broker.start()
        try:
            await test(broker)
        finally:
            await broker.stop()

    asyncio.run(run())


# The noun


def test_a_round_comes_again(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        rounds, turns = PeriodicTasks(), 0

        async def work() -> None:
            nonlocal turns
            turns += 1
            if turns == 1:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk")
            if turns == 2:
                raise Mistake

        rounds.every(0, work)
        await until(lambda: turns > 3)
        await rounds.stop()
        before = turns
        await asyncio.sleep(0)
        assert turns == before

    asyncio.run(run())
    expected, mistake = [record for record in caplog.records if record.name.startswith("logd.")]
    assert "work: KAFKA_STORAGE_ERROR: the disk" in expected.getMessage() and not expected.exc_info
    assert "work: unexpected Mistake()" in mistake.getMessage() and mistake.exc_info


def test_one_that_always_fails_keeps_nobody_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds_module, "PAUSE_AFTER_MISTAKE_S", 3600.0)

    async def run() -> None:
        rounds, turns = PeriodicTasks(), 0

        async def work() -> None:
            nonlocal turns
            turns += 1
            raise Mistake

        rounds.every(0, work)
        await until(lambda: turns == 1)
        for _ in range(100):
            await asyncio.sleep(0)
        assert turns == 1
        await rounds.stop()

    asyncio.run(run())


# Housekeeping and the flusher


async def test_housekeeping_goes_on() -> None:
    written = threading.Event()
    job = Once(written.set)
    folder: Any = Paper(failure=None, start_checkpoint=lambda watermarks: job)
    config = BrokerConfig.of({"log.flush.offset.checkpoint.interval.ms": "1"})
    with ThreadPoolExecutor(1) as pool:
        housekeeping = Housekeeping(config, {}, [folder], pool, lambda: 0)
        housekeeping.start()
        await until(written.is_set)
        await housekeeping.stop()


async def test_what_deleting_files_fails_of_is_reported() -> None:
    with ThreadPoolExecutor(1) as pool:
        housekeeping = Housekeeping(BrokerConfig.of({}), {}, [], pool, lambda: 0)
        deletion: Any = Paper(delay_ms=0, hide=Once(lambda: None), run=lambda: None)
        housekeeping.discard([deletion])
        await until(lambda: deletion.hide.calls == 1)
        await housekeeping.stop()


@pytest.mark.parametrize("method", ["start_flush", "finish_flush"])
def test_a_log_is_flushed_in_the_next_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async def test(broker: Broker) -> None:
        partitions = [(await broker.catalog.create(name, 1, {})).partition(0) for name in "ab"]
        once = Once(getattr(LogFlusher, method))
        monkeypatch.setattr(LogFlusher, method, once)
        for partition in partitions:
            partition.append(build_batch([(NOW, b"k", b"v", ())]), NOW)
        await until(lambda: all(partition.log.recovery_point == 1 for partition in partitions))
        assert once.calls > 2

    in_broker(tmp_path, test, {"millstream.flush.interval.ms": "1"})


async def test_who_waits_for_a_sync_is_told_and_who_came_meanwhile_gets_his() -> None:
    """Syncs requested during a failed one are carried out.

    They waited for a task that had ended.
    """
    go_on = asyncio.Event()

    async def run_job(job: Callable[[], None]) -> None:
        await go_on.wait()
        job()

    sync = Paper(run=Once(lambda: None))
    durable = Paper(start_sync=lambda: sync, finish_flush=lambda done: None)
    log: Any = Paper(log_end_offset=1, flusher=durable)
    partition: Any = Paper(log=log, is_offline=False, flush_ended=lambda: None)
    flusher = Flusher(run_job, 1000)
    first = flusher.sync(partition)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    second = flusher.sync(partition)
    assert second is not first
    go_on.set()
    with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
        await asyncio.wait_for(first, SECONDS)
    await asyncio.wait_for(second, SECONDS)
    await flusher.stop()


async def test_a_read_that_waits_for_pages_is_answered() -> None:
    with ThreadPoolExecutor(1) as pool:
        cold_reads = ColdReads(pool)
        done: list[OSError | None] = []
        for job in (Once(lambda: None), lambda: None):
            cold_reads.start([job], done.append)
        await until(lambda: len(done) == 2)
        assert isinstance(done[0], OSError) and done[1] is None
        statistics = cold_reads.statistics()
        assert (statistics["running"], statistics["queued"], statistics["warmed"]) == (0, 0, 2)


def test_retention_of_one_log_keeps_no_other_from_its_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(broker: Broker) -> None:
        for name in "ab":
            await broker.catalog.create(name, 1, {})
        once = Once(LogShortening.apply_retention)
        monkeypatch.setattr(LogShortening, "apply_retention", once)
        await broker.housekeeping.apply_retention()
        assert once.calls == 2

    in_broker(tmp_path, test)


# Compaction

COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "2000", "min.cleanable.dirty.ratio": "0.01"}
QUICK = {"log.cleaner.backoff.ms": "5", "millstream.flush.interval.ms": "5"}


async def fill(broker: Broker, name: str) -> Any:
    partition = (await broker.catalog.create(name, 1, COMPACTED)).partition(0)
    for number in range(20):
        partition.append(build_batch([(NOW + number, b"key", b"x" * 300, ())]), NOW + number)
    return partition


@pytest.mark.parametrize("method", ["cleanable", "start_compaction"])
def test_a_log_that_cannot_be_looked_at_keeps_no_other_from_being_compacted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    async def test(broker: Broker) -> None:
        monkeypatch.setattr(LogCompaction, method, Once(getattr(LogCompaction, method)))
        partitions = [await fill(broker, name) for name in "ab"]
        await until(lambda: all(partition.log.size < 3000 for partition in partitions))

    in_broker(tmp_path, test, QUICK)


def test_an_exchange_that_breaks_off_takes_the_folder_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken exchanges take the log directory offline.

    Some files have their new names then, some not: the broker would read and write the wrong ones. The
    failure of the last log directory stops the broker. The next start completes the exchange.
    """
    stopped = threading.Event()

    async def test(broker: Broker) -> None:
        monkeypatch.setattr(Swap, "apply", Once(Swap.apply))
        partition = await fill(broker, "t")
        await until(stopped.is_set)
        with pytest.raises(KafkaError, match="KAFKA_STORAGE_ERROR"):
            partition.log.reader.read(0, 1)

    in_broker(tmp_path, test, QUICK, on_dead=stopped.set)

    async def again(broker: Broker) -> None:
        partition = broker.catalog.partitions["t", 0]
        assert partition.log_end_offset == 20
        assert partition.read(19, 1) is not None

    in_broker(tmp_path, again, QUICK)


# Coordinators


async def coordinate(broker: Broker) -> Any:
    """Create the group's coordinator and return its partition."""
    await broker.groups.ensure_topic()
    return broker.groups.partition("g")


def member(broker: Broker) -> Any:
    from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=6_000,
        rebalance_timeout_ms=10_000,
        protocol_type="test",
        protocols=[JoinGroupRequestProtocol(name="range")],
    )
    return broker.groups.join(request, 3, "client", "host")


GROUPS = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "1"}


def test_a_groups_clock_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Members that wait for a group's clock get NOT_COORDINATOR after a mistake, and then find the
    coordinator again.
    """

    async def test(broker: Broker) -> None:
        await coordinate(broker)
        monkeypatch.setattr(GroupShard, "tick", Once(GroupShard.tick))
        first = await asyncio.wait_for(member(broker), SECONDS)
        assert first.error_code == ErrorCode.NOT_COORDINATOR
        await until(lambda: is_at_work(broker))
        assert (await asyncio.wait_for(member(broker), SECONDS)).error_code == 0

    in_broker(tmp_path, test, GROUPS)


def is_at_work(broker: Broker) -> bool:
    try:
        return bool(broker.groups.partition("g").loaded)
    except KafkaError:
        return False


def test_offsets_go_on_to_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(broker: Broker) -> None:
        await coordinate(broker)
        once = Once(GroupShard.expire)
        monkeypatch.setattr(GroupShard, "expire", once)
        await until(lambda: once.calls > 2)
        assert is_at_work(broker)

    in_broker(tmp_path, test, {**GROUPS, "offsets.retention.check.interval.ms": "1"})


@pytest.mark.parametrize("kind", [GroupShard, TransactionShard], ids=["groups", "transactions"])
def test_a_partition_whose_replay_breaks_off_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any
) -> None:
    """Loads that fail are tried again.

    The partition was loading for ever.
    """
    settings = {**GROUPS, "transaction.state.log.num.partitions": "1"}

    async def write(broker: Broker) -> None:
        (await coordinate(broker)).shard.store.write([], NOW)
        await broker.transactions.ensure_topic()
        await broker.transactions.init_producer("tid", 1000, None)
        assert (await asyncio.wait_for(member(broker), SECONDS)).error_code == 0

    in_broker(tmp_path, write, settings)

    def is_ready(broker: Broker) -> bool:
        try:
            if kind is GroupShard:
                return bool(broker.groups.partition("g"))
            return bool(broker.transactions.describe("tid"))
        except KafkaError:
            return False

    async def read(broker: Broker) -> None:
        await until(lambda: is_ready(broker))

    monkeypatch.setattr(kind, "load", Once(kind.load))
    in_broker(tmp_path, read, settings)


def test_transactions_go_on_to_time_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interval = "transaction.abort.timed.out.transaction.cleanup.interval.ms"

    async def test(broker: Broker) -> None:
        await broker.transactions.ensure_topic()
        await broker.transactions.init_producer("tid", 1000, None)
        once = Once(TransactionShard.timed_out)
        monkeypatch.setattr(TransactionShard, "timed_out", once)
        await until(lambda: once.calls > 2)

    in_broker(tmp_path, test, {"transaction.state.log.num.partitions": "1", interval: "1"})


def test_a_transaction_that_was_decided_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided transactions are finished after an error; their readers were blocked for good."""
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.transactions.markers import Markers
    from logd.broker.transactions.partition import TxnPartition

    async def test(broker: Broker) -> None:
        await broker.catalog.create("t", 1, {})
        await broker.transactions.ensure_topic()
        identity = await broker.transactions.init_producer("tid", 60_000, None)
        await broker.transactions.add_partitions("tid", identity, [TopicPartition("t", 0)])
        write_where_needed = Markers.write_where_needed

        def not_yet(*args: Any, **kwargs: Any) -> None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "not yet")

        # The first attempt fails as it may, so that a task goes on with it; the task's first one by mistake.
        monkeypatch.setattr(Markers, "write_where_needed", not_yet)
        monkeypatch.setattr(TxnPartition, "flushed", Once(TxnPartition.flushed))
        partition = broker.transactions._partition("tid")
        partition.end("tid", identity, commit=True, client_version=0)
        await asyncio.sleep(0)
        monkeypatch.setattr(Markers, "write_where_needed", write_where_needed)
        await until(lambda: broker.catalog.partitions["t", 0].log_end_offset == 1)

    in_broker(tmp_path, test, {"transaction.state.log.num.partitions": "1"})
