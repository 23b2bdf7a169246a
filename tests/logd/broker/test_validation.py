"""The queue of batches that threads validate, and changes during a validation."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import Codec, build_batch
from logd.api.produce.waiting_batch import WaitingBatch
from logd.broker.partition.batch_rules import LOOP_DECOMPRESSED_MAX, NotYetValidated, Validated
from logd.broker.partition.partition import Partition
from logd.broker.work import pool as pools
from logd.broker.work.pool import VALIDATING_BYTES_MAX, VALIDATING_MAX, Validator
from logd.config.topic import TopicConfig
from logd.storage import LogDirectory

NOW = 1_700_000_000_000
ROWS = LOOP_DECOMPRESSED_MAX // 50


class Gate:
    """A job that runs until `open`."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self._end = threading.Event()

    def __call__(self) -> str:
        self.has_begun.set()
        assert self._end.wait(60)
        return "done"

    def open(self) -> None:
        self._end.set()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(VALIDATING_MAX + 4) as pool:
        yield pool


async def settled() -> None:
    """Let the event loop run all that needs no job's end."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_so_many_at_once(pool: ThreadPoolExecutor) -> None:
    validator = Validator(pool)
    gates = [Gate() for _ in range(VALIDATING_MAX + 2)]
    tasks = [asyncio.ensure_future(validator.run(gate, 10)) for gate in gates]
    await settled()
    now = validator.statistics()
    assert (now["running"], now["running_bytes"], now["queued"]) == (VALIDATING_MAX, 40, 2)
    assert not any(gate.has_begun.is_set() for gate in gates[VALIDATING_MAX:])
    gates[0].open()
    assert await tasks[0] == "done"
    await settled()
    assert validator.statistics()["queued"] == 1
    for gate in gates:
        gate.open()
    await asyncio.gather(*tasks)
    now = validator.statistics()
    assert (now["running"], now["running_bytes"], now["queued"], now["run"]) == (0, 0, 0, len(gates))


async def test_so_many_bytes_at_once(pool: ThreadPoolExecutor) -> None:
    validator = Validator(pool)
    gates = [Gate() for _ in range(3)]
    sizes = [VALIDATING_BYTES_MAX + 1, 5, 5]
    tasks = [
        asyncio.ensure_future(validator.run(gate, size)) for gate, size in zip(gates, sizes, strict=True)
    ]
    await settled()
    assert validator.statistics()["running"] == 1, "a large one alone"
    gates[0].open()
    await tasks[0]
    await settled()
    assert validator.statistics()["running"] == 2
    for gate in gates:
        gate.open()
    await asyncio.gather(*tasks)


async def test_cancelled_while_it_waits_and_while_it_runs(pool: ThreadPoolExecutor) -> None:
    validator = Validator(pool)
    gates = [Gate() for _ in range(VALIDATING_MAX + 2)]
    tasks = [asyncio.ensure_future(validator.run(gate, 10)) for gate in gates]
    await settled()
    tasks[-2].cancel()
    tasks[0].cancel()
    await settled()
    assert not tasks[0].done(), "its thread cannot be stopped"
    gates[0].open()
    with pytest.raises(asyncio.CancelledError):
        await tasks[0]
    await settled()
    assert gates[-1].has_begun.wait(60), "it has the place of the one that was cancelled"
    assert not gates[-2].has_begun.is_set()
    for gate in gates:
        gate.open()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert validator.statistics()["running"] == 0


async def test_cancelled_when_its_turn_has_just_come(pool: ThreadPoolExecutor) -> None:
    validator = Validator(pool)
    first = asyncio.ensure_future(validator.run(lambda: None, 10))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert validator.statistics()["running"] == 0
    assert await validator.run(lambda: 7, 10) == 7


async def test_an_error_is_the_jobs(pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "VALIDATING_MAX", 1)

    def fail() -> None:
        raise KafkaError(ErrorCode.INVALID_RECORD, "bad")

    validator = Validator(pool)
    for _ in range(3):
        with pytest.raises(KafkaError, match="bad"):
            await validator.run(fail, 10)


# A partition meanwhile


class AtOnce(Executor):
    """A pool that runs a job when it is submitted, after `before`."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def submit(self, job: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._before()
        try:
            future.set_result(job(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


@pytest.fixture
def partition(tmp_path: Path) -> Iterator[Partition]:
    config = TopicConfig()
    path = tmp_path / "data"
    folder = LogDirectory.open(path, node_id=1, cluster_id="c", config_for=lambda topic: config, now_ms=NOW)
    log = folder.create_log("t", 0, topic_id=bytes(range(16)), config=config, now_ms=NOW)
    flusher = cast(Any, SimpleNamespace(appended=lambda *_: None, touched=lambda *_: None))
    yield Partition(log, folder, bytes(range(16)), config, flusher)
    folder.close()


def long_batch(key: bytes | None = b"k", **fields: int) -> memoryview:
    rows = [(NOW, key, b"v" * 100, ())] * ROWS
    return memoryview(build_batch(rows, codec=Codec.ZSTD, **fields))


def waiting(partition: Partition, batch: memoryview, topic: Any = None) -> WaitingBatch:
    """Produce a batch that its partition cannot append at once, and return it as a waiting batch."""
    from functools import partial

    topic = topic or SimpleNamespace(partition=lambda index: partition)
    with pytest.raises(NotYetValidated) as caught:
        partition.produce(batch, NOW, -1)
    append = partial(partition.produce, batch, NOW, -1)
    return WaitingBatch([], 0, topic, partition, batch, NOW, append, caught.value)


def append(batch: WaitingBatch, meanwhile: Any = lambda: None) -> Any:
    return asyncio.run(_append(batch, meanwhile))


async def _append(batch: WaitingBatch, meanwhile: Any) -> Any:
    return await batch.appended(Validator(AtOnce(meanwhile)))


def test_nothing_changes(partition: Partition) -> None:
    assert append(waiting(partition, long_batch())).base_offset == 0
    assert partition.log_end_offset == ROWS


def test_the_settings_change(partition: Partition) -> None:
    """Batches are validated again, by the new rules, when the topic's configs change."""
    times = []

    def compact() -> None:
        times.append(1)
        if len(times) == 1:
            partition.configure(TopicConfig(cleanup_policy=("compact",)))

    with pytest.raises(KafkaError) as refused:
        append(waiting(partition, long_batch(key=None)), compact)
    assert refused.value.code is ErrorCode.INVALID_RECORD
    assert len(times) == 2
    assert partition.log_end_offset == 0


def test_the_partition_goes_away(partition: Partition) -> None:
    def deleted(index: int) -> Any:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "deleted")

    with pytest.raises(KafkaError, match="deleted"):
        append(waiting(partition, long_batch(), SimpleNamespace(partition=deleted)))
    assert partition.log_end_offset == 0


def test_the_partition_is_opened_again(partition: Partition) -> None:
    another = SimpleNamespace(partition=lambda index: object())
    with pytest.raises(KafkaError) as refused:
        append(waiting(partition, long_batch(), another))
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.log_end_offset == 0


def test_another_batch_of_the_producer_is_appended(partition: Partition) -> None:
    """Sequences are checked when the batch is appended, not when it is validated."""
    batch = long_batch(producer_id=5, producer_epoch=0, base_sequence=0)
    waiting_batch = waiting(partition, batch)

    def same_batch() -> None:
        if not partition.log_end_offset:
            rules, header = waiting_batch.reason.rules, waiting_batch.reason.header  # type: ignore[union-attr]
            validated: Validated = rules.validate(header, batch, NOW)
            partition.produce(batch, NOW, -1, validated=validated)

    appended = append(waiting_batch, same_batch)
    assert appended.duplicate and appended.base_offset == 0
    assert partition.log_end_offset == ROWS
