"""Topics read by a pattern: those that match, those made while the application runs, and those deleted."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from kafka_client import Admin, Client
from streams import KafkaStreams, Materialized, StreamsBuilder, StreamsError, Topology, TopologyError
from streams.runtime.status import State
from streams.testing import TopologyTestDriver
from streams.topology import match_topics, own_topology, partition_counts, read_topics
from tests.streams.support import counting
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until


def counts(name: str, pattern: str | None = None) -> Topology:
    """Count each key of topics ``<name>-<digits>``, and write the counts to ``<name>-out``."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    stream = builder.stream(re.compile(pattern or f"{name}-[0-9]+"))
    table = stream.group_by_key().count(store=Materialized(name="counts", caching=False))
    table.to_stream().map_values(str).to(f"{name}-out", value_serde=str)
    return builder.build()


def begin(topology: Topology, bootstrap: str, name: str, folder: Path, **settings: Any) -> KafkaStreams:
    return start(topology, bootstrap, name, folder, **{"metadata_max_age_ms": 100, **settings})


async def results(bootstrap: str, name: str) -> dict[str, str]:
    rows = await counting.read_last(bootstrap, f"{name}-out", partitions=1)
    return {key.decode(): (value or b"").decode() for key, value in rows.items()}


async def until_results(bootstrap: str, name: str, expected: dict[str, str]) -> None:
    while await results(bootstrap, name) != expected:  # noqa: ASYNC110 - it is asked of the broker
        await asyncio.sleep(0.05)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_topics_that_match_are_read_also_those_made_later(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name, bootstrap = new_name("pattern"), logd.bootstrap
    settings = {"processing_guarantee": guarantee}
    await make_topics(bootstrap, **{f"{name}-1": 2, f"{name}-2": 1, f"{name}-out": 1, f"{name}-1-other": 1})
    await produce(bootstrap, f"{name}-1", (b"a", b""), partition=1)
    await produce(bootstrap, f"{name}-2", (b"b", b""))
    await produce(bootstrap, f"{name}-1-other", (b"never", b""))
    async with begin(counts(name), bootstrap, name, tmp_path, **settings) as app:
        await until_results(bootstrap, name, {"a": "1", "b": "1"})
        assert [str(id) for id in app.tasks] == ["0_0", "0_1"]
        await make_topics(bootstrap, **{f"{name}-3": 2})
        await produce(bootstrap, f"{name}-3", (b"b", b""), (b"c", b""), partition=0)
        await produce(bootstrap, f"{name}-3", (b"a", b""), partition=1)
        await produce(bootstrap, f"{name}-1", (b"a", b""), partition=1)
        await until_results(bootstrap, name, {"a": "3", "b": "2", "c": "1"})
        await app.wait_until_caught_up()
        assert app.state is State.RUNNING
    await produce(bootstrap, f"{name}-3", (b"c", b""))
    async with begin(counts(name), bootstrap, name, tmp_path, **settings):
        await until_results(bootstrap, name, {"a": "3", "b": "2", "c": "2"})


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
@pytest.mark.parametrize("looks_ms", [100, 600_000])
async def test_a_topic_that_is_deleted_is_read_no_more(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, looks_ms: int, guarantee: str
) -> None:
    """Also where fetching or committing hears of it first."""
    name, bootstrap = new_name("pattern"), logd.bootstrap
    settings = {"metadata_max_age_ms": looks_ms, "processing_guarantee": guarantee}
    await make_topics(bootstrap, **{f"{name}-1": 1, f"{name}-2": 1, f"{name}-out": 1})
    await produce(bootstrap, f"{name}-2", (b"b", b""))
    async with begin(counts(name), bootstrap, name, tmp_path, **settings) as app:
        await until_results(bootstrap, name, {"b": "1"})
        async with Client(bootstrap) as client:
            await Admin(client).delete_topics([f"{name}-2"])
        await produce(bootstrap, f"{name}-1", (b"a", b""))
        await until(lambda: {tp.topic for tp in app._instance.loop.inputs.positions()} == {f"{name}-1"})
        await produce(bootstrap, f"{name}-1", (b"b", b""))
        await until_results(bootstrap, name, {"a": "1", "b": "2"})
        assert app.state is State.RUNNING


async def test_two_instances_share_what_is_made_later(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name, bootstrap = new_name("pattern"), logd.bootstrap
    topology = counts(name)
    await make_topics(bootstrap, **{f"{name}-1": 2, f"{name}-out": 1})
    async with (
        begin(topology, bootstrap, name, tmp_path / "one") as one,
        begin(topology, bootstrap, name, tmp_path / "two") as two,
    ):
        await until(lambda: len(one.tasks) == len(two.tasks) == 1)
        await make_topics(bootstrap, **{f"{name}-2": 2})
        await produce(bootstrap, f"{name}-2", (b"a", b""), partition=0)
        await produce(bootstrap, f"{name}-2", (b"b", b""), partition=1)
        await until_results(bootstrap, name, {"a": "1", "b": "1"})
        assert len(one.tasks) == len(two.tasks) == 1


async def test_it_waits_for_a_topic_that_matches(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name, bootstrap = new_name("pattern"), logd.bootstrap
    await make_topics(bootstrap, **{f"{name}-out": 1})
    async with begin(counts(name), bootstrap, name, tmp_path) as app:
        await until(lambda: app.state is State.RUNNING)
        await app.wait_until_caught_up()
        assert app.tasks == []
        await make_topics(bootstrap, **{f"{name}-1": 1})
        await produce(bootstrap, f"{name}-1", (b"a", b""))
        await until_results(bootstrap, name, {"a": "1"})


async def test_the_applications_own_topics_do_not_match(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name, bootstrap = new_name("pattern"), logd.bootstrap
    topology = counts(name, f"{name}-.*(?<!-out)")
    await make_topics(bootstrap, **{f"{name}-1": 1, f"{name}-out": 1})
    await produce(bootstrap, f"{name}-1", (b"a", b""))
    async with begin(topology, bootstrap, name, tmp_path):
        await until_results(bootstrap, name, {"a": "1"})
    async with begin(topology, bootstrap, name, tmp_path) as app:
        await until(lambda: bool(app.tasks))
        await app.wait_until_caught_up()
        assert {tp.topic for tp in await app.lags()} == {f"{name}-1"}
    assert await results(bootstrap, name) == {"a": "1"}


def test_a_topic_of_two_patterns_ends_the_application(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    name, bootstrap = new_name("pattern"), logd.bootstrap
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream(re.compile(f"{name}-[0-9]+")).to(f"{name}-out")
    builder.stream(re.compile(f"{name}-2.*")).to(f"{name}-out")

    async def case() -> None:
        await make_topics(bootstrap, **{f"{name}-1": 1, f"{name}-out": 1})
        app = begin(builder.build(), bootstrap, name, tmp_path)
        async with app:
            await until(lambda: app.state is State.RUNNING)
            await make_topics(bootstrap, **{f"{name}-2": 1})
            await app.wait_ended()
            with pytest.raises(StreamsError, match=rf"topic '{name}-2' matches .* and .*: one source reads"):
                app.check()
            await app.close()
        with pytest.raises(TopologyError, match=rf"topic '{name}-2' matches"):
            await begin(builder.build(), bootstrap, name, tmp_path).start()

    with pytest.raises(StreamsError, match="one source reads"):
        run(case)


async def test_partitions_that_one_of_two_inputs_gets_later_are_read(
    logd: LogdProcess, tmp_path: Path, new_name: NewName
) -> None:
    """A running task with one input is given a second one."""
    name, bootstrap = new_name("grown"), logd.bootstrap
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream([f"{name}-1", f"{name}-2"]).to(f"{name}-out")
    await make_topics(bootstrap, **{f"{name}-1": 2, f"{name}-2": 1, f"{name}-out": 1})
    async with begin(builder.build(), bootstrap, name, tmp_path) as app:
        await until(lambda: len(app.tasks) == 2)
        async with Client(bootstrap) as client:
            await Admin(client).create_partitions({f"{name}-2": 2})
        await produce(bootstrap, f"{name}-2", (b"a", b"late"), partition=1)
        await until_results(bootstrap, name, {"a": "late"})


# -- without a broker


def patterned() -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream(re.compile("t-.*"), name="t").group_by(lambda k, v: v, name="by").count()
    builder.stream(re.compile("u"), name="u").to("out")
    return builder.build()


def test_what_matches_is_decided_by_whole_names() -> None:
    matched = match_topics(patterned(), ["t-2", "a-t-1", "u", "uu", "t-1"])
    assert matched == {"t": ["t-1", "t-2"], "u": ["u"]}


def test_an_own_topology_leaves_the_one_it_is_of() -> None:
    shared = patterned()
    own = own_topology(shared)
    read_topics(own, {"t": ["t-1"], "u": ["u"]})
    assert (own.external_topics, shared.external_topics) == (["t-1", "u"], [])
    assert partition_counts(own, {"t-1": 3, "u": 1}) == {"t-1": 3, "u": 1, "by-repartition": 3}
    assert partition_counts(own, {"t-1": 3}) == {"t-1": 3, "u": 0, "by-repartition": 3}
    with pytest.raises(TopologyError, match=r"\['by-repartition'\] need: no topic matches .* 't-\.\*'"):
        partition_counts(shared, {})
    plain = StreamsBuilder(key_serde=str, value_serde=str)
    plain.stream("t").to("out")
    built = plain.build()
    assert own_topology(built) is built


def test_a_driver_takes_topics_that_match() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.stream(re.compile("t-.*")).to("u-1")
    builder.stream(re.compile("u-.*")).map_values(str.upper).to("out", value_serde=str)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("t-1").pipe_input("a", "x", 1)
        driver.input_topic("t-2").pipe_many([("b", "y")], start=2)
        assert driver.output_topic("out").read_key_values() == [("a", "X"), ("b", "Y")]
        with pytest.raises(KeyError):
            driver.input_topic("v-1")


def test_a_topology_by_hand_reads_by_a_pattern_too() -> None:
    topology = Topology(key_serde=str, value_serde=str)
    topology.add_source("source", re.compile("t.*")).add_sink("sink", "out", "source")
    assert "Source: source (topics: t.*)" in topology.describe()
    assert topology.outline()["sub_topologies"][0]["nodes"][0]["pattern"] == "t.*"
    assert "t.*" in topology.mermaid()
    with TopologyTestDriver(topology) as driver:
        driver.input_topic("tt").pipe_input("a", "x", 1)
        assert driver.output_topic("out").read_key_values() == [("a", "x")]
