"""The client's examples as their users run them: in processes, one of them killed on the way."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
from pathlib import Path

from kafka_client import Admin, Client, Consumer, NewTopic, TopicPartition
from tests.support.logd_process import LogdProcess

ROOT = Path(__file__).parents[2]
LINES = [f"word{n % 7} line {n}" for n in range(400)]


def start(example: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, f"examples/{example}.py", *arguments],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def create_topics(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic("lines", 1, 1), NewTopic("capitals", 1, 1)])


async def copied(bootstrap: str, count: int) -> list[bytes]:
    """Return the first `count` committed values of `capitals`."""
    async with Client(bootstrap) as client, Consumer(client, isolation_level="read_committed") as consumer:
        await consumer.assign({TopicPartition("capitals", 0): 0})
        async with asyncio.timeout(100):
            return [(await anext(consumer)).value for _ in range(count)]


def test_lines_are_produced_printed_and_copied_exactly_once(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        asyncio.run(create_topics(logd.bootstrap))
        producer = start("client_produce", logd.bootstrap, "lines")
        printed, _ = producer.communicate("\n".join(LINES), timeout=100)
        assert printed == "400 records, the last in lines-0 at 399\n"

        with start("client_consume", logd.bootstrap, "lines", "readers") as consumer:
            assert consumer.stdout is not None
            try:
                for offset, line in enumerate(LINES):
                    assert consumer.stdout.readline() == f"lines-0 {offset}: {line}\n"
            finally:
                consumer.kill()

        for count in (50, 400):  # the first copier is killed on the way
            with start("client_exactly_once", logd.bootstrap, "lines", "capitals") as copier:
                try:
                    values = asyncio.run(copied(logd.bootstrap, count))
                finally:
                    copier.kill()
            assert values == [line.upper().encode() for line in LINES[:count]]
        pattern = re.compile(rb"WORD\d LINE \d+")
        assert all(pattern.fullmatch(value) for value in values)
