"""A batch's header was damaged in a segment that is full: what readers say, and where tolerant ones go on.

Offsets 0 to 3 are batches of the first segment, 1 is damaged; 4 to 7 are in the next one. Where a length is
wrong, a broker cannot find the batches behind it in that segment.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator

import pytest

from kafka_client import Admin, BatchFetcher, BatchProducer, Client, NewTopic, TopicPartition
from kafka_client.errors import UnreadableBatch
from tests.support.damaged_log import HEADER_DAMAGE, damage_header
from tests.support.logd_process import LogdProcess

TOPIC = "orders"
TP = TopicPartition(TOPIC, 0)
LAST_GONE = {"magic": 1, "last offset delta": 1, "no length": 3, "huge length": 3}


@pytest.fixture(scope="module", params=sorted(HEADER_DAMAGE))
def damaged(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[LogdProcess, int]]:
    """Start a broker with a damaged log, and yield it with the last offset that the log has lost."""
    with LogdProcess(tmp_path_factory.mktemp("damaged")) as logd:
        asyncio.run(fill(logd.bootstrap))
        logd.stop()
        damage_header(logd.folder / "data", TOPIC, 1, request.param)
        logd.start()
        yield logd, LAST_GONE[request.param]


async def fill(bootstrap: str) -> None:
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(TOPIC, 1, 1, {"segment.bytes": "300"})])
        async with BatchProducer(client, linger_ms=0) as producer:
            for number in range(8):
                await (await producer.send(TOPIC, 0, [(1000, b"k", b"v%d" % number, ())]))


def consume(logd: LogdProcess, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "millstream", "consume", TOPIC, "--exit", "-f", "%v ", *options]
    return subprocess.run(
        [*command, "-b", logd.bootstrap],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


def test_consume_prints_what_is_before_it_and_names_it(damaged: tuple[LogdProcess, int]) -> None:
    logd, last = damaged
    done = consume(logd)
    assert done.stdout.split() == ["v0"] and done.returncode == 1
    assert f"{TP}: the batch of offsets 1 to {last} cannot be read" in done.stderr
    assert f"seek to offset {last + 1} " in done.stderr


def test_consume_goes_on_behind_it_and_counts(damaged: tuple[LogdProcess, int]) -> None:
    logd, last = damaged
    done = consume(logd, "--skip-errors")
    assert done.stdout.split() == [f"v{number}" for number in (0, *range(last + 1, 8))]
    assert f"{TP}: offsets 1 to {last} left out" in done.stderr
    assert f"{last} record{'s' if last > 1 else ''} left out" in done.stderr and done.returncode == 6


@pytest.mark.parametrize("begin", [1, 2])
def test_it_is_named_from_any_offset_on(damaged: tuple[LogdProcess, int], begin: int) -> None:
    logd, last = damaged

    async def values() -> tuple[list[bytes | None], list[tuple[int, int]]]:
        values_read: list[bytes | None] = []
        unreadable: list[UnreadableBatch] = []
        async with Client(logd.bootstrap) as client, BatchFetcher(client) as fetcher:
            fetcher.add(TP, begin)
            reached = begin
            while reached < 8:
                for fetched in await fetcher.fetch():
                    for part in fetched.parts(100, on_unreadable=unreadable.append):
                        values_read += [record[3] for record in part.records]
                    reached = fetched.next_offset
        return values_read, [(each.first_offset, each.last_offset) for each in unreadable]

    values_read, unreadable = asyncio.run(asyncio.wait_for(values(), 60))
    assert values_read == [b"v%d" % number for number in range(max(last + 1, begin), 8)]
    assert unreadable == ([(begin, last)] if begin <= last else [])


def test_the_broker_says_where_it_is_damaged(damaged: tuple[LogdProcess, int]) -> None:
    logd, last = damaged
    consume(logd)
    if last > 1:
        assert "reading orders-0: orders-0/00000000000000000000.log: batch at byte 71 with length" in logd.log
