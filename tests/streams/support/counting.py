"""A topology with three stores per task, its input, and what must come out; also a program to be killed.

    python -m tests.streams.support.counting BOOTSTRAP PREFIX STATE_DIR [SETTING=MS ...]

prints ``running`` once its tasks run and works until it is killed, or kills itself (see `dying`).
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import Counter, defaultdict
from typing import Any

from kafka_client import Admin, BatchProducer, Client, NewTopic, TopicPartition
from kafka_client import BatchFetcher as Fetcher
from streams import KafkaStreams, State, StreamsBuilder, TimeWindows, Topology, Windowed
from tests.streams.support import dying

PARTITIONS = 2
HOUR_MS = 3_600_000
COMMITS_IN_SEVERAL_BATCHES = 8_000

Event = tuple[str, int, int]
"""Key, value, timestamp."""


def topology(prefix: str, *, pause: float = 0) -> Topology:
    """Events are joined with a table, counted per key and hour, and summed per key."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    names = builder.table(f"{prefix}-names", value_serde=str)
    events = builder.stream(f"{prefix}-events").peek(lambda key, value: time.sleep(pause) if pause else None)
    named = events.join(names, lambda value, name: {"name": name, "value": value})
    hours = named.group_by_key(value_serde=dict).windowed_by(TimeWindows(HOUR_MS, grace=1000 * HOUR_MS))
    hours.count(store="hours").to_stream().to(f"{prefix}-hours")

    def add(key: str, value: dict[str, Any], total: dict[str, Any]) -> dict[str, Any]:
        total["sum"] += value["value"]
        total["seen"] = [*total["seen"][-3:], value["value"]]
        return total

    nothing = lambda: {"sum": 0, "seen": []}  # noqa: E731
    totals = named.group_by_key().aggregate(nothing, add, value_serde=dict, store="totals")
    totals.to_stream().to(f"{prefix}-totals")
    return builder.build()


def make_events(count: int, *, keys: int = 300, seed: int = 1) -> list[Event]:
    """Events in no order of time."""
    chance = random.Random(seed)
    return [
        (f"key-{chance.randrange(keys)}", chance.randrange(1000), chance.randrange(200) * HOUR_MS + 17)
        for _ in range(count)
    ]


def expected(events: list[Event]) -> tuple[Counter[tuple[str, int]], dict[str, dict[str, Any]]]:
    """Computed directly: records per key and hour, totals per key."""
    hours: Counter[tuple[str, int]] = Counter()
    values: defaultdict[str, list[int]] = defaultdict(list)
    for key, value, timestamp in events:
        hours[key, timestamp - timestamp % HOUR_MS] += 1
        values[key].append(value)
    return hours, {key: {"sum": sum(each), "seen": each[-4:]} for key, each in values.items()}


async def prepare(bootstrap: str, prefix: str, events: list[Event]) -> None:
    """Create the topics and fill them; names first."""
    async with Client(bootstrap) as client:
        topics = [f"{prefix}-{each}" for each in ("names", "events", "hours", "totals")]
        await Admin(client).create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])
        names = [(key, key.upper().encode(), 0) for key in dict.fromkeys(key for key, _, _ in events)]
        await _produce(client, topics[0], names)
        await _produce(
            client, topics[1], [(key, value.to_bytes(8, "big"), time) for key, value, time in events]
        )


async def _produce(client: Client, topic: str, rows: list[tuple[str, bytes, int]]) -> None:
    async with BatchProducer(client) as producer:
        partitions: defaultdict[int, list[Any]] = defaultdict(list)
        for key, value, timestamp in rows:
            raw = key.encode()
            partitions[producer.partition_for(topic, raw, PARTITIONS)].append((timestamp, raw, value, ()))
        sent = [await producer.send(topic, partition, records) for partition, records in partitions.items()]
        await producer.flush()
        await asyncio.gather(*sent)


async def read_last(bootstrap: str, topic: str, *, partitions: int = PARTITIONS) -> dict[bytes, bytes | None]:
    """Return the last value per key of a topic."""
    return dict(await read_all(bootstrap, topic, partitions=partitions))


async def read_all(
    bootstrap: str, topic: str, *, partitions: int = PARTITIONS
) -> list[tuple[bytes, bytes | None]]:
    """Keys and values of what is committed, in order by partition."""
    async with Client(bootstrap) as client:
        tps = [TopicPartition(topic, partition) for partition in range(partitions)]
        ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
        waiting = {tp for tp in tps if ends[tp].offset > 0}
        records: list[tuple[bytes, bytes | None]] = []
        async with Fetcher(client, isolation_level="read_committed") as fetcher:
            fetcher.assign(dict.fromkeys(waiting, 0))
            while waiting:
                for fetched in await fetcher.fetch():
                    for _, _, key, value, _ in fetched.records():
                        assert key is not None
                        records.append((key, value))
                    if fetched.next_offset >= ends[fetched.tp].offset:
                        waiting.discard(fetched.tp)
        return records


def application(
    bootstrap: str, prefix: str, state_dir: str, *, pause: float = 0, **settings: Any
) -> KafkaStreams:
    """Commits often, and in several batches."""
    return KafkaStreams(
        topology(prefix, pause=pause),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=state_dir,
        commit_interval_ms=settings.pop("commit_interval_ms", 40),
        poll_ms=20,
        max_request_size=COMMITS_IN_SEVERAL_BATCHES,
        session_timeout_ms=6000,
        group_instance_id=settings.pop(
            "group_instance_id", "one"
        ),  # a restart need not wait for the killed one's session to end
        **settings,
    )


def contents(app: KafkaStreams) -> tuple[dict[tuple[str, int], int], dict[str, dict[str, Any]]]:
    """Return the contents of an application's stores, in the form of `expected`."""
    hours: dict[tuple[str, int], int] = {}
    totals: dict[str, dict[str, Any]] = {}
    for store in app.stores("hours"):
        windowed: Windowed[str]
        for windowed, count in store.all():  # type: ignore[attr-defined]
            hours[windowed.key, windowed.window.start] = count
    for store in app.stores("totals"):
        totals.update(store.all())  # type: ignore[attr-defined]
    return hours, totals


async def main(bootstrap: str, prefix: str, state_dir: str, *settings: str) -> None:
    options = {name: int(ms) for name, _, ms in (setting.partition("=") for setting in settings)}
    dying.die()
    app = application(bootstrap, prefix, state_dir, pause=5e-5, **options)
    app.add_state_listener(lambda new, old: print("running", flush=True) if new is State.RUNNING else None)
    await app.run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
