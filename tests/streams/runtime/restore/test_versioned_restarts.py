"""A versioned table, a join with it that waits, and a versioned aggregate, on a broker, over failures: what
comes out, and what the stores have in the end, is what one uninterrupted run gives.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, TopicPartition
from streams import KafkaStreams, Materialized, StateRestoreListener, StreamsBuilder, StreamsError, Topology
from streams.testing import TopologyTestDriver
from tests.streams.support.running import NewName, make_topics, start
from tests.support import depth
from tests.support.logd_process import LogdProcess

Event = tuple[str, str | None, int]
"""Key, value and timestamp; what begins with `t` is an update of the table, `t-` a deletion."""
EVENTS, KEYS = 1200, ("a", "b", "c", "ab")
PART = EVENTS // 4
BUFFER = "waiting-Buffer"


def make_events(seed: int) -> list[Event]:
    chance, events = random.Random(seed), list[Event]()
    for number in range(EVENTS):
        value = chance.choice(["t", "t", "s", "s", "s", "t-"])
        timestamp = max(number * 3 - chance.choice([0, 0, 1, 10, 40, 90, 150]), 0)
        events.append((chance.choice(KEYS), value if value == "t-" else f"{value}{number}", timestamp))
    for begin in range(PART, EVENTS, PART):  # what is late must be so for who has just begun, too
        events[begin : begin + 2] = [("a", f"{each}{begin}", begin * 3 - 140) for each in "ts"]
    return events


def topology(name: str, look: Callable[[str], object]) -> Topology:
    """``look`` is called with each value of the stream."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    options: dict[str, Any] = {"history_retention": timedelta(milliseconds=120)}
    events = builder.stream(f"{name}-in")
    updates = events.filter(lambda k, v: v.startswith("t"))
    table = updates.map_values(lambda v: None if v == "t-" else v).to_table(
        value_serde=str, store=Materialized(name="past", **options)
    )
    stream = events.filter(lambda k, v: v.startswith("s")).peek(lambda k, v: look(v))
    stream.left_join(table, lambda v, t: f"{v} {t}", grace=100, name="waiting", value_serde=str).to(
        f"{name}-out", value_serde=str
    )
    stream.group_by_key(value_serde=str).count(store=Materialized(name="counts", **options))
    return builder.build()


def in_one_go(name: str, events: list[Event]) -> tuple[list[tuple[str, str, int]], dict[str, Any]]:
    with TopologyTestDriver(topology(name, id)) as driver:
        for key, value, timestamp in events:
            driver.input_topic(f"{name}-in").pipe_input(key, value, timestamp)
        output = driver.output_topic(f"{name}-out").read_all()
        return [(each.key, each.value, each.timestamp) for each in output], contents(driver.store)


def contents(store: Callable[[str], Any]) -> dict[str, Any]:
    """Return the contents of the stores."""
    versions = {name: {key: list(store(name).versions(key)) for key in KEYS} for name in ("past", "counts")}
    return {**versions, BUFFER: [(key[:-4], update.new) for key, update in store(BUFFER).all()]}


async def produce(bootstrap: str, topic: str, events: list[Event]) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        rows: Any = [(time, key.encode(), (value or "").encode(), ()) for key, value, time in events]
        await (await producer.send(topic, 0, rows))


async def output_of(bootstrap: str, topic: str) -> list[Any]:
    async with Client(bootstrap) as client:
        tp = TopicPartition(topic, 0)
        end = (await Admin(client).list_offsets({tp: "latest"}, isolation_level="read_committed"))[tp].offset
        records: list[Any] = []
        async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
            fetcher.assign({tp: 0})
            position = 0
            while position < end:
                for fetched in await fetcher.fetch():
                    position = fetched.next_offset
                    for _, timestamp, key, value, _ in fetched.records():
                        records.append(((key or b"").decode(), (value or b"").decode(), timestamp))
        return records


async def changelog_ends(bootstrap: str, name: str) -> list[int]:
    async with Client(bootstrap) as client:
        tps = [TopicPartition(f"{name}-{store}-changelog", 0) for store in ("past", "counts", BUFFER)]
        listed = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
    return [each.offset for each in listed.values()]


class Restored(StateRestoreListener):
    """How many records each store took."""

    def __init__(self) -> None:
        self.totals: list[int] = []

    def on_restore_end(self, tp: TopicPartition, store: str, total_restored: int) -> None:
        self.totals.append(total_restored)


def crash_at(number: int) -> Callable[[str], None]:
    """Return a function that raises once, at the event of this number."""
    left = [number]

    def look(value: str) -> None:
        if left and int(value[1:]) >= left[0]:
            left.clear()
            raise RuntimeError(value)

    return look


@depth.deep
@pytest.mark.parametrize("disk", ["old", "gone"])
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
async def test_versions_and_what_waits_outlive_failures(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str, disk: str
) -> None:
    name, events = new_name("versions"), make_events(5)
    expected, stores = in_one_go(name, events)
    restored = Restored()

    def application(number: int, look: Callable[[str], object]) -> KafkaStreams:
        state = tmp_path / str(number if disk == "gone" else 0)
        settings: dict[str, Any] = {"processing_guarantee": guarantee, "commit_interval_ms": 5}
        app = start(topology(name, look), logd.bootstrap, name, state, **settings)
        app.add_restore_listener(restored)
        return app

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    for number, begin in enumerate(range(0, EVENTS, PART)):
        if disk == "old" and number == 2:
            shutil.copytree(tmp_path / "0", tmp_path / "half")
        if disk == "old" and number == 3:  # as after a kill: RocksDB has what it had flushed
            shutil.rmtree(tmp_path / "0")
            (tmp_path / "half").rename(tmp_path / "0")
            restored.totals.clear()
        await produce(logd.bootstrap, f"{name}-in", events[begin : begin + PART])
        if number % 2:
            with pytest.raises(StreamsError, match="RuntimeError"):
                async with application(2 * number, crash_at(begin + 120)) as app:
                    await app.wait_until_caught_up()
        async with application(2 * number + 1, id) as app:
            await app.wait_until_caught_up()
            contents_now = contents(lambda each: app.stores(each)[0])
    assert contents_now == stores
    come = await output_of(logd.bootstrap, f"{name}-out")
    if guarantee == "exactly_once_v2":
        assert come == expected
    else:
        assert set(come) == set(expected)
    whole = sum(await changelog_ends(logd.bootstrap, name))
    # Three stores at each start. One that ended before a commit restores what the start before it restored.
    starts = [sum(restored.totals[n : n + 3]) for n in range(0, len(restored.totals), 3)]
    assert whole / 2 < starts[-1] if disk == "gone" else 0 < max(starts) < whole / 2, (
        "the tail only, or all of it",
        starts,
        whole,
    )
