"""An input that is deleted under an application, the application reset by Kafka's own tool, and commits that
full caches ask for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client
from streams import StreamsBuilder, StreamsError, Topology
from tests.streams.support.counting import read_last
from tests.streams.support.running import copy, make_topics, produce, run, start
from tests.support.java import needs_kafka, run_tool
from tests.support.logd_process import LogdProcess

NewName = Callable[[str], str]
HOUR_MS = 3_600_000


def counts(name: str) -> Topology:
    """Numbers by key, through a repartition topic, counted to ``<name>-out``."""
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    stream = builder.stream(f"{name}-in").map(lambda key, value: (key, value))
    stream.group_by_key().count(store="counts").to_stream().to(f"{name}-out")
    return builder.build()


def stored(app: Any) -> dict[str, int]:
    return {key: value for store in app.stores("counts") for key, value in store.all()}


# An input that is deleted


@pytest.mark.parametrize("stateful", [False, True])
async def test_a_deleted_input_stops_the_application(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, stateful: bool
) -> None:
    name = new_name("deleted")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)))
    settings = {"metadata_max_age_ms": 50}
    with pytest.raises(StreamsError, match=f"{name}-in"):
        async with (
            start(counts(name), logd.bootstrap, name, tmp_path, **settings)
            if stateful
            else copy(logd.bootstrap, name, tmp_path, **settings)
        ) as app:
            await app.wait_until_caught_up()
            async with Client(logd.bootstrap) as client:
                await Admin(client).delete_topics([f"{name}-in"])
            await app.wait_ended()


# The application reset


@needs_kafka
def test_kafkas_tool_has_an_application_begin_anew(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("reset")

    async def counted() -> dict[str, int]:
        async with start(counts(name), logd.bootstrap, name, tmp_path) as app:
            await app.wait_until_caught_up()
            return stored(app)

    async def internal() -> list[str]:
        async with Client(logd.bootstrap) as client:
            topics = (await client.metadata(None)).topics
        return sorted(topic for topic in topics if topic.startswith(f"{name}-counts"))

    async def begin() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", (b"a", bytes(8)), (b"a", bytes(8)), (b"b", bytes(8)))
        assert await counted() == {"a": 2, "b": 1}
        assert await internal() == [f"{name}-counts-changelog", f"{name}-counts-repartition"]

    async def begin_anew() -> None:
        assert await internal() == []
        await produce(logd.bootstrap, f"{name}-in", (b"b", bytes(8)))
        assert await counted() == {"a": 2, "b": 2}

    run(begin)
    reset = run_tool(
        "org.apache.kafka.tools.StreamsResetter",
        *("--bootstrap-server", logd.bootstrap, "--application-id", name, "--input-topics", f"{name}-in"),
    )
    assert reset.returncode == 0, reset.stdout + reset.stderr
    run(begin_anew)


# Full caches


async def test_full_caches_are_committed_before_their_time(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """Full caches cause a commit an hour before `commit.interval.ms` is over."""
    name = new_name("full")

    async def committed() -> int:
        async with Client(logd.bootstrap) as client:
            offsets = await Admin(client).list_group_offsets(name)
        return max((each.offset for tp, each in offsets.items() if tp.topic == f"{name}-in"), default=0)

    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    rows = [(b"%d" % (number % 500), bytes(8)) for number in range(2_000)]
    await produce(logd.bootstrap, f"{name}-in", *rows)
    settings = {"commit_interval_ms": HOUR_MS, "statestore_cache_max_bytes": 20_000}
    async with start(counts(name), logd.bootstrap, name, tmp_path, **settings):
        # Not `wait_until_caught_up`: that commits.
        while not (  # noqa: ASYNC110 - there is no event to wait for
            await committed() and await read_last(logd.bootstrap, f"{name}-out", partitions=1)
        ):
            await asyncio.sleep(0.01)
    output = await read_last(logd.bootstrap, f"{name}-out", partitions=1)
    assert len(output) == 500
