"""Fetches with `read_committed` stop at the last stable offset and name the aborted transactions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_client.records import build_batch, decode_records, iter_batches
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.transaction import TransactionalProducer
from tests.support.waiting import wait_for

Make = Callable[..., str]
COMMITTED = {"isolation_level": 1}
LATEST, MAX_TIMESTAMP = -1, -3
NOW = int(time.time() * 1000)
"""Timestamp of the records: markers have the broker's time, and old records next to them would roll
segments.
"""
TRANSACTIONS = 90
"""Count of transactions: with markers and records, more batches than a segment caches positions of."""


@pytest.fixture
def producer(client: RawClient, new_name: Callable[[str], str]) -> TransactionalProducer:
    return TransactionalProducer(client, new_name("transaction"))


@pytest.fixture
def other(logd: LogdProcess, new_name: Callable[[str], str]) -> Iterator[TransactionalProducer]:
    with RawClient(logd.port) as client:
        yield TransactionalProducer(client, new_name("transaction"))


def record(value: str, timestamp: int = NOW) -> tuple[int, bytes | None, bytes | None, tuple[()]]:
    return timestamp, None, value.encode(), ()


def values(fetched: Any) -> list[bytes | None]:
    """Return the values of all data records, aborted ones included."""
    data = fetched.records
    return [
        record[3]
        for pos, header in iter_batches(data)
        if not header.is_control
        for record in decode_records(data, pos)
    ]


def aborted(fetched: Any) -> list[tuple[int, int]]:
    return [(entry.producer_id, entry.first_offset) for entry in fetched.aborted_transactions]


def stable_offset(client: RawClient, topic: str) -> int:
    offset: int = client.fetch(topic, **COMMITTED).last_stable_offset
    return offset


def test_an_open_transaction_holds_readers_back(
    client: RawClient, make_topic: Make, producer: TransactionalProducer
) -> None:
    name = make_topic()
    client.produce(name, [record("before")])
    producer.send(name, [record("open")])
    client.produce(name, [record("after")])
    committed = client.fetch(name, **COMMITTED)
    assert values(committed) == [b"before"]
    assert (committed.last_stable_offset, committed.high_watermark) == (1, 3)
    assert committed.aborted_transactions == []
    everything = client.fetch(name)
    assert values(everything) == [b"before", b"open", b"after"]
    assert everything.last_stable_offset == 1
    assert everything.aborted_transactions is None
    assert client.fetch(name, 2, **COMMITTED).records == b"", "above the last stable offset: nothing yet"
    producer.end(commit=True)
    wait_for(lambda: stable_offset(client, name) == 4)
    assert values(client.fetch(name, **COMMITTED)) == [b"before", b"open", b"after"]


def test_the_marker_ends_the_wait(
    client: RawClient, make_topic: Make, producer: TransactionalProducer, logd: LogdProcess
) -> None:
    name = make_topic()
    producer.send(name, [record("a")])
    with RawClient(logd.port) as waiting:
        waiting.send_fetch(name, max_wait_ms=60_000, **COMMITTED)
        client.produce(name, [record("wakes it, to no end")])
        producer.end(commit=True)
        fetched = waiting.receive(1, 12).responses[0].partitions[0]
    assert values(fetched)[0] == b"a"


def test_aborted_transactions_are_named(
    client: RawClient, make_topic: Make, producer: TransactionalProducer, other: TransactionalProducer
) -> None:
    name = make_topic()
    first = producer.send(name, [record("aborted")])
    second = other.send(name, [record("aborted too")])
    producer.end(commit=False)
    wait_for(lambda: stable_offset(client, name) == second)
    other.end(commit=False)
    wait_for(lambda: stable_offset(client, name) == 4)
    producer.send(name, [record("committed")])
    producer.end(commit=True)
    wait_for(lambda: stable_offset(client, name) == 6)
    fetched = client.fetch(name, **COMMITTED)
    assert values(fetched) == [b"aborted", b"aborted too", b"committed"]
    assert aborted(fetched) == [(producer.producer_id, first), (other.producer_id, second)]
    assert aborted(client.fetch(name, 4, **COMMITTED)) == []


@pytest.mark.parametrize("segment_bytes", [1_000_000, 10_000])
def test_no_more_is_named_than_what_is_read_needs(
    client: RawClient, make_topic: Make, producer: TransactionalProducer, segment_bytes: int
) -> None:
    """Responses name only the aborted transactions that overlap their records, also for a reader that lags
    far behind.
    """
    name = make_topic({"segment.bytes": str(segment_bytes), "index.interval.bytes": "1000"})
    firsts = []
    for number in range(TRANSACTIONS):
        firsts.append(producer.send(name, [record("x" * 40)]))
        producer.end(commit=False)
        wait_for(lambda number=number: stable_offset(client, name) == 3 * number + 2)  # type: ignore[misc]
        client.produce(name, [record("y" * 40)])
    position, named, most = 0, set[int](), 0
    while position < 3 * len(firsts):
        fetched = client.fetch(name, position, partition_max_bytes=2000, **COMMITTED)
        headers = [header for _, header in iter_batches(fetched.records)]
        end = headers[-1].next_offset
        entries = {offset for _, offset in aborted(fetched)}
        assert {offset for offset in firsts if position <= offset < end} <= entries
        named |= entries
        most = max(most, len(entries))
        position = end
    assert named == set(firsts)
    assert most < 20, f"{most} named for 2000 bytes"


def test_offsets_asked_for_by_a_reader_of_committed_records(
    client: RawClient, make_topic: Make, producer: TransactionalProducer
) -> None:
    def offset(timestamp: int, isolation: int) -> int:
        partition = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        topic = ListOffsetsTopic(name=name, partitions=[partition])
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=[topic])
        answer = client.request(request, 8).topics[0].partitions[0]
        assert answer.error_code == 0
        offset_found: int = answer.offset
        return offset_found

    name = make_topic()
    client.produce(name, [record("before", NOW + 10)])
    producer.send(name, [record("open", NOW + 20)])
    assert (offset(LATEST, 0), offset(LATEST, 1)) == (2, 1)
    assert (offset(NOW + 15, 0), offset(NOW + 15, 1)) == (1, -1)
    assert (offset(NOW, 0), offset(NOW, 1)) == (0, 0)
    assert (offset(MAX_TIMESTAMP, 0), offset(MAX_TIMESTAMP, 1)) == (1, -1)
    producer.end(commit=True)
    wait_for(lambda: offset(LATEST, 1) == 3)
    assert offset(NOW + 15, 1) == 1


@deep
def test_a_restart_forgets_nothing_of_it(tmp_path_factory: pytest.TempPathFactory) -> None:
    with LogdProcess(tmp_path_factory.mktemp("isolation")) as logd:
        with RawClient(logd.port) as client:
            create_topic(logd, "t")
            producer = TransactionalProducer(client, "id")
            producer.send("t", [record("aborted")])
            producer.end(commit=False)
            wait_for(lambda: stable_offset(client, "t") == 2)
            producer.send("t", [record("open")])
            client.produce("t", build_batch([record("after")]))
            expected = client.fetch("t", **COMMITTED)
        logd.kill()
        logd.start()
        with RawClient(logd.port) as client:
            again = client.fetch("t", **COMMITTED)
    assert values(again) == values(expected) == [b"aborted"]
    assert aborted(again) == aborted(expected) == [(producer.producer_id, 0)]
    assert again.last_stable_offset == 2
