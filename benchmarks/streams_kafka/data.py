"""The topics that the jobs read, filled from one seed."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Container, Iterable, Iterator
from itertools import islice

from benchmarks import raw
from kafka_client import BatchProducer, Client
from kafka_client.records import NewRecord

PARTITIONS = 4
USERS = 10_000
WORDS = 20_000
CHUNK = 5000
LETTERS = bytes(range(ord("a"), ord("z") + 1))
INPUTS = {"events": 2_000_000, "others": 1_000_000, "orders": 1_000_000, "lines": 300_000, "users": USERS}
"""Records of each at full scale."""
OUTPUTS = ("out", "counts")


async def fill(bootstrap: str, scale: float, topics: Container[str] = INPUTS) -> dict[str, int]:
    """Write the records of these inputs. Return how many records each has.

    They begin an hour ago. `events` has two records for each millisecond and `others` one, so that both span
    the same time.
    """
    drawn, began = random.Random(7), int(time.time() - 3600) * 1000
    counts = {topic: USERS if topic == "users" else int(count * scale) for topic, count in INPUTS.items()}
    values = [bytes(drawn.choices(LETTERS, k=50)) for _ in range(5000)]
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        for topic, records in {
            "users": ((began, _user(n), b"name of " + _user(n), ()) for n in range(USERS)),
            "events": _by_user(drawn, began, 2, values, counts["events"]),
            "others": _by_user(drawn, began, 1, values, counts["others"]),
            "orders": _orders(drawn, began, values, counts["orders"]),
            "lines": _lines(drawn, began, counts["lines"]),
        }.items():
            if topic not in topics:
                continue
            iterator = iter(records)
            while chunk := list(islice(iterator, CHUNK)):
                for partition, part in producer.partitioned(topic, chunk, PARTITIONS).items():
                    await producer.send(topic, partition, part)
        await producer.flush()
    return counts


def create(bootstrap: str) -> None:
    """Create all topics."""
    for topic in (*INPUTS, *OUTPUTS):
        raw.create_topic(bootstrap, topic, PARTITIONS)


def _user(number: int) -> bytes:
    return b"user-%d" % number


def _by_user(
    drawn: random.Random, began: int, per_ms: int, values: list[bytes], count: int
) -> Iterable[NewRecord]:
    for n in range(count):
        yield began + n // per_ms, _user(drawn.randrange(USERS)), values[n % len(values)], ()


def _orders(drawn: random.Random, began: int, values: list[bytes], count: int) -> Iterable[NewRecord]:
    for n in range(count):
        user = _user(drawn.randrange(USERS))
        yield began + n, b"order-%d" % n, user + b"|" + values[n % len(values)], ()


def _lines(drawn: random.Random, began: int, count: int) -> Iterator[NewRecord]:
    """Yield lines of ten words each, with Zipf's distribution of words."""
    words = [bytes(drawn.choices(LETTERS, k=drawn.randint(3, 11))) for _ in range(WORDS)]
    weights = list(itertools.accumulate(1 / (n + 10) for n in range(WORDS)))
    lines = [b" ".join(drawn.choices(words, cum_weights=weights, k=10)) for _ in range(50_000)]
    for n in range(count):
        yield began + n // 2, None, lines[n % len(lines)], ()
