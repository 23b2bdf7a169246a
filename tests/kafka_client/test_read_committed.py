"""Our client reading committed records of real transactions, aborted ones in between."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import pytest

from kafka_client import BatchFetcher, Client, TopicPartition
from kafka_client.fetcher.offsets import LATEST, list_offsets
from tests.kafka_client.running import run
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.transaction import TransactionalProducer

NOW = int(time.time() * 1000)
TRANSACTIONS = 40


def test_nothing_but_what_was_committed(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    """Three producers whose transactions overlap, and records outside of any."""
    topic = create_topic(logd, new_name("committed"))
    committed: list[bytes] = []
    written: list[bytes] = []
    chance = random.Random(1)
    with RawClient(logd.port) as client:
        producers = [TransactionalProducer(client, new_name("id")) for _ in range(3)]
        pending: dict[int, list[bytes]] = {}
        for number in range(TRANSACTIONS):
            index = chance.randrange(3)
            for part in range(chance.randrange(1, 4)):
                value = b"%d.%d" % (number, part)
                producers[index].send(topic, [(NOW, None, value, ())])
                pending.setdefault(index, []).append(value)
                written.append(value)
            alone = b"%d alone" % number
            client.produce(topic, [(NOW, None, alone, ())])
            written.append(alone)
            committed.append(alone)
            if chance.random() < 0.5:
                commit = chance.random() < 0.5
                producers[index].end(commit=commit)
                committed += pending.pop(index) if commit else []
                pending.pop(index, None)
        for index in list(pending):
            producers[index].end(commit=False)

    async def read(isolation: str, max_bytes: int, count: int) -> list[bytes | None]:
        values: list[bytes | None] = []
        async with (
            Client(logd.bootstrap) as client,
            BatchFetcher(
                client,
                isolation_level=isolation,  # type: ignore[arg-type]
                max_partition_fetch_bytes=max_bytes,
            ) as fetcher,
        ):
            partition = TopicPartition(topic, 0)
            fetcher.add(partition, 0)
            while len(values) < count:
                for fetched in await fetcher.fetch():
                    values += [record[3] for record in fetched.records()]
            end = (await list_offsets(client, {partition: LATEST}, isolation_level="read_committed"))[
                partition
            ]
            while fetcher.position(partition) < end.offset:
                for fetched in await fetcher.fetch():
                    values += [record[3] for record in fetched.records()]
        return values

    for max_bytes in (1 << 20, 300):
        assert sorted(run(read("read_committed", max_bytes, len(committed)))) == sorted(committed)  # type: ignore[type-var]
    assert run(read("read_uncommitted", 1 << 20, len(written))) == written


@pytest.mark.parametrize("commit", [True, False])
def test_an_open_transaction_is_waited_for(
    logd: LogdProcess, new_name: Callable[[str], str], commit: bool
) -> None:
    topic = create_topic(logd, new_name("open"))

    async def read() -> list[bytes | None]:
        with RawClient(logd.port) as raw:
            producer = TransactionalProducer(raw, new_name("id"))
            producer.send(topic, [(NOW, None, b"in it", ())])
            async with (
                Client(logd.bootstrap) as client,
                BatchFetcher(client, isolation_level="read_committed", fetch_max_wait_ms=5000) as fetcher,
            ):
                fetcher.add(TopicPartition(topic, 0), 0)
                assert await fetcher.fetch(timeout_ms=100) == []
                producer.end(commit=commit)
                raw.produce(topic, [(NOW, None, b"after it", ())])
                values: list[bytes | None] = []
                while b"after it" not in values:
                    for fetched in await fetcher.fetch():
                        values += [record[3] for record in fetched.records()]
                return values

    assert run(read()) == ([b"in it"] if commit else []) + [b"after it"]
