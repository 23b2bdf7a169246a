"""Disk work after responses: one job for a topic at a time, and a bound on topics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kafka_client.errors import KafkaError
from logd.broker.broker import Broker
from logd.broker.broker_metrics import BrokerMetrics
from logd.broker.topics.catalog import new_topic
from logd.broker.work import disk_work
from logd.broker.work.disk_work import DiskWork
from logd.broker.work.pool import JobPool, run_job
from logd.config.broker import BrokerConfig
from logd.config.listeners import Endpoint
from tests.support.waiting import until


async def test_it_tells_of_topics_until_their_work_has_ended() -> None:
    work, go_on, done = DiskWork(topics_max=2), asyncio.Event(), []

    async def piece(name: str) -> None:
        await go_on.wait()
        done.append(name)

    for name in ("a", "b", "a"):
        work.begin(name, piece(name))
        await work.room()
    assert work.statistics() == {"topics": 2, "topics_max": 2}
    work.begin("c", piece("c"))
    waiting = asyncio.create_task(work.room())
    await asyncio.sleep(0)
    assert work.statistics()["topics"] == 3
    assert not waiting.done(), "beyond the bound"
    go_on.set()
    await waiting
    await work.all_ended()
    assert work.statistics()["topics"] == 0
    assert sorted(done) == ["a", "a", "b", "c"]


def test_a_client_faster_than_the_disk_waits_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients faster than the disk have to wait.

    Topics used to be created as fast as requested, however many of their files were missing.
    """
    monkeypatch.setattr(disk_work.DiskWork.__init__, "__defaults__", (3,))

    async def work(broker: Broker) -> None:
        disk = asyncio.Event()
        replicas = broker.catalog._replicas
        run = replicas._run

        async def slowly(job: Callable[[], None]) -> None:
            await disk.wait()
            await run(job)

        replicas._run = slowly  # type: ignore[method-assign]

        async def ask(count: int) -> None:
            for number in range(count):
                await broker.catalog.create(f"t{number}", 1, {})

        def topics_at_work() -> float:
            return broker.metrics.values("disk-work")["topics"]

        asking = asyncio.create_task(ask(20))
        await until(lambda: topics_at_work() == 4)
        with pytest.raises(KafkaError):  # others are answered what needs nothing of the disk
            await broker.catalog.add(new_topic("t0", 1, {}), validate_only=True)
        assert len(broker.catalog.topics) == 4
        assert not asking.done()
        disk.set()
        await asking
        await broker.catalog.disk_work_ended()
        assert topics_at_work() == 0
        assert len(broker.catalog.topics) == 20

    run(work, tmp_path)


def run(work: Callable[[Broker], Awaitable[None]], folder: Path) -> None:
    async def live() -> None:
        broker = Broker(BrokerConfig.of({"log.dirs": str(folder)}))
        broker.endpoints.append(Endpoint("PLAINTEXT", "127.0.0.1", 9092))
        await broker.start()
        BrokerMetrics(broker).add_to(broker.metrics)
        try:
            await work(broker)
        finally:
            await broker.stop()

    asyncio.run(live())


async def test_work_that_a_stopping_broker_takes_no_more_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "logd.broker")
    pool, work = JobPool(1), DiskWork()
    pool.shutdown()

    async def piece() -> None:
        await run_job(pool, lambda: None)

    work.begin("orders", piece())
    await work.all_ended()
    (record,) = caplog.records
    assert record.levelname == "INFO"
    assert "files of topic orders: the next start finishes" in record.getMessage()
