"""Windows through restarts: what an application with state on disk, or restored from changelogs, goes on to
say is what the test driver says of the same records in one go.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from logd.client import Admin, BatchProducer, Client, TopicPartition
from streams import KafkaStreams, SessionWindows, SlidingWindows, StreamsBuilder, TimeWindows, Topology
from streams.serdes import SessionWindowed, String, TimeWindowed
from streams.testing import TopologyTestDriver
from tests.streams.counting import read_last
from tests.streams.running import NewName, make_topics, run, start
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
    """A few keys, times that go up by and by, with disorder, beyond several segments."""
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


async def told(bootstrap: str, name: str) -> dict[str, dict[Any, int]]:
    key = String()
    serdes = {
        "time": TimeWindowed(key, SIZE),
        "session": SessionWindowed(key),
        "slide": TimeWindowed(key, SIZE),
    }
    found: dict[str, dict[Any, int]] = {}
    for kind, serde in serdes.items():
        rows = await read_last(bootstrap, f"{name}-{kind}", partitions=1)
        found[kind] = {serde.deserialize(key): int.from_bytes(value or b"") for key, value in rows.items()}
        async with Client(bootstrap) as client:
            tp = TopicPartition(f"{name}-{kind}", 0)
            ends = await Admin(client).list_offsets({tp: "latest"})
            assert ends[tp].offset == len(rows), f"{kind}: once each"
    return found


@deep
@pytest.mark.parametrize("disk", ["kept", "lost"])
def test_windows_go_on_after_a_restart(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, disk: str
) -> None:
    name, events = new_name("windows"), make_events()

    async def case() -> None:
        topics = {f"{name}-{each}": 1 for each in ("in", "time", "session", "slide")}
        await make_topics(logd.bootstrap, **topics)
        for begin in range(0, EVENTS, EVENTS // 3):
            await produce(logd.bootstrap, f"{name}-in", events[begin : begin + EVENTS // 3])
            settings = {"emit_interval_ms_kstreams_windowed_aggregation": 0}
            async with start(topology(name), logd.bootstrap, name, tmp_path, **settings) as app:
                await app.wait_until_caught_up()
                found = contents(app)
            if disk == "lost":
                shutil.rmtree(tmp_path)
        stores, emitted = in_one_go(name, events)
        assert found == stores
        assert await told(logd.bootstrap, name) == emitted

    run(case)
