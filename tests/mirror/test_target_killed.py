"""A compacted source full of transactions is copied into a target that is killed meanwhile.

The oracle is the writers' list of committed records of each partition, in order. The target has only a part
of them, since the source's compaction may remove a record before it is copied. They come in order, none
twice, none of an aborted transaction or after an open one. The last record of every key is there, and every
record that the source still has.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import pytest

from kafka_client import Admin, BatchFetcher, Client, TopicPartition
from kafka_client.records import NewRecord
from tests.mirror.conftest import NO_CLEANER, QUICK_LOGD_CLEANER
from tests.mirror.pair import Pair, start_mirror, target_ends
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.transaction import TransactionalProducer
from tests.support.waiting import wait_for

pytestmark = deep

PARTITIONS, KEYS, RECORDS = 2, 7, 20
CLEANED = {
    "cleanup.policy": "compact",
    "segment.ms": "1",  # each batch rolls the segment before it: rounds are a minute apart
    "min.cleanable.dirty.ratio": "0.01",
    "retention.ms": "-1",
}
MINUTE = 60_000
SECONDS = 60.0

Found = dict[int, list[tuple[bytes | None, bytes | None]]]
"""Keys and values by partition."""


class Writers:
    """Transactions that are committed and aborted in turn, and records of no transaction between them."""

    def __init__(self, client: RawClient, topic: str) -> None:
        self._client = client
        self._topic = topic
        self._round = 0
        self._producer = TransactionalProducer(client, f"{topic}-writer")
        self.committed: Found = defaultdict(list)

    def records(self) -> list[NewRecord]:
        """Return the records of one round; no two have the same value."""
        time = 1_700_000_000_000 + self._round * MINUTE
        return [
            (time, b"key-%d" % ((self._round + i) % KEYS), b"%d-%d" % (self._round, i), ())
            for i in range(RECORDS)
        ]

    def write(self, rounds: int) -> None:
        for _ in range(rounds):
            self._round += 1
            records = self.records()
            is_plain, is_committed = self._round % 3 == 0, self._round % 3 != 1
            for partition in range(PARTITIONS):
                if is_plain:
                    assert self._client.produce(self._topic, records, partition=partition).error_code == 0
                else:
                    self._producer.send(self._topic, records, partition=partition)
                if is_committed:
                    self.committed[partition] += [record[1:3] for record in records]
            if not is_plain:
                self._producer.end(commit=is_committed)


async def _read(bootstrap: str, topic: str) -> Found:
    records: Found = {}
    async with Client(bootstrap) as client:
        if topic not in await Admin(client).list_topics():
            return {}
        tps = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        specs = dict.fromkeys(tps, "latest")
        ends = await Admin(client).list_offsets(specs, isolation_level="read_committed")
        async with BatchFetcher(client, isolation_level="read_committed") as fetcher:
            fetcher.assign(dict.fromkeys(tps, 0))
            records = {tp.partition: [] for tp in tps}
            while any(fetcher.position(tp) < ends[tp].offset for tp in tps):
                for fetched in await fetcher.fetch(timeout_ms=1000):
                    records[fetched.tp.partition] += [record[2:4] for record in fetched.records()]
    return records


def read(bootstrap: str, topic: str) -> Found:
    """Return the records that a reader of committed records gets, by partition."""
    return asyncio.run(_read(bootstrap, topic))


def assert_copied(source: Found, target: Found, committed: Found) -> None:
    assert target.keys() == committed.keys()
    for partition, records in target.items():
        history = committed[partition]
        places = [history.index(record) for record in records]
        assert places == sorted(set(places)), "in order, and once"
        assert set(source[partition]) <= set(records)
        assert dict(records) == dict(history), "the last of every key"


@pytest.mark.timeout(240)
def test_a_compacted_source_of_transactions_into_a_target_that_is_killed(tmp_path: Path) -> None:
    topic, remote = "topic", "dc1.topic"
    with (
        LogdProcess(tmp_path / "dc1", QUICK_LOGD_CLEANER) as dc1,
        LogdProcess(tmp_path / "dc2", NO_CLEANER) as dc2,
        RawClient(dc1.port) as client,
    ):
        pair = Pair(dc1.bootstrap, dc2.bootstrap)
        asyncio.run(pair.create(topic, PARTITIONS, **CLEANED))
        config = tmp_path / "mm2.properties"
        config.write_text("".join(f"{key} = {value}\n" for key, value in pair.properties(topic).items()))
        writers = Writers(client, topic)
        writers.write(12)

        def cleaned() -> bool:
            records = read(pair.dc1, topic)
            return all(
                len(records[partition]) < len(writers.committed[partition]) // 2 for partition in records
            )

        def copied() -> int:
            return sum(asyncio.run(target_ends(pair, topic)).values())

        wait_for(cleaned, SECONDS)
        mirror = start_mirror(config)
        try:
            for _ in range(3):
                before = copied()
                writers.write(6)
                wait_for(lambda before=before: copied() > before, SECONDS)  # type: ignore[misc]
                writers.write(3)
                dc2.kill()
                writers.write(3)
                dc2.start()
                assert mirror.poll() is None, "it waits for the target"
        finally:
            mirror.kill()
            mirror.wait(SECONDS)
        # Nothing behind an open transaction's first record goes on.
        committed = {partition: list(records) for partition, records in writers.committed.items()}
        late = TransactionalProducer(client, "late")
        late.send(topic, [(1_700_100_000_000, b"late", b"late", ())], partition=0)
        writers.write(3)
        wait_for(lambda: writers.committed[1][-1] in read(pair.dc1, topic)[1], SECONDS)  # markers follow
        assert start_mirror(config, "--until-caught-up").wait(SECONDS) == 0
        assert_copied({0: [], 1: []}, read(pair.dc2, remote), {0: committed[0], 1: writers.committed[1]})
        late.end(commit=True)
        wait_for(lambda: (b"late", b"late") in read(pair.dc1, topic)[0], SECONDS)
        writers.committed[0].insert(len(committed[0]), (b"late", b"late"))
        assert start_mirror(config, "--until-caught-up").wait(SECONDS) == 0
        assert_copied(read(pair.dc1, topic), read(pair.dc2, remote), writers.committed)
        for broker in (dc1, dc2):
            assert "Traceback" not in broker.log
