"""The topology that instances run here: a stream, state before and behind a repartition topic, and what each
of them has to give. Loaded by ``millstream streams run tests.faults.streams.summing:topology``.

Every number comes once in the input. What is sent on, or counted, twice or never shows in

    copied     the input again, partition by partition
    keys       the sum per key
    counted    per group, behind the repartition topic, every count from 1 on, since it is not cached
    sums       the sum per group, cached

Values in stores can be padded, so that RocksDB writes files of them again and again: what it never wrote is
not on the disk after a kill, however early it was given it.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import defaultdict
from collections.abc import Iterable, Mapping

from kafka_client import Admin, Client, NewTopic
from streams import Materialized, StreamsBuilder, Topology
from streams.runtime.task.task import Task
from streams.serdes import Long, Serde
from tests.faults.streams.planted import flush_each_write, written_before_the_commit

PREFIX = os.environ.get("SUMMING_PREFIX", "summing")
KILL_AT = "SUMMING_KILL_AT"
"""Environment: ``POINT:N`` of `kill_points`, at whose N-th time the process kills itself. ``POINT:N:COMMITS``
counts once there were so many commits."""
NUMBERS, COPIED, KEYS, COUNTED, SUMS = "numbers", "copied", "keys", "counted", "sums"
LATENCY_MS = "SUMMING_LATENCY_MS"
"""Environment: the numbers pass in batches, and through a coroutine that takes up to so long."""
FLUSHED = "SUMMING_FLUSHED"
"""Environment: a store that is flushed to the disk with each write."""
PLANTED = "SUMMING_PLANTED"
"""Environment: the bug of `planted`, if it is not empty."""
PADDING = "SUMMING_PADDING"
"""Environment: how many bytes values take in stores besides their own."""
KEY_COUNT = 60
GROUP_COUNT = 40

Row = tuple[str, int]


class Padded(Serde[int]):
    """A number that takes much room; its reader need not know how much."""

    immutable = True

    def __init__(self) -> None:
        self._padding = bytes(int(os.environ.get(PADDING, "0")))

    def serialize(self, value: int) -> bytes:
        return Long().serialize(value) + self._padding

    def deserialize(self, data: bytes) -> int:
        return Long().deserialize(data[:8])


def topology(prefix: str = PREFIX, latency_ms: int = int(os.environ.get(LATENCY_MS, "0"))) -> Topology:
    """Return the topology of an application named ``<prefix>-app``."""
    _prepare_to_be_killed(os.environ)
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    numbers = builder.stream(f"{prefix}-{NUMBERS}")
    if latency_ms:
        numbers = numbers.map_values_batch(list, max_records=50).map_values_async(
            lambda number: late(number, latency_ms), ordered="partition", max_in_flight=20
        )
    numbers.to(f"{prefix}-{COPIED}")
    keys = numbers.group_by_key().reduce(_add, store=Materialized(name="keys", value_serde=Padded()))
    keys.to_stream().to(f"{prefix}-{KEYS}", value_serde=int)
    groups = numbers.group_by(lambda key, number: group_of(number), name="groups")
    counts = groups.count(store=Materialized(name="counts", caching=False, value_serde=Padded()))
    counts.to_stream().to(f"{prefix}-{COUNTED}", value_serde=int)
    sums = groups.reduce(_add, store=Materialized(name="sums", value_serde=Padded()))
    sums.to_stream().to(f"{prefix}-{SUMS}", value_serde=int)
    return builder.build()


def _prepare_to_be_killed(environment: Mapping[str, str]) -> None:
    """Do in this process what the variables say."""
    if at := environment.get(KILL_AT):
        from tests.faults.streams.kill_points import kill_at

        point, *numbers = at.split(":")
        kill_at(point, *map(int, numbers), kill=lambda: os.kill(os.getpid(), signal.SIGKILL))
    if store := environment.get(FLUSHED):
        flush_each_write(store)
    if environment.get(PLANTED):
        Task.flush = written_before_the_commit  # type: ignore[method-assign]


def _add(sum: int, number: int) -> int:
    return sum + number


async def late(number: int, latency_ms: int) -> int:
    """Return the number after a delay that differs from one number to the next."""
    await asyncio.sleep(number * 7919 % latency_ms / 1000)
    return number


def group_of(number: int) -> str:
    """Return the group of a number."""
    return f"group-{number % GROUP_COUNT}"


def row(number: int) -> Row:
    """Return a record of the input; keys are spread as numbers squared."""
    return f"key-{number * number % KEY_COUNT}", number


def sums(rows: Iterable[Row]) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """Computed directly: the sum per key, the count per group and the sum per group."""
    keys: defaultdict[str, int] = defaultdict(int)
    counts: defaultdict[str, int] = defaultdict(int)
    groups: defaultdict[str, int] = defaultdict(int)
    for key, number in rows:
        keys[key] += number
        counts[group_of(number)] += 1
        groups[group_of(number)] += number
    return dict(keys), dict(counts), dict(groups)


async def prepare(client: Client, prefix: str, partitions: int) -> None:
    """Create the topics, of as many replicas as the brokers' default says."""
    topics = [f"{prefix}-{each}" for each in (NUMBERS, COPIED, KEYS, COUNTED, SUMS)]
    await Admin(client).create_topics([NewTopic(topic, partitions, -1) for topic in topics])
