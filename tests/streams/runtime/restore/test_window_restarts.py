"""Windows through restarts. An application with state on disk, or restored from changelogs, writes
what the test driver writes in one run over the same records.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchProducer, Client, TopicPartition
from streams import (
    KafkaStreams,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    TimeWindows,
    Topology,
)
from streams.serdes import SessionWindowed, String, TimeWindowed
from streams.testing import TopologyTestDriver
from tests.streams.support.counting import read_last
from tests.streams.support.running import NewName, make_topics, run, start
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

EVENTS = 600
SIZE = 1_000
STORES = ("sessions", "sliding")
Event = tuple[bytes, int]


def topology(name: str) -> Topology:
    """Sessions and sliding windows in stores, and three kinds of windows that are told when they close."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    grouped = builder.stream(f"{name}-in").group_by_key()
    grace = 3 * SIZE
    grouped.windowed_by(SessionWindows(SIZE, grace=grace)).count(store="sessions")
    grouped.windowed_by(SlidingWindows(SIZE, grace=grace)).count(store="sliding")
    kinds: dict[str, Any] = {
        "time": TimeWindows(SIZE, advance=SIZE // 2, grace=grace),
        "session": SessionWindows(SIZE, grace=grace),
        "slide": SlidingWindows(SIZE, grace=grace),
    }
    for kind, windows in kinds.items():
        closed: Any = grouped.windowed_by(windows, emit_strategy="on_window_close")
        closed.count(store=f"{kind}-closed").to_stream().to(f"{name}-{kind}")
    return builder.build()


def make_events() -> list[Event]:
    """Return events of a few keys. Their times increase, with disorder, over several segments."""
    dice = random.Random(5)
    return [
        (b"%d" % dice.randrange(8), SIZE + 400 * number + dice.randrange(3 * SIZE))
        for number in range(EVENTS)
    ]


async def produce(bootstrap: str, topic: str, events: list[Event]) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        rows: Any = [(timestamp, key, b"", ()) for key, timestamp in events]
        await (await producer.send(topic, 0, rows))


def in_one_go(name: str, events: list[Event]) -> tuple[list[Any], dict[str, dict[Any, int]]]:
    """Stores' contents, and what each topic has, by the test driver."""
    with TopologyTestDriver(topology(name)) as driver:
        for key, timestamp in events:
            driver.pipe(f"{name}-in", key, b"", timestamp)
        stores = [dict(driver.store(store).all()) for store in STORES]  # type: ignore[attr-defined]
        topics: dict[str, dict[Any, int]] = {}
        for kind in ("time", "session", "slide"):
            rows = driver.output_topic(f"{name}-{kind}").read_key_values()
            assert len(dict(rows)) == len(rows), "once each"
            topics[kind] = dict(rows)
        return stores, topics


def contents(app: KafkaStreams) -> list[Any]:
    return [dict(app.stores(store)[0].all()) for store in STORES]  # type: ignore[attr-defined]


async def output_of(bootstrap: str, name: str) -> dict[str, dict[Any, int]]:
    key = String()
    serdes = {
        "time": TimeWindowed(key, SIZE),
        "session": SessionWindowed(key),
        "slide": TimeWindowed(key, SIZE),
    }
    results: dict[str, dict[Any, int]] = {}
    for kind, serde in serdes.items():
        rows = await read_last(bootstrap, f"{name}-{kind}", partitions=1)
        results[kind] = {serde.deserialize(key): int.from_bytes(value or b"") for key, value in rows.items()}
        async with Client(bootstrap) as client:
            tp = TopicPartition(f"{name}-{kind}", 0)
            ends = await Admin(client).list_offsets({tp: "latest"})
            assert ends[tp].offset == len(rows), f"{kind}: once each"
    return results


@deep
@pytest.mark.parametrize("disk", ["kept", "lost"])
async def test_windows_go_on_after_a_restart(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, disk: str
) -> None:
    name, events = new_name("windows"), make_events()
    topics = {f"{name}-{each}": 1 for each in ("in", "time", "session", "slide")}
    await make_topics(logd.bootstrap, **topics)
    for begin in range(0, EVENTS, EVENTS // 3):
        await produce(logd.bootstrap, f"{name}-in", events[begin : begin + EVENTS // 3])
        settings = {"emit_interval_ms_kstreams_windowed_aggregation": 0}
        async with start(topology(name), logd.bootstrap, name, tmp_path, **settings) as app:
            await app.wait_until_caught_up()
            restored = contents(app)
        if disk == "lost":
            shutil.rmtree(tmp_path)
    stores, emitted = in_one_go(name, events)
    assert restored == stores
    assert await output_of(logd.bootstrap, name) == emitted


RETENTION = 100
JOINED, COGROUPED = "joined", "cogrouped"


def past_retention(name: str, kind: str, *, cached: bool) -> Topology:
    """Windows of a millisecond of two kinds of records in one topic, each with a stream time of its own."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    both = builder.stream(f"{name}-in")
    ones, others = (both.filter(lambda k, v, letter=letter: v[0] == letter).group_by_key() for letter in "ab")

    def store_of(store: str) -> Materialized:
        return Materialized(name=store, caching=cached, retention=RETENTION)

    windows = TimeWindows(1)
    table: Any
    if kind == COGROUPED:
        together: Any = ones.cogroup(lambda k, v, so_far: so_far + v).cogroup(
            others, lambda k, v, so_far: so_far + v
        )
        table = together.windowed_by(windows).aggregate(str, value_serde=str, store=store_of("both"))
    else:
        tables: Any = [
            each.windowed_by(windows).reduce(lambda x, y: x + y, store=store_of(f"table-{number}"))
            for number, each in enumerate((ones, others))
        ]
        table = tables[0].left_join(tables[1], lambda x, y: f"{x}%{y}")
    table.to_stream(key=lambda window, _: f"{window.key}@{window.window.start}").to(f"{name}-out")
    return builder.build()


@pytest.mark.parametrize("disk", ["kept", "lost"])
@pytest.mark.parametrize("kind", [JOINED, COGROUPED])
@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("newest", [RETENTION - 2, RETENTION - 1, RETENTION, 1_000_000])
def test_what_is_past_retention_is_not_found_before_nor_after_a_restart(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, kind: str, disk: str, newest: int, cached: bool
) -> None:
    """A window is past retention once another one starts `retention` later, in memory and on disk. If the
    store is cached, Kafka Streams still finds it in the cache, and ours until its segment is deleted.
    """
    name = new_name("retention")
    events = [(b"k", b"b1", 0), (b"k", b"b2", newest), (b"k", b"a1", 0)]
    is_retained = newest < (RETENTION + 1 if cached else RETENTION)
    expected_value = {
        JOINED: "a1%b1" if is_retained else "a1%None",
        COGROUPED: "b1a1" if is_retained else "a1",
    }[kind]

    with TopologyTestDriver(past_retention(name, kind, cached=cached)) as driver:
        for key, value, time in events:
            driver.pipe(f"{name}-in", key, value, time)
        assert driver.output_topic(f"{name}-out").read_key_values()[-1] == ("k@0", expected_value)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        for part in (events[:2], events[2:]):
            async with Client(logd.bootstrap) as client, BatchProducer(client) as producer:
                rows: Any = [(time, key, value, ()) for key, value, time in part]
                await (await producer.send(f"{name}-in", 0, rows))
            topology = past_retention(name, kind, cached=cached)
            async with start(topology, logd.bootstrap, name, tmp_path) as app:
                await app.wait_until_caught_up()
            if disk == "lost":
                shutil.rmtree(tmp_path)
        rows_by_key = await read_last(logd.bootstrap, f"{name}-out", partitions=1)
        assert rows_by_key[b"k@0"] == expected_value.encode()

    run(case)
