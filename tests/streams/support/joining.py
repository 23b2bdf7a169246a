"""A topology of joins, its input, and what must come out of it; also a program, to be killed (see `dying`).

python -m tests.streams.support.joining BOOTSTRAP PREFIX STATE_DIR
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from streams import JoinWindows, KafkaStreams, StreamsBuilder, Topology
from streams.serdes import Json
from tests.streams.support import dying

PARTITIONS = {"left": 2, "right": 2, "orders": 2, "customers": 3, "pairs": 2, "bought": 2}
WINDOW = 50
GRACE = 10_000
END = 1_000_000
KEYS = [f"k{number}" for number in range(30)]


class Event(NamedTuple):
    """A record of `left` or `right`; the foreign table's key is in the value."""

    topic: str
    key: str
    number: int
    timestamp: int


def topology(prefix: str) -> Topology:
    """Streams are rekeyed by their values and joined; orders are joined with their customers."""
    builder = StreamsBuilder(key_serde=str, value_serde=list)
    left, right = (builder.stream(f"{prefix}-{side}") for side in ("left", "right"))
    left, right = (side.select_key(lambda key, value: value[0]) for side in (left, right))
    windows = JoinWindows.of(WINDOW, grace=GRACE)
    pairs = left.outer_join(right, lambda one, other: [one and one[1], other and other[1]], windows=windows)
    pairs.to(f"{prefix}-pairs")
    orders, customers = builder.table(f"{prefix}-orders"), builder.table(f"{prefix}-customers")
    both = lambda order, customer: [order, customer]  # noqa: E731
    bought = orders.left_join(customers, both, foreign_key=lambda order: order[0], store="bought")
    bought.to_stream().to(f"{prefix}-bought")
    return builder.build()


def application(bootstrap: str, prefix: str, state_dir: Path, **settings: Any) -> KafkaStreams:
    """Commits often."""
    return KafkaStreams(
        topology(prefix),
        application_id=f"{prefix}-app",
        bootstrap_servers=bootstrap,
        state_dir=str(state_dir),
        **{
            "commit_interval_ms": 20,
            "poll_ms": 20,
            "session_timeout_ms": 6000,
            "group_instance_id": "one",  # a restart need not wait for the killed one's session to end
            "emit_interval_ms_kstreams_outer_join_spurious_results_fix": 0,
            **settings,
        },
    )


def make_events(count: int, *, seed: int) -> list[Event]:
    """Records of both sides, in no strict order of time."""
    chance = random.Random(seed)
    return [
        Event(
            chance.choice(["left", "right"]), chance.choice(KEYS), number, number * 7 + chance.randrange(100)
        )
        for number in range(count)
    ]


def expected_pairs(events: Iterable[Event]) -> Counter[tuple[str, Any, Any, int]]:
    """Return the pairs that meet, and the records that do not."""
    lefts = [each for each in events if each.topic == "left"]
    rights = [each for each in events if each.topic == "right"]
    met: set[Event] = set()
    pairs: Counter[tuple[str, Any, Any, int]] = Counter()
    for left in lefts:
        for right in rights:
            if left.key == right.key and abs(left.timestamp - right.timestamp) <= WINDOW:
                pairs[left.key, left.number, right.number, max(left.timestamp, right.timestamp)] += 1
                met |= {left, right}
    for each in {*lefts, *rights} - met:
        pair = (each.number, None) if each.topic == "left" else (None, each.number)
        pairs[each.key, *pair, each.timestamp] += 1
    return pairs


async def prepare(bootstrap: str, prefix: str) -> None:
    """Create the topics."""
    async with Client(bootstrap) as client:
        topics = [NewTopic(f"{prefix}-{name}", count, 1) for name, count in PARTITIONS.items()]
        await Admin(client).create_topics(topics)


async def put(bootstrap: str, prefix: str, rows: Iterable[tuple[str, str, Any, int]]) -> None:
    """Produce topic, key, value and timestamp, in this order."""
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        for name, key, value, timestamp in rows:
            topic, raw = f"{prefix}-{name}", key.encode()
            partition = producer.partition_for(topic, raw, PARTITIONS[name])
            data = None if value is None else Json(list).serialize(value)
            await producer.send(topic, partition, [(timestamp, raw, data, ())])
        await producer.flush()


async def put_events(bootstrap: str, prefix: str, events: Iterable[Event]) -> None:
    """Produce events, under keys that say nothing."""
    rows = ((each.topic, f"x{each.number}", [each.key, each.number], each.timestamp) for each in events)
    await put(bootstrap, prefix, rows)


async def close_windows(bootstrap: str, prefix: str) -> None:
    """Records of a far later time, for each partition of both sides."""
    sides = [(side, number) for side in ("left", "right") for number in range(20)]
    await put_events(bootstrap, prefix, [Event(side, f"end-{n}", -1, END + n) for side, n in sides])


async def read(bootstrap: str, prefix: str, name: str) -> list[tuple[str, Any, int]]:
    """Key, value and timestamp of all there is in a topic."""
    async with Client(bootstrap) as client:
        tps = [TopicPartition(f"{prefix}-{name}", partition) for partition in range(PARTITIONS[name])]
        ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
        waiting = {tp for tp in tps if ends[tp].offset > 0}
        records: list[tuple[str, Any, int]] = []
        async with BatchFetcher(client) as fetcher:
            fetcher.assign(dict.fromkeys(waiting, 0))
            while waiting:
                for fetched in await fetcher.fetch():
                    for _, timestamp, key, value, _ in fetched.records():
                        decoded = None if value is None else Json(list).deserialize(value)
                        records.append(((key or b"").decode(), decoded, timestamp))
                    if fetched.next_offset >= ends[fetched.tp].offset:
                        waiting.discard(fetched.tp)
        return records


async def main(bootstrap: str, prefix: str, state_dir: str) -> None:
    dying.die()
    await application(bootstrap, prefix, Path(state_dir), commit_interval_ms=5).run_until_signalled()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
