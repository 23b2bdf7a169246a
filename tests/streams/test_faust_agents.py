"""Faust agents as asynchronous nodes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import faust
import pytest

from streams import StreamsBuilder, TopologyError, log_and_continue
from streams.errors import ProcessingError
from streams.faust import record_serde, through_agent
from streams.testing import TopologyTestDriver
from streams.topology import Handlers
from tests.streams.runtime.test_async_applications import row, written
from tests.streams.support.running import NewName, make_topics, produce, run, start
from tests.support.logd_process import LogdProcess

app = faust.App("agents", broker="kafka://127.0.0.1:1", store="memory://")


class Order(faust.Record):
    item: str
    pieces: int = 1


@app.agent()
async def doubled(stream: Any) -> Any:
    async for order in stream:
        yield Order(order.item, 2 * order.pieces)


@app.agent()
async def keyed(stream: Any) -> Any:
    async for key, value in stream.items():
        yield f"{key}: {value}"


@app.agent()
async def dividing(stream: Any) -> Any:
    """Yield the value's divisors; 13 raises."""
    count = 0
    async for event in stream.events():
        count += 1
        await asyncio.sleep(0)
        if event.value == 13:
            raise ValueError(f"13, after {count}")
        for divisor in range(2, event.value):
            if event.value % divisor == 0:
                yield divisor


@app.agent()
async def silent(stream: Any) -> None:
    async for _ in stream:
        pass


@app.agent()
async def taking(stream: Any) -> Any:
    async for orders in stream.take(2, within=1):
        yield orders


def driven(agent: Any, handlers: Handlers | None = None, **serdes: Any) -> TopologyTestDriver:
    builder = StreamsBuilder(key_serde=str, value_serde=int)
    through_agent(builder.stream("in"), agent).to("out", **serdes)
    return TopologyTestDriver(builder, handlers=handlers)


def test_a_reply_goes_on_under_the_records_key() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=record_serde(Order))
    orders = through_agent(builder.stream("orders"), doubled, name="doubled")
    orders.to("out", value_serde=record_serde(Order))
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("orders").pipe_all([("a", Order("tea", 2)), ("b", Order("pot"))])
        assert driver.output_topic("out").read_key_values() == [
            ("a", Order("tea", 4)),
            ("b", Order("pot", 2)),
        ]


def test_keys_and_values() -> None:
    with driven(keyed, value_serde=str) as driver:
        driver.input_topic("in").pipe_all([("a", 1), (None, 2)])
        assert driver.output_topic("out").read_key_values() == [("a", "a: 1"), (None, "None: 2")]


def test_no_reply_several_and_errors() -> None:
    """An agent that raised is started again, without its memory."""
    handlers = Handlers(processing=log_and_continue)
    with driven(dividing, handlers, value_serde=int) as driver:
        driver.input_topic("in").pipe_all([("a", 12), ("b", 7), ("c", 13), ("d", 4), ("e", 9)])
        output = driver.output_topic("out").read_key_values()
        assert output == [("a", 2), ("a", 3), ("a", 4), ("a", 6), ("d", 2), ("e", 3)]
    with driven(dividing, value_serde=int) as driver:
        driver.input_topic("in").pipe_input("a", 4)
        with pytest.raises(ProcessingError, match=r"offset 1, node KSTREAM-ASYNC-0000000001: .*13, after 2"):
            driver.input_topic("in").pipe_input("c", 13)


def test_what_no_agent_can_do_here_is_said() -> None:
    with pytest.raises(TopologyError, match="is no Faust agent that yields"):
        driven(silent)
    with driven(taking, value_serde=int) as driver:
        with pytest.raises(ProcessingError, match=r"\.take needs a topic and Faust's own worker"):
            driver.input_topic("in").pipe_input("a", 4)


def test_an_agent_in_an_application(logd: LogdProcess, tmp_path: Path, new_name: NewName) -> None:
    """Its actors work side by side, as many as its concurrency says."""
    name = new_name("agent")
    at_work: set[int] = set()
    most = 0

    async def slowly(stream: Any) -> Any:
        nonlocal most
        async for value in stream:
            at_work.add(value)
            most = max(most, len(at_work))
            await asyncio.sleep(0.001)
            at_work.discard(value)
            yield -value

    agent = faust.App(name, store="memory://").agent(concurrency=3)(slowly)

    async def case() -> None:
        await make_topics(logd.bootstrap, **{f"{name}-in": 1, f"{name}-out": 1})
        await produce(logd.bootstrap, f"{name}-in", *(row(f"k{n}", n) for n in range(40)))
        builder = StreamsBuilder(key_serde=str, value_serde=int)
        through_agent(builder.stream(f"{name}-in"), agent).to(f"{name}-out", value_serde=int)
        settings: Any = {"processing_guarantee": "exactly_once_v2"}
        async with start(builder.build(), logd.bootstrap, name, tmp_path, **settings) as streams:
            await streams.wait_until_caught_up()
        output = await written(logd.bootstrap, name)
        assert sorted(output) == sorted((f"k{n}", -n) for n in range(40))

    run(case)
    assert most == 3
