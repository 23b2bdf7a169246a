"""Tables whose topic is their changelog (``reuse.ktable.source.topics``), against a broker.

State must be as of the committed position of the table's topic, no more. Rows are counted by their value.
If a row were restored before it is processed, it would be subtracted from the wrong count.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client import Client
from streams import KafkaStreams, StreamsBuilder, Topology, log_and_continue
from streams.serdes import String
from tests.streams.support.running import NewName, make_topics, produce, start
from tests.support import depth
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until

GUARANTEES = depth.first(1, ["exactly_once_v2", "at_least_once"])
SETTINGS: dict[str, Any] = {
    "deserialization_exception_handler": log_and_continue,
    "heartbeat_interval_ms": 50,
    "session_timeout_ms": 6000,
}


def rows_by_value(name: str) -> Topology:
    """Return a topology with the table ``rows`` of ``<name>-in``, at times a thousand later, and ``counts``
    by value.
    """
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    later = lambda key, value, timestamp: timestamp + 1000  # noqa: E731
    table = builder.table(f"{name}-in", store="rows", timestamp_extractor=later)
    table.group_by(lambda key, value: (value, key)).count(store="counts").to_stream().to(f"{name}-out")
    return builder.build(topology_optimization="reuse.ktable.source.topics")


def contents(app: KafkaStreams, store: str) -> dict[str, Any]:
    return {key: value for each in app.stores(store) for key, value in each.all()}  # type: ignore[attr-defined]


@pytest.mark.parametrize("guarantee", GUARANTEES)
async def test_state_is_as_of_the_committed_position(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name, settings = new_name("source-topic"), SETTINGS | {"processing_guarantee": guarantee}
    topic = f"{name}-in"
    await make_topics(logd.bootstrap, **{topic: 1, f"{name}-out": 1})
    await produce(
        logd.bootstrap, topic, (b"a", b"x"), (b"b", b"x"), (b"c", b"y"), (b"a", b"\xff"), (None, b"x")
    )
    async with start(rows_by_value(name), logd.bootstrap, name, tmp_path / "1", **settings) as app:
        await app.wait_until_caught_up()
        assert contents(app, "counts") == {"x": 2, "y": 1}
    await produce(logd.bootstrap, topic, (b"a", b"y"), (b"b", None))
    async with start(rows_by_value(name), logd.bootstrap, name, tmp_path / "2", **settings) as app:
        await app.wait_until_caught_up()
        assert contents(app, "rows") == {"a": "y", "c": "y"}
        assert contents(app, "counts") == {"x": 0, "y": 2}
        (store,) = app.stores("rows")
        times = {String().deserialize(key): time for key, _, time in store.scan()}
        assert times == {"a": 1007, "c": 1007}
    async with Client(logd.bootstrap) as client:
        topics = (await client.metadata()).topics
    assert {each for each in topics if each.startswith(f"{name}-") and "changelog" in each} == {
        f"{name}-counts-changelog"
    }


@depth.deep
async def test_what_is_on_the_disk_is_gone_on_from(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name = new_name("source-topic-disk")
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", b"x"), (b"b", b"x"))
    async with start(rows_by_value(name), logd.bootstrap, name, tmp_path, **SETTINGS) as app:
        await app.wait_until_caught_up()
    async with start(rows_by_value(name), logd.bootstrap, name, tmp_path, **SETTINGS) as app:
        await app.wait_until_caught_up()
        assert [running.restored for running in app._instance.loop.tasks.values()] == [0, 0]
        assert contents(app, "rows") == {"a": "x", "b": "x"}


@depth.deep
async def test_a_standby_follows_the_tables_topic(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name, settings = new_name("source-topic-standby"), SETTINGS | {"num_standby_replicas": 1}
    await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
    await produce(logd.bootstrap, f"{name}-in", (b"a", b"x"), (b"b", b"x"), (b"a", b"\xff"))
    topology = rows_by_value(name)
    first = start(topology, logd.bootstrap, name, tmp_path / "1", **settings)
    async with start(topology, logd.bootstrap, name, tmp_path / "2", **settings) as second, first:
        await until(lambda: len(first.tasks) == len(second.tasks) == 1)
        await until(lambda: second.standby_tasks == first.tasks and first.standby_tasks == second.tasks)
        await produce(logd.bootstrap, f"{name}-in", (b"a", b"y"), (b"c", b"z"))
        await first.wait_until_caught_up()
        await second.wait_until_caught_up()
        await until(lambda: is_level(first) and is_level(second))
        await first.close()
        await until(lambda: len(second.tasks) == 2)
        await produce(logd.bootstrap, f"{name}-in", (b"b", b"y"))
        await second.wait_until_caught_up()
        assert contents(second, "rows") == {"a": "y", "b": "y", "c": "z"}
        assert contents(second, "counts") == {"x": 0, "y": 2, "z": 1}


def is_level(app: KafkaStreams) -> bool:
    """Return True if the standby task has applied records, and has none left to apply."""
    standbys = app._instance.standbys
    return standbys.updated > 0 and not any(task.remaining for task in standbys.tasks.values())
