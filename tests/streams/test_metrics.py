"""What an application tells of itself by Kafka Streams' names, beside what it did."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from logd.client import Fetched
from logd.metrics.exposition import exposition
from logd.metrics.metrics import Metrics
from streams.runtime.restore import StoreRestore
from tests.streams.counting import PARTITIONS, application, make_events, prepare
from tests.streams.running import copy, make_topics, produce, run, until
from tests.support.depth import deep
from tests.support.documented_metrics import check_documented
from tests.support.logd_process import LogdProcess

EVENTS = make_events(400, keys=40)
KEYS = len({key for key, _, _ in EVENTS})


def test_numbers_are_those_of_what_was_done(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("told")

    async def case() -> None:
        await prepare(logd.bootstrap, prefix, EVENTS)
        metrics = Metrics()
        async with application(logd.bootstrap, prefix, str(tmp_path), registry=metrics) as app:
            assert app.registry is metrics
            await app.wait_until_caught_up()
            assert metrics.values("stream-metrics") == {
                "client-state": 2,
                "alive-stream-threads": 1,
                "failed-stream-threads": 0,
            }
            thread = metrics.values("stream-thread-metrics", thread_id=f"{prefix}-app-StreamThread-1")
            assert thread["process-total"] == len(EVENTS) + KEYS
            assert thread["task-created-total"] - thread["task-closed-total"] == PARTITIONS
            assert thread["commit-total"] > 0 < thread["poll-total"]
            tasks = metrics.values("stream-task-metrics")
            assert tasks["process-total"] == thread["process-total"]
            assert tasks["active-buffer-count"] == tasks["input-buffer-bytes-total"] == 0
            assert tasks["restore-total"] == 0
            nodes = metrics.values("stream-processor-node-metrics")
            assert nodes["process-total"] > len(EVENTS) + KEYS, "sinks count, too"
            totals = metrics.values("stream-state-metrics", rocksdb_state_id="totals")
            hours = metrics.values("stream-state-metrics", rocksdb_window_state_id="hours")
            assert hours["estimate-num-keys"] >= KEYS
            assert totals["estimate-num-keys"] >= KEYS
            assert metrics.values("consumer-coordinator-metrics")["assigned-partitions"] == 2 * PARTITIONS
            assert metrics.values("producer-metrics")["record-send-total"] > 0
            check_documented(
                metrics,
                "stream-metrics",
                "stream-thread-metrics",
                "stream-state-updater-metrics",
                "stream-task-metrics",
                "stream-processor-node-metrics",
                "stream-state-metrics",
                "streams-queues",
                "input-buffer",
            )
            assert b"kafka_streams_stream_thread_metrics_process_total{" in exposition(metrics)
        assert not list(metrics.read()), "it is closed"

    run(case)


def test_what_waits_is_told_and_what_is_dropped(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    name = new_name("waits")

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        app = copy(logd.bootstrap, name, tmp_path, deserialization_exception_handler=lambda _: "continue")
        async with app:
            tell = app.registry.values
            await until(lambda: tell("stream-thread-metrics").get("task-created-total") == 1)
            # Seven bytes are no number.
            await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (b"b", bytes(7)))
            await app.wait_until_caught_up()
            told = tell("stream-task-metrics", task_id="0_0")
            assert (told["process-total"], told["dropped-records-total"]) == (1, 1)
        assert app.registry.values("stream-task-metrics") == {}

    run(case)


@deep
def test_how_far_a_restore_is(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = new_name("restores")
    seen, apply = threading.Event(), StoreRestore.apply

    def apply_when_seen(restore: StoreRestore, fetched: Fetched) -> None:
        seen.wait(60)
        apply(restore, fetched)

    async def case() -> None:
        await prepare(logd.bootstrap, prefix, EVENTS)
        async with application(logd.bootstrap, prefix, str(tmp_path / "1")) as app:
            await app.wait_until_caught_up()
        monkeypatch.setattr(StoreRestore, "apply", apply_when_seen)
        async with application(logd.bootstrap, prefix, str(tmp_path / "2")) as app:
            tell = app.registry.values

            def remaining() -> float:
                return tell("stream-task-metrics").get("restore-remaining-records-total", 0)

            try:
                await until(lambda: remaining() > 0)
                await until(
                    lambda: tell("stream-state-updater-metrics")["active-restoring-tasks"] == PARTITIONS
                )
                await until(lambda: tell("streams-queues")["restorer_jobs"] > 0)
                assert tell("streams-queues")["oldest_restorer_job_seconds"] > 0
            finally:
                seen.set()
            await app.wait_until_caught_up()
            assert remaining() == 0
            assert tell("stream-state-updater-metrics")["active-restoring-tasks"] == 0
            await until(lambda: tell("streams-queues")["restorer_jobs"] == 0)
            assert tell("stream-task-metrics")["restore-total"] >= KEYS

    run(case)
