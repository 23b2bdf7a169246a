"""Tombstones that the source's cleaner has seen get a delete horizon of their own in the target.

A cleaner that keeps a tombstone writes the delete horizon into its batch (KIP-534): bit 6 of the attributes
is set, and the base timestamp is the horizon. Once the mirror copied the source's horizon with the batch. The
target's first cleaning then removed the tombstone before the target's readers had seen it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator

import pytest

from kafka_client import Admin, BatchFetcher, Client, TopicPartition
from kafka_client.records import NewRecord, Record, decode_records, iter_batches
from tests.mirror.conftest import QUICK_LOGD_CLEANER
from tests.mirror.pair import Pair, produce
from tests.support import java
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

NewName = Callable[[], str]
CLEANED = {
    "segment.ms": "1",  # each batch rolls the segment before it: its records are a minute apart
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "300000",  # the target's is a day
    "retention.ms": "-1",
}
MINUTE = 60_000


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with LogdProcess(tmp_path_factory.mktemp("cleaning"), QUICK_LOGD_CLEANER) as logd:
        yield logd.bootstrap


@deep
@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("logd", "logd"),
        pytest.param("kafka", "logd", marks=java.needs_kafka),
        pytest.param("logd", "kafka", marks=java.needs_kafka),
        pytest.param("kafka", "kafka", marks=java.needs_kafka),
    ],
)
@pytest.mark.timeout(120)
async def test_the_target_gives_a_tombstone_its_own_time(
    request: pytest.FixtureRequest, new_name: NewName, source: str, target: str
) -> None:
    pair = Pair(request.getfixturevalue(source), request.getfixturevalue(target))
    topic = new_name()
    remote = f"dc1.{topic}"
    await pair.create(topic, **CLEANED)
    await produce(pair.dc1, topic, {0: [[record(0, b"k", b"v")]]})
    await produce(pair.dc1, topic, {0: [[record(1, b"k", None)]]}, compression_type="zstd")
    await produce(pair.dc1, topic, {0: [[record(2, b"f", b"1")]]})
    await produce(pair.dc1, topic, {0: [[record(3, b"last", b"")]]})
    async with Client(pair.dc1) as dc1:  # only now, so that it is cleaned once
        await Admin(dc1).incremental_alter_configs(topic, {"cleanup.policy": "compact"})
    (there,) = await until_cleaned(pair.dc1, topic, b"v", b"k")
    assert there[0] is not None, "the source's cleaner notes until when the tombstone stays"

    await pair.copy(topic, **{"config.properties.exclude": "delete.retention.ms"})
    (copied,) = [
        pair_of_both for pair_of_both in await stored(pair.dc2, remote) if pair_of_both[1][2] == b"k"
    ]
    assert copied[0] is None or copied[0] > time.time() * 1000 + 10 * MINUTE, "the source's time"
    assert copied[1][1:] == there[1][1:], "times are counted from the noted moment, and arrive as they were"

    for at, value in ((4, b"2"), (5, b"3")):
        await produce(pair.dc2, remote, {0: [[record(at, b"f", value)]]})
    (remaining,) = await until_cleaned(pair.dc2, remote, b"1", b"k")
    assert remaining[0] is not None
    assert remaining[0] > time.time() * 1000 + 10 * MINUTE


def record(minute: int, key: bytes, value: bytes | None) -> NewRecord:
    return 1_700_000_000_000 + minute * MINUTE, key, value, ()


Found = tuple[int | None, Record]
"""The delete horizon of the record's batch, and the record."""


async def until_cleaned(bootstrap: str, topic: str, removed: bytes, key: bytes) -> list[Found]:
    """Return the stored records of `key` once the record of the value `removed` was cleaned away.

    The topic is then read again: it takes several fetches. A cleaning between two of them shows the first
    segments as they were before the cleaning, and the later ones as they are after it.
    """
    deadline = time.monotonic() + 60
    while any(record[3] == removed for _, record in await stored(bootstrap, topic)):
        assert time.monotonic() < deadline, "not cleaned"
        await asyncio.sleep(0.05)
    return [each for each in await stored(bootstrap, topic) if each[1][2] == key]


async def stored(bootstrap: str, topic: str) -> list[Found]:
    records_so_far: list[Found] = []
    async with Client(bootstrap) as client, BatchFetcher(client) as fetcher:
        tp = TopicPartition(topic, 0)
        end = (await Admin(client).list_offsets({tp: "latest"}))[tp].offset
        fetcher.add(tp, 0)
        while fetcher.position(tp) < end:
            for fetched in await fetcher.fetch():
                for at, header in iter_batches(fetched.buffer):
                    records = decode_records(fetched.buffer, at)
                    records_so_far += [(header.delete_horizon, record) for record in records]
    return records_so_far
