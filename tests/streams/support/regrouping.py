"""A topology with a repartition topic, its input, and what must come out; also a program, to be killed.

    python regrouping.py BOOTSTRAP PREFIX STATE_DIR [SETTING=MS ...]

prints ``record`` for every record it takes from its input, and works until it is killed or told to end.

A killed instance sends records to the repartition topic again. The operators after the topic give the same
result if a record comes twice: they collect the distinct values. Those before the topic count.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter, defaultdict
from typing import Any

from kafka_client import Admin, BatchProducer, Client, NewTopic
from streams import KafkaStreams, StreamsBuilder, Topology
from streams.serdes import Json, Long
from tests.streams.support.counting import read_last

PARTITIONS = 4
GROUPS = 50

Event = tuple[str, int]


def topology(prefix: str, *, tells: bool) -> Topology:
    """Events are counted per key, and their values gathered per remainder."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    events = builder.stream(f"{prefix}-events").peek(
        lambda *_: print("record", flush=True) if tells else None
    )
    events.group_by_key().count(store="counts").to_stream().to(f"{prefix}-counts")

    def add(group: str, value: int, group_so_far: dict[str, Any]) -> dict[str, Any]:
        return {"seen": sorted({*group_so_far["seen"], value})}

    groups = events.group_by(lambda key, value: f"group-{value % GROUPS}")
    values_of_group = groups.aggregate(lambda: {"seen": []}, add, value_serde=dict, store="groups")
    values_of_group.to_stream().to(f"{prefix}-groups")
    return builder.build()


def application(bootstrap: str, prefix: str, state_dir: str, *, tells: bool, **settings: int) -> KafkaStreams:
    return KafkaStreams(
        topology(prefix, tells=tells),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=state_dir,
        **{
            "commit_interval_ms": 50,
            "poll_ms": 20,
            "session_timeout_ms": 6000,
            "heartbeat_interval_ms": 200,
            **settings,
        },
    )


def make_events(count: int, keys: int = 100) -> list[Event]:
    return [(f"key-{number * number % keys}", number) for number in range(count)]


def expected(events: list[Event]) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Computed directly: records per key, values per group."""
    groups: defaultdict[str, list[int]] = defaultdict(list)
    for _, value in events:
        groups[f"group-{value % GROUPS}"].append(value)
    return dict(Counter(key for key, _ in events)), dict(groups)


async def written(bootstrap: str, prefix: str) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Return the last value of every key in the output topics, in the form of `expected`."""
    counts = await read_last(bootstrap, f"{prefix}-counts", partitions=PARTITIONS)
    groups = await read_last(bootstrap, f"{prefix}-groups", partitions=PARTITIONS)
    return (
        {key.decode(): Long().deserialize(value or b"") for key, value in counts.items()},
        {key.decode(): Json(dict).deserialize(value or b"")["seen"] for key, value in groups.items()},
    )


async def prepare(bootstrap: str, prefix: str) -> None:
    async with Client(bootstrap) as client:
        topics = [f"{prefix}-{each}" for each in ("events", "counts", "groups")]
        await Admin(client).create_topics([NewTopic(topic, PARTITIONS, 1) for topic in topics])


async def send(bootstrap: str, prefix: str, events: list[Event]) -> None:
    topic = f"{prefix}-events"
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        partitions: defaultdict[int, list[Any]] = defaultdict(list)
        for key, value in events:
            partition = producer.partition_for(topic, key.encode(), PARTITIONS)
            partitions[partition].append((value, key.encode(), value.to_bytes(8, "big"), ()))
        sent = [await producer.send(topic, partition, records) for partition, records in partitions.items()]
        await asyncio.gather(*sent)


async def main(bootstrap: str, prefix: str, state_dir: str, *settings: str) -> None:
    options = {name: int(ms) for name, _, ms in (setting.partition("=") for setting in settings)}
    await application(bootstrap, prefix, state_dir, tells=True, **options).run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
