"""A topology of as-of joins, duplicates and best values, whose output is known; also a program to be killed.

    python -m tests.streams.support.matching BOOTSTRAP PREFIX STATE_DIR

prints ``running`` once its tasks run and works, exactly once, until it is killed. All that is joined comes of
one topic, so that the order of its records is given; each partition's output is what the test driver says.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter
from typing import Any

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from streams import KafkaStreams, State, StreamsBuilder, TimeWindows, Topology
from streams.testing import TopologyTestDriver

PARTITIONS = 2
OUTPUTS = ("nearest", "backward", "once", "best")
Event = tuple[str, int, int]
"""Key, number and timestamp. Even numbers are left records, odd ones right records."""
Told = list[Counter[tuple[bytes | None, bytes | None, int]]]
"""Key, value and timestamp of what each topic has."""


def is_even(key: str, number: int) -> bool:
    return number % 2 == 0


def pair(one: int, other: int | None) -> str:
    return f"{one} {other}"


def topology(prefix: str, *, pause: float = 0) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    events = builder.stream(f"{prefix}-in").peek(lambda key, number: time.sleep(pause) if pause else None)
    left, right = events.filter(is_even), events.filter_not(is_even)
    near = left.left_join_asof(right, pair, tolerance=300, direction="nearest", grace=500, store="near")
    near.to(f"{prefix}-nearest", value_serde=str)
    back = left.join_asof(right, pair, tolerance=900, store="back")
    back.to(f"{prefix}-backward", value_serde=str)
    events.deduplicate(lambda number: number % 7, within=400, store="seen").to(f"{prefix}-once")
    windowed = events.group_by_key().windowed_by(TimeWindows(1_000, grace=500))
    best = windowed.emit_strategy("on_window_close").top_n(3, by=lambda number: number % 100, store="best")
    best.to_stream().map_values(str).to(f"{prefix}-best", value_serde=str)
    return builder.build()


def make_events(count: int, *, seed: int) -> list[Event]:
    """Times go up by and by, with disorder, beyond several segments of the stores."""
    dice = random.Random(seed)
    return [
        (f"key-{dice.randrange(12)}", number, 20 * number + dice.randrange(800)) for number in range(count)
    ]


async def prepare(bootstrap: str, prefix: str, events: list[Event]) -> list[list[Any]]:
    """Create the topics and fill the input; its rows by partition."""
    rows: list[list[Any]] = [[] for _ in range(PARTITIONS)]
    async with Client(bootstrap) as client:
        topics = [f"{prefix}-{each}" for each in ("in", *OUTPUTS)]
        await Admin(client).create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
        async with BatchProducer(client) as producer:
            for key, number, timestamp in events:
                partition = producer.partition_for(f"{prefix}-in", key.encode(), PARTITIONS)
                rows[partition].append((timestamp, key.encode(), number.to_bytes(8, "big"), ()))
            for partition, each in enumerate(rows):
                await (await producer.send(f"{prefix}-in", partition, each))
    return rows


def expected(prefix: str, rows: list[list[Any]]) -> Told:
    """Return the test driver's output of all partitions."""
    counters: Told = [Counter() for _ in OUTPUTS]
    for partition in rows:
        with TopologyTestDriver(topology(prefix)) as driver:
            for timestamp, key, value, _ in partition:
                driver.pipe(f"{prefix}-in", key, value, timestamp)
            for output, counter in zip(OUTPUTS, counters, strict=True):
                counter.update((key, value, at) for at, key, value, _ in driver.take(f"{prefix}-{output}"))
    return counters


async def written(bootstrap: str, prefix: str) -> Told:
    """Return the output that readers of committed records get."""
    counters: Told = []
    async with Client(bootstrap) as client:
        for output in OUTPUTS:
            tps = [TopicPartition(f"{prefix}-{output}", number) for number in range(PARTITIONS)]
            ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
            counter: Counter[Any] = Counter()
            async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
                fetcher.assign(dict.fromkeys(tps, 0))
                while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
                    for fetched in await fetcher.fetch(timeout_ms=100):
                        counter.update((key, value, at) for _, at, key, value, _ in fetched.records())
            counters.append(counter)
    return counters


def application(bootstrap: str, prefix: str, state_dir: str, *, pause: float = 0) -> KafkaStreams:
    return KafkaStreams(
        topology(prefix, pause=pause),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=state_dir,
        processing_guarantee="exactly_once_v2",
        commit_interval_ms=20,
        poll_ms=20,
        session_timeout_ms=6000,
        group_instance_id="one",  # a restart need not wait for the killed one's session to end
        emit_interval_ms_kstreams_windowed_aggregation=0,
    )


async def main(bootstrap: str, prefix: str, state_dir: str) -> None:
    app = application(bootstrap, prefix, state_dir, pause=1e-4)
    app.add_state_listener(lambda new, old: print("running", flush=True) if new is State.RUNNING else None)
    await app.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
