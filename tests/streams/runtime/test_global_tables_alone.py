"""Applications of global tables and stores alone: they run to be queried, and join no group, as in Kafka."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from kafka_client import Admin, Client
from streams import KafkaStreams, Processor, Record, StreamsBuilder, Topology
from streams.processors.custom import ProcessorContext
from streams.queries import HostInfo, KeyValueView
from streams.runtime.status import State
from streams.state import KeyValueStore, StoreSpec
from streams.testing import TopologyTestDriver
from tests.streams.support.running import NewName, make_topics, produce, start
from tests.support.logd_process import LogdProcess


class Lengths(Processor[str, str]):
    """Keeps the length of each value."""

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        store = context.store("lengths")
        assert isinstance(store, KeyValueStore)
        self.lengths = store

    def process(self, record: Record[str, str]) -> None:
        self.lengths.put(record.key, len(record.value))


def topology(name: str) -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    builder.global_table(f"{name}-g", store="kept")
    spec = StoreSpec(name="lengths", kind="key_value", key_serde=str, value_serde=int)
    builder.add_global_store(spec, f"{name}-h", Lengths)
    return builder.build()


async def groups(bootstrap: str) -> set[str]:
    async with Client(bootstrap) as client:
        return {each.group_id for each in await Admin(client).list_groups()}


async def value_of(app: KafkaStreams, store: str, key: str) -> object:
    return await app.store(store, KeyValueView).get(key)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
async def test_it_runs_is_queried_and_joins_no_group(
    logd: LogdProcess, tmp_path: Path, new_name: NewName, guarantee: str
) -> None:
    name, bootstrap = new_name("alone"), logd.bootstrap
    settings = {"processing_guarantee": guarantee, "application_server": "127.0.0.1:7"}
    await make_topics(bootstrap, **{f"{name}-g": 3, f"{name}-h": 1})
    await produce(bootstrap, f"{name}-g", (b"a", b"one"), partition=2)
    await produce(bootstrap, f"{name}-h", (b"b", b"four"))
    states: list[State] = []
    app = start(topology(name), bootstrap, name, tmp_path, **settings)
    app.add_state_listener(lambda new, old: states.append(new))
    async with app:
        assert app.state is State.RUNNING
        await app.wait_until_caught_up()
        assert [await value_of(app, "kept", "a"), await value_of(app, "lengths", "b")] == ["one", 4]
        await produce(bootstrap, f"{name}-g", (b"a", b"two"), partition=2)
        while await value_of(app, "kept", "a") != "two":  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        (host,) = app.metadata_for_all_streams_clients()
        assert (host.host, host.state_store_names) == (HostInfo("127.0.0.1", 7), {"kept", "lengths"})
        assert (app.tasks, await app.lag(), app.summary()["tasks"]) == ([], 0, [])
        assert name not in await groups(bootstrap)
    assert states == [State.REBALANCING, State.RUNNING, State.PENDING_SHUTDOWN, State.NOT_RUNNING]
    await produce(bootstrap, f"{name}-h", (b"c", b"fives"))
    async with start(topology(name), bootstrap, name, tmp_path, **settings) as app:
        assert await value_of(app, "kept", "a") == "two"
        assert [await value_of(app, "lengths", key) for key in "bc"] == [4, 5]


def test_a_driver_runs_it() -> None:
    with TopologyTestDriver(topology("t")) as driver:
        driver.input_topic("t-g").pipe_input("a", "one", 1)
        driver.advance_wall_clock(10)
        assert driver.key_value_store("kept").get("a") == "one"
