"""The final audit: each input is once in the output, and the sums are exact."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.fetcher.offsets import LATEST, IsolationLevel, list_offsets
from kafka_client.group.coordinator import fetch_offsets
from tests.faults.exactly_once.feeder import Pair
from tests.faults.exactly_once.names import GROUP, INPUT, INPUT_PARTITIONS, OUTPUT, OUTPUT_PARTITIONS, changed

INPUTS = [TopicPartition(INPUT, number) for number in range(INPUT_PARTITIONS)]
OUTPUTS = [TopicPartition(OUTPUT, number) for number in range(OUTPUT_PARTITIONS)]


async def audit(client: Client, written: list[list[Pair]]) -> dict[str, int]:
    """AssertionError by what is wrong; figures to print where nothing is."""
    there = await read(client, INPUTS, "read_uncommitted")
    for tp, pairs in there.items():
        assert pairs == written[tp.partition], f"{tp} is not what was written"
    assert await uncommitted(client) == {}, "the group has not committed all of the input"
    output = await read(client, OUTPUTS, "read_committed")
    output_pairs = [pair for pairs in output.values() for pair in pairs]
    expected = [(key, changed(value)) for pairs in written for key, value in pairs]
    lost, doubled = Counter(expected) - Counter(output_pairs), Counter(output_pairs) - Counter(expected)
    assert not lost, f"{lost.total()} of {len(expected)} are lost: {sorted(lost)[:5]}"
    assert not doubled, f"{doubled.total()} are there that should not be: {sorted(doubled)[:5]}"
    assert sums(output_pairs) == sums(expected)
    for tp, pairs in output.items():
        numbers = defaultdict(list)
        for key, value in pairs:
            numbers[key].append(int(value.split()[0]))
        for key, those in numbers.items():
            assert those == sorted(those), f"{tp}: {key!r} is out of order"
    everything = await read(client, OUTPUTS, "read_uncommitted")
    return {
        "records in the input": len(expected),
        "records committed in the output": len(output_pairs),
        "records aborted in the output": sum(map(len, everything.values())) - len(output_pairs),
        "keys": len(sums(output_pairs)),
        "sum over all keys": sum(sums(output_pairs).values()),
    }


def sums(pairs: Iterable[Pair]) -> dict[bytes, int]:
    """Return the sum of amounts by key."""
    by_key: dict[bytes, int] = defaultdict(int)
    for key, value in pairs:
        by_key[key] += int(value.split()[1])
    return dict(by_key)


async def uncommitted(client: Client) -> dict[TopicPartition, int]:
    """Return how many records of the input the group has still to commit, by partition."""
    ends = await list_offsets(client, dict.fromkeys(INPUTS, LATEST))
    committed = await fetch_offsets(client, GROUP, INPUTS)
    lags = {tp: ends[tp].offset - (committed[tp].offset if tp in committed else 0) for tp in INPUTS}
    return {tp: lag for tp, lag in lags.items() if lag}


async def read(
    client: Client, tps: list[TopicPartition], isolation_level: IsolationLevel
) -> dict[TopicPartition, list[Pair]]:
    """Key and value of everything that readers of this isolation level see now."""
    ends = await list_offsets(client, dict.fromkeys(tps, LATEST))
    pairs_by_partition: dict[TopicPartition, list[Pair]] = {tp: [] for tp in tps}
    async with BatchFetcher(client, isolation_level=isolation_level) as fetcher:
        for tp in tps:
            fetcher.add(tp, 0)
        while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
            for fetched in await fetcher.fetch(timeout_ms=100):
                pairs_by_partition[fetched.tp] += [
                    (key or b"", value or b"") for _, _, key, value, _ in fetched.records()
                ]
    return pairs_by_partition
