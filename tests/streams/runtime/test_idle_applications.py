"""Windows that close on idle inputs in whole applications: through commits, restarts and lost state."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchProducer, Client
from streams import StreamsBuilder, Suppressed, TimeWindows, Topology
from tests.streams.support.counting import read_last
from tests.streams.support.running import NewName, make_topics, start
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

IDLE = 150


def topology(name: str, *, held_back: bool) -> Topology:
    """Counts of windows, told once by the aggregation, or by a table that is suppressed behind a cache."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    stream = builder.stream(f"{name}-in")
    if held_back:  # behind a topic, too
        stream = stream.select_key(lambda key, value: key, name="again")
    windowed = stream.group_by_key(key_serde=str).windowed_by(TimeWindows(10))
    if held_back:
        table = windowed.count(store="counts").suppress(Suppressed.until_window_closes(idle_timeout=IDLE))
    else:
        table = windowed.emit_strategy("on_window_close", idle_timeout=IDLE).count(store="counts")
    table.to_stream(lambda key, count: f"{key.key}{key.window.start}").map_values(str).to(f"{name}-out")
    return builder.build()


async def produce(bootstrap: str, name: str, *rows: tuple[bytes, int]) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        await (await producer.send(f"{name}-in", 0, [(timestamp, key, b"", ()) for key, timestamp in rows]))


@deep
@pytest.mark.parametrize("held_back", [False, True])
@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_windows_that_closed_stay_closed_after_a_restart_without_state(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str, held_back: bool
) -> None:
    name = new_name("idle")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    # A commit that is not asked for would come too late: what a cache holds back must not wait for it.
    settings: dict[str, Any] = {"processing_guarantee": guarantee}
    if guarantee == "at_least_once":
        settings["commit_interval_ms"] = 60_000
    await produce(logd.bootstrap, name, (b"a", 3), (b"b", 4), (b"b", 5))
    async with start(topology(name, held_back=held_back), logd.bootstrap, name, tmp_path, **settings):
        while len(await read_last(logd.bootstrap, f"{name}-out", partitions=1)) < 2:
            pass
    shutil.rmtree(tmp_path)
    await produce(logd.bootstrap, name, (b"a", 6), (b"c", 12))
    async with start(topology(name, held_back=held_back), logd.bootstrap, name, tmp_path, **settings) as app:
        while len(output := await read_last(logd.bootstrap, f"{name}-out", partitions=1)) < 3:
            pass
        await until(lambda: sum(node.late_records_total for node in app.metrics().values()) == 1)
    assert output == {b"a0": b"1", b"b0": b"2", b"c10": b"1"}
