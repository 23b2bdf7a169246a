"""The final audit, once everything is processed and committed, for readers of committed records."""

from __future__ import annotations

from collections import defaultdict

from kafka_client import Admin, BatchFetcher, Client, IsolationLevel, TopicPartition
from streams.serdes import Long
from tests.faults.streams.summing import COPIED, COUNTED, KEYS, NUMBERS, SUMS, Row, sums

Rows = list[list[Row]]
"""Key and value, by partition and in order."""


async def audit(client: Client, prefix: str, partitions: int) -> dict[str, int]:
    """AssertionError by what is wrong; figures to print where nothing is."""
    numbers = await read(client, f"{prefix}-{NUMBERS}", partitions, "read_uncommitted")
    rows = [row for each in numbers for row in each]
    assert len({number for _, number in rows}) == len(rows), "the input itself has duplicates"
    keys, counts, groups = sums(rows)
    copied = await read(client, f"{prefix}-{COPIED}", partitions)
    for partition, (rows_copied, rows_written) in enumerate(zip(copied, numbers, strict=True)):
        lost, doubled = len(set(rows_written) - set(rows_copied)), len(rows_copied) - len(set(rows_copied))
        assert rows_copied == rows_written, (
            f"{COPIED}-{partition}: {lost} lost, {doubled} doubled, or out of order"
        )
    assert last(await read(client, f"{prefix}-{KEYS}", partitions)) == keys
    counted = await read(client, f"{prefix}-{COUNTED}", partitions)
    for group, found_counts in by_key(counted).items():
        assert found_counts == list(range(1, counts[group] + 1)), f"{group} has gaps or duplicates"
    assert last(counted) == counts
    assert last(await read(client, f"{prefix}-{SUMS}", partitions)) == groups
    everything = await read(client, f"{prefix}-{COPIED}", partitions, "read_uncommitted")
    return {
        "records in the input": len(rows),
        "records copied, committed": sum(map(len, copied)),
        "records copied, aborted": sum(map(len, everything)) - sum(map(len, copied)),
        "counts behind the repartition topic": sum(map(len, counted)),
        "sum over all keys": sum(keys.values()),
        "sum over all groups": sum(groups.values()),
        "duplicates": 0,
        "gaps": 0,
    }


def last(rows: Rows) -> dict[str, int]:
    """Return the last value per key."""
    return {key: value for each in rows for key, value in each}


def by_key(rows: Rows) -> dict[str, list[int]]:
    """Return all values per key."""
    values: defaultdict[str, list[int]] = defaultdict(list)
    for each in rows:
        for key, value in each:
            values[key].append(value)
    return values


async def read(
    client: Client, topic: str, partitions: int, isolation_level: IsolationLevel = "read_committed"
) -> Rows:
    """Everything that readers of this isolation level see, once no transaction is open any more."""
    tps = [TopicPartition(topic, number) for number in range(partitions)]
    ends = await Admin(client).list_offsets(dict.fromkeys(tps, "latest"))
    rows: Rows = [[] for _ in tps]
    async with BatchFetcher(client, isolation_level=isolation_level) as fetcher:
        fetcher.assign(dict.fromkeys(tps, 0))
        while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
            for fetched in await fetcher.fetch(timeout_ms=100):
                rows[fetched.tp.partition] += [
                    ((key or b"").decode(), Long().deserialize(value or b""))
                    for _, _, key, value, _ in fetched.records()
                ]
    return rows
