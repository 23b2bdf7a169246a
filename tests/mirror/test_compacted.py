"""A mirror was killed, and before it came back the source compacted what had been copied since the last sync:
its batches give fewer records than the target has.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from kafka_client import Admin, BatchFetcher, Client, TopicPartition
from kafka_client.records import NewRecord, Record
from mirror.errors import PositionUnprovable
from tests.mirror import without_syncs
from tests.mirror.conftest import QUICK_LOGD_CLEANER
from tests.mirror.pair import Pair, produce, target_ends
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

KEYS = 4
SYNCED = 10
"""Records copied before the last sync; as many again are copied after it."""
CLEANED = {
    "segment.ms": "1",  # each batch rolls the segment before it: its records are a minute apart
    "min.cleanable.dirty.ratio": "0.01",
    "retention.ms": "-1",
}


@pytest.fixture(scope="module")
def cleaning(tmp_path_factory: pytest.TempPathFactory, pair: Pair) -> Iterator[Pair]:
    """Yield a pair of clusters whose source compacts at once."""
    with LogdProcess(tmp_path_factory.mktemp("compacted"), QUICK_LOGD_CLEANER) as source:
        yield replace(pair, dc1=source.bootstrap)


@deep
@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a_compacted_topic_goes_on_though_copied_records_cannot_be_counted(
    cleaning: Pair, new_name: Callable[[], str], policy: str, tmp_path: Path
) -> None:
    """Copying stops if the topic is not compacted any more: any record may be missing there."""
    asyncio.run(killed_and_compacted(cleaning, new_name(), policy, tmp_path))


async def killed_and_compacted(pair: Pair, topic: str, policy: str, folder: Path) -> None:
    await pair.create(topic, **CLEANED)
    await fill(pair, topic, range(SYNCED))
    assert await pair.copy(topic) == SYNCED
    await fill(pair, topic, range(SYNCED, 2 * SYNCED))
    await copy_and_be_killed(pair, topic, 2 * SYNCED, folder)
    await configure(pair, topic, "compact")
    await fill(pair, topic, [2 * SYNCED])  # which closes the segment before it
    await until_compacted(pair.dc1, topic)
    await configure(pair, topic, policy)
    if policy == "delete":
        with pytest.raises(PositionUnprovable, match="batches give"):
            await pair.copy(topic)
        return
    here = await stored(pair.dc1, topic)
    assert await pair.copy(topic) == sum(record[0] >= SYNCED for record in here)
    assert await pair.copy(topic) == 0
    there = await stored(pair.dc2, f"dc1.{topic}")
    assert last_values(there) == last_values(here)


async def fill(pair: Pair, topic: str, numbers: range | list[int]) -> None:
    """Write a batch for each number, which is its value; the very last one has a key of its own."""
    await produce(pair.dc1, topic, {0: [[numbered(number)] for number in numbers]})


def numbered(number: int) -> NewRecord:
    key = b"last" if number == 2 * SYNCED else b"key-%d" % (number % KEYS)
    return 1_700_000_000_000 + number * 60_000, key, b"%d" % number, ()


async def copy_and_be_killed(pair: Pair, topic: str, end: int, folder: Path) -> None:
    """Let a mirror copy up to this end of the target, write no sync for it, and be killed."""
    config, log = folder / "mm2.properties", folder / "mirror.log"
    config.write_text("".join(f"{key} = {value}\n" for key, value in pair.properties(topic).items()))
    process = start_without_syncs(config, log)
    try:
        async with asyncio.timeout(60):
            while (await target_ends(pair, topic))[0] < end:
                assert process.poll() is None, log.read_text()
    finally:
        process.kill()
        assert process.wait() == -signal.SIGKILL, log.read_text()


def start_without_syncs(config: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as output:
        command = [sys.executable, "-m", without_syncs.__name__, config]
        return subprocess.Popen(command, stdout=output, stderr=output)


async def configure(pair: Pair, topic: str, policy: str) -> None:
    async with Client(pair.dc1) as client:
        await Admin(client).incremental_alter_configs(topic, {"cleanup.policy": policy})


async def until_compacted(bootstrap: str, topic: str) -> None:
    """Until every key is there once."""
    deadline = time.monotonic() + 60
    while len(records := await stored(bootstrap, topic)) > KEYS + 1:
        assert time.monotonic() < deadline, records
    assert len(last_values(records)) == len(records)


def last_values(records: list[Record]) -> dict[bytes | None, bytes | None]:
    return {record[2]: record[3] for record in records}


async def stored(bootstrap: str, topic: str) -> list[Record]:
    records: list[Record] = []
    async with Client(bootstrap) as client, BatchFetcher(client) as fetcher:
        tp = TopicPartition(topic, 0)
        end = (await Admin(client).list_offsets({tp: "latest"}))[tp].offset
        fetcher.add(tp, 0)
        while fetcher.position(tp) < end:
            for fetched in await fetcher.fetch():
                records += fetched.records()
    return records
