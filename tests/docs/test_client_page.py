"""docs/client.md: its programs are run against a broker, in the page's order."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from kafka_client import Admin, Client, Consumer, NewTopic, Producer, TopicPartition
from tests.docs.pages import ROOT, Block, blocks
from tests.support.logd_process import LogdProcess

PAGE = ROOT / "docs" / "client.md"
SECONDS = 100.0


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("page")) as process:
        yield process


def run_block(block: Block, bootstrap: str, module: ModuleType) -> None:
    """Run a block, then the coroutine functions it defines, with a client or a consumer of its own."""
    before = set(vars(module))
    text = block.text.replace("localhost:9092", bootstrap)
    exec(compile(text, block.place, "exec"), module.__dict__)

    async def call(function: object) -> None:
        async with asyncio.timeout(SECONDS), Client(bootstrap) as client, Consumer(client) as consumer:
            await consumer.assign({TopicPartition("orders", 0): 0})
            fixtures = {"client": client, "consumer": consumer}
            names = inspect.signature(function).parameters  # type: ignore[arg-type]
            await function(*(fixtures[name] for name in names))  # type: ignore[operator]

    if "asyncio.run(" not in text:
        for name in vars(module).keys() - before:
            if inspect.iscoroutinefunction(vars(module)[name]):
                asyncio.run(call(vars(module)[name]))


def test_its_programs_run(
    server: LogdProcess, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare() -> None:
        async with Client(server.bootstrap) as client, Producer(client) as producer:
            await Admin(client).create_topics([NewTopic(n, 1, 1) for n in ("fruit", "orders", "capitals")])
            await producer.send_and_wait("orders", b"first")

    asyncio.run(prepare())
    module = ModuleType("client_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    python = list(blocks(PAGE, "python"))
    assert len(python) == 8
    for block in python:
        run_block(block, server.bootstrap, module)
    printed = capsys.readouterr().out
    for line in ("b'apple'\n", "orders 0 1\n", '"pear"', "'capitals', 'events'", "\n0\n"):
        assert line in printed
    position, lag = re.findall(r"^True (\d+) (\d+)$", printed, re.MULTILINE)[0]
    assert int(position) + int(lag) == 1002

    async def capitals() -> int:
        tp = TopicPartition("capitals", 0)
        async with Client(server.bootstrap) as client, Consumer(client) as consumer:
            await consumer.assign({tp: 0})
            values: set[bytes] = set()
            while consumer.lag(tp) != 0:
                values |= {record.value for record in await consumer.records(timeout_ms=1000)}
        assert b"FIRST" in values
        assert b'{"ITEM": 999}' in values
        return len(values)

    assert asyncio.run(capitals()) == 1002


def test_the_first_example_has_ten_lines() -> None:
    first = next(blocks(PAGE, "python"))
    assert len([line for line in first.text.splitlines() if line]) <= 10
    assert Path(first.page) == PAGE
