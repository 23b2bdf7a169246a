"""An application optimized by all rules, on a broker with two partitions, gives what a plain one gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafka_client import Client
from streams import JoinWindows, StreamsBuilder, Topology
from tests.streams.support.counting import read_last
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support import depth
from tests.support.logd_process import LogdProcess

OUTPUTS = ("counts", "names", "pairs")


def by_value(name: str, rules: str) -> Topology:
    """Counted by value; joined with the names of values; and joined with themselves."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    rekeyed = builder.stream(f"{name}-in").select_key(lambda key, value: value)
    rekeyed.group_by_key().count(store="counted").to_stream().to(f"{name}-counts")
    names = builder.table(f"{name}-known", store="known")
    rekeyed.join(names, lambda value, row: f"{value}={row}", name="named").to(f"{name}-names")
    filtered = rekeyed.filter(lambda key, value: True)
    pairs = filtered.join(filtered, lambda one, other: one + other, windows=JoinWindows.of(5), name="pairs")
    pairs.group_by_key(name="paired").count(store="paired").to_stream().to(f"{name}-pairs")
    return builder.build(topology_optimization=rules)


@depth.deep
def test_results_are_the_same(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    results: dict[str, dict[str, Any]] = {}

    async def case(rules: str, name: str) -> None:
        topics = {f"{name}-{each}": 2 for each in ("in", "known", *OUTPUTS)}
        await make_topics(logd.bootstrap, **topics)
        for partition in (0, 1):
            rows = [(b"k%d" % n, b"abcdefgh"[n % 8 : n % 8 + 1]) for n in range(20 + partition)]
            await produce(logd.bootstrap, f"{name}-in", *rows, partition=partition)
            keys = {1: (b"a", b"c"), 0: (b"b",)}[partition]
            await produce(
                logd.bootstrap, f"{name}-known", *((key, key * 2) for key in keys), partition=partition
            )
        settings = {"processing_guarantee": "exactly_once_v2"}
        for state in ("1", "2"):  # and once more, in a folder without state
            folder = tmp_path / rules / state
            async with start(by_value(name, rules), logd.bootstrap, name, folder, **settings) as app:
                await app.wait_until_caught_up()
            await produce(logd.bootstrap, f"{name}-in", (b"k", b"a"), (b"k", b"b"))
        results[rules] = {each: await read_last(logd.bootstrap, f"{name}-{each}") for each in OUTPUTS}
        async with Client(logd.bootstrap) as client:
            made = [topic for topic in (await client.metadata()).topics if topic.startswith(f"{name}-")]
        results[rules]["made"] = sorted(topic for topic in made if topic not in topics)

    for rules in ("none", "all"):
        name = new_name(f"optimized-{rules}")
        run(lambda: case(rules, name))  # noqa: B023 - it is over before the next
    made = {rules: results[rules].pop("made") for rules in results}
    assert results["all"] == results["none"]
    assert all(results["all"][each] for each in OUTPUTS)
    assert sum(topic.endswith("-repartition") for topic in made["none"]) == 4
    assert sum(topic.endswith("-repartition") for topic in made["all"]) == 1
    assert len(made["none"]) - len(made["all"]) == 3 + 1 + 1, "topics, the table's changelog, the join's"
