"""The metrics that an application reports by Kafka Streams' names, compared with what it did."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchProducer, Client, Fetched
from kafka_client.metrics.exposition import exposition
from kafka_client.metrics.metrics import Metrics
from streams import Materialized, SessionWindows, StreamsBuilder, Suppressed, TimeWindows, Topology
from streams.runtime.restore.restore import StoreRestore
from tests.streams.support.counting import PARTITIONS, application, make_events, prepare
from tests.streams.support.running import copy, make_topics, produce, start
from tests.support.depth import deep
from tests.support.documented_metrics import check_documented
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

EVENTS = make_events(400, keys=40)
KEYS = len({key for key, _, _ in EVENTS})


async def produce_at(bootstrap: str, topic: str, rows: list[tuple[int, bytes, bytes]]) -> None:
    """Records by their times, in one batch."""
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        await (await producer.send(topic, 0, [(*row, ()) for row in rows]))


async def test_numbers_are_those_of_what_was_done(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    prefix = new_name("told")
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
        assert 0 < thread["process-ratio"] < 1 and 0 < thread["poll-ratio"] < 1
        assert 0 < thread["commit-ratio"] <= 1
        shares = [
            tell["active-process-ratio"]
            for id in range(PARTITIONS)
            if (tell := metrics.values("stream-task-metrics", task_id=f"0_{id}"))
        ]
        assert sum(shares) == pytest.approx(1) and min(shares) > 0
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
            "streams-queues",
            "input-buffer",
        )
        assert b"kafka_streams_stream_thread_metrics_process_total{" in exposition(metrics)
    assert not list(metrics.read()), "it is closed"


def of_all_kinds(name: str) -> Topology:
    """Stores of all kinds with names of their own, a source of two topics, and three sinks: of one topic, of
    another, and of one that is chosen.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    builder.table(f"{name}-b", store=Materialized(name="versions", history_retention=timedelta(hours=1)))
    source = builder.stream([f"{name}-in", f"{name}-a"], name="source")
    counts = source.group_by_key().windowed_by(TimeWindows(10, grace=0)).count(store="hours")
    suppressed = counts.suppress(Suppressed.until_window_closes(name="held"))
    suppressed.to_stream(lambda windowed, count: windowed.key).to(f"{name}-out", name="held-out")
    source.group_by_key().windowed_by(SessionWindows(10, grace=0)).count(store="sessions")
    source.group_by_key().reduce(max, store="largest")
    source.to(lambda key, value, context: f"{name}-{key}", name="chooser", key_serde=str, value_serde=int)
    return builder.build()


async def test_topics_and_what_is_held_back(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    name = new_name("topics")
    await make_topics(logd.bootstrap, **{f"{name}-{each}": 1 for each in ("in", "a", "b", "c", "out")})
    async with start(of_all_kinds(name), logd.bootstrap, name, tmp_path) as app:
        tell = app.registry.values
        # Two windows of "c" close before its last one, which is held back.
        rows = [(time, b"c", bytes(8)) for time in (0, 1, 11, 22)]
        await produce_at(logd.bootstrap, f"{name}-in", rows)
        await produce_at(logd.bootstrap, f"{name}-a", [(22, b"b", bytes(8))])
        await app.wait_until_caught_up()

        def topic(node: str, topic: str) -> dict[str, float]:
            return tell("stream-topic-metrics", processor_node_id=node, topic=f"{name}-{topic}")

        # A record of these is a length, five numbers of a byte, a key of one and a value of eight.
        assert topic("source", "in") == {"records-consumed-total": 4, "bytes-consumed-total": 4 * 16}
        assert topic("source", "a") == {"records-consumed-total": 1, "bytes-consumed-total": 16}
        await until(lambda: topic("chooser", "c").get("records-produced-total") == 4)
        # What "b" brought is chosen to go where the table reads, and comes back.
        assert topic("chooser", "b") == {"records-produced-total": 1}
        assert topic("held-out", "out") == {"records-produced-total": 2}
        suppression = tell("stream-state-metrics", in_memory_suppression_state_id="held-store")
        assert suppression["suppression-buffer-count-max"] == 2, "of c and of b"
        # A key with its window is 9 or 17 bytes.
        assert suppression["suppression-buffer-size-max"] > 2 * (8 + 9 + 8)
        latency = tell("stream-processor-node-metrics", processor_node_id="source")
        assert latency["record-e2e-latency-min"] <= latency["record-e2e-latency-avg"]
        assert latency["record-e2e-latency-max"] == pytest.approx(time.time() * 1000, rel=1e-3)
        check_documented(app.registry, "stream-topic-metrics", "stream-state-metrics")


async def test_paused_standbys(logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]) -> None:
    prefix = new_name("paused")
    await prepare(logd.bootstrap, prefix, EVENTS[:10])
    settings: dict[str, Any] = {
        "num_standby_replicas": 1,
        "group_instance_id": None,
        "heartbeat_interval_ms": 50,
    }
    async with (
        application(logd.bootstrap, prefix, str(tmp_path / "1"), **settings) as app,
        application(logd.bootstrap, prefix, str(tmp_path / "2"), **settings),
    ):
        tell = app.registry.values

        def standbys() -> list[float]:
            metrics_of_group = tell("stream-state-updater-metrics")
            return [metrics_of_group[f"standby-{each}-tasks"] for each in ("updating", "paused")]

        await until(lambda: standbys() == [PARTITIONS // 2, 0])
        app.pause()
        assert standbys() == [0, PARTITIONS // 2]
        app.resume()
        assert standbys() == [PARTITIONS // 2, 0]


async def test_what_waits_is_told_and_what_is_dropped(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str]
) -> None:
    name = new_name("waits")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    app = copy(logd.bootstrap, name, tmp_path, deserialization_exception_handler=lambda _: "continue")
    async with app:
        tell = app.registry.values
        await until(lambda: tell("stream-thread-metrics").get("task-created-total") == 1)
        # Seven bytes are no number.
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (b"b", bytes(7)))
        await app.wait_until_caught_up()
        metrics_of_group = tell("stream-task-metrics", task_id="0_0")
        assert (metrics_of_group["process-total"], metrics_of_group["dropped-records-total"]) == (1, 1)
    assert app.registry.values("stream-task-metrics") == {}


@deep
async def test_how_far_a_restore_is(
    logd: LogdProcess, tmp_path: Path, new_name: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = new_name("restores")
    measured, apply = threading.Event(), StoreRestore.apply

    def apply_when_seen(restore: StoreRestore, fetched: Fetched) -> None:
        measured.wait(60)
        apply(restore, fetched)

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
            await until(lambda: tell("stream-state-updater-metrics")["active-restoring-tasks"] == PARTITIONS)
            await until(lambda: tell("streams-queues")["restorer_jobs"] > 0)
            assert tell("streams-queues")["oldest_restorer_job_seconds"] > 0
        finally:
            measured.set()
        await app.wait_until_caught_up()
        assert remaining() == 0
        assert tell("stream-state-updater-metrics")["active-restoring-tasks"] == 0
        await until(lambda: tell("streams-queues")["restorer_jobs"] == 0)
        assert tell("stream-task-metrics")["restore-total"] >= KEYS
