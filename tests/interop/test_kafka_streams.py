"""Kafka Streams, Java's own, counts words against logd; the program is ``tests/java/WordCount.java``.

It makes its repartition and changelog topics, joins with its own assignor, and has to come back with its
counts: from its folder, or from the changelog alone.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, TopicPartition
from tests.support import java
from tests.support.logd_process import LogdProcess
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

LINES = ["To be or not to be", "that is the question", "to sleep perchance to dream"]
PARTITIONS = 2
SECONDS = 120.0

pytestmark = [java.needs_jar("kafka-streams"), pytest.mark.timeout(6 * SECONDS)]


def expected(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.lower().split())


async def send(bootstrap: str, topic: str, lines: list[str]) -> None:
    async with Client(bootstrap) as client, BatchProducer(client) as producer:
        sent = [
            await producer.send(topic, number % PARTITIONS, [(1000 + number, None, line.encode(), ())])
            for number, line in enumerate(lines)
        ]
        await asyncio.gather(*sent)


async def counted(bootstrap: str, topic: str) -> dict[str, int]:
    """Return the last committed count of every word."""
    async with Client(bootstrap) as client:
        tps = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        specs = dict.fromkeys(tps, "latest")
        ends = await Admin(client).list_offsets(specs, isolation_level="read_committed")
        waiting = {tp for tp in tps if ends[tp].offset > 0}
        last: dict[str, int] = {}
        async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
            fetcher.assign(dict.fromkeys(waiting, 0))
            while waiting:
                for fetched in await fetcher.fetch(timeout_ms=1000):
                    last.update({(r[2] or b"").decode(): int(r[3] or b"") for r in fetched.records()})
                waiting = {tp for tp in waiting if fetcher.position(tp) < ends[tp].offset}
        return last


@contextmanager
def running(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the program once it runs."""
    with log.open("wb") as output:
        process = subprocess.Popen(java.program("WordCount", *arguments), stdout=output, stderr=output)
    try:
        wait_for(lambda: "running" in log.read_text() or process.poll() is not None, SECONDS)
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        process.kill()
        process.wait(SECONDS)


@pytest.mark.parametrize("guarantee", ["at_least_once", "exactly_once_v2"])
def test_words_are_counted_over_a_kill(
    logd: LogdProcess, new_name: Callable[[str], str], tmp_path: Path, guarantee: str
) -> None:
    """Killed with nothing to do, then with its folder gone; exactly once also in the midst of its work."""
    name, state = new_name("words"), tmp_path / "state"
    lines, counts = create_topic(logd, f"{name}-lines", partitions=PARTITIONS), f"{name}-counts"
    create_topic(logd, counts, partitions=PARTITIONS)
    words: Counter[str] = Counter()

    def more(times: int) -> None:
        words.update(expected(LINES * times))
        asyncio.run(send(logd.bootstrap, lines, LINES * times))

    def all_counted() -> bool:
        return asyncio.run(counted(logd.bootstrap, counts)) == words

    arguments = (logd.bootstrap, name, str(state), guarantee)
    more(20)
    with running(tmp_path / "first.log", *arguments) as process:
        wait_for(all_counted, SECONDS)
        if guarantee == "exactly_once_v2":
            more(2000)
            wait_for(lambda: asyncio.run(counted(logd.bootstrap, counts))["to"] > 80, SECONDS)
            process.kill()
        else:
            process.terminate()  # which commits: what is not may be counted again
        process.wait(SECONDS)
    more(5)
    with running(tmp_path / "second.log", *arguments) as process:
        wait_for(all_counted, SECONDS)
        process.terminate()
        process.wait(SECONDS)
    shutil.rmtree(state)
    more(1)
    with running(tmp_path / "third.log", *arguments):
        wait_for(all_counted, SECONDS)
