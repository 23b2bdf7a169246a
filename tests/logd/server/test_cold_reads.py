"""Records whose pages are on the disk only: they come all the same, and in the order asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka_client.records import build_batch, decode_records, iter_batches
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.page_cache import forget
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

BATCHES, RECORDS, SIZE = 200, 10, 5000
NOW = 1_700_000_000_000


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a stopped broker with 10 MB in a topic of several segments."""
    logd = LogdProcess(tmp_path_factory.mktemp("cold"), {"log.retention.ms": "-1"})
    with logd:
        create_topic(logd, "t", {"segment.bytes": str(2 << 20)})
        with RawClient(logd.port) as client:
            for number in range(BATCHES):
                records = [(NOW + number, None, b"%08d" % number + os.urandom(SIZE), ())] * RECORDS
                assert client.produce("t", build_batch(records)).error_code == 0
        logd.stop()
    yield logd
    logd.kill()


@pytest.fixture
def cold(filled: LogdProcess) -> LogdProcess:
    """The broker started, without a page of its topic in memory; skips where pages cannot be given back."""
    filled.kill()
    filled.start()
    folder = Path(filled.overrides["log.dirs"], "t-0")  # type: ignore[arg-type]
    if not all(forget(path) for path in sorted(folder.glob("0*"))):
        pytest.skip("this file system keeps its pages in memory, or does not tell")
    return filled


def read_all(client: RawClient) -> list[int]:
    numbers: list[int] = []
    while len(numbers) < BATCHES:
        fetched = client.fetch("t", len(numbers) * RECORDS, max_wait_ms=5000)
        assert fetched.error_code == 0
        for pos, header in iter_batches(fetched.records):
            assert header.base_offset == len(numbers) * RECORDS
            numbers.append(int((decode_records(fetched.records, pos)[0][3] or b"")[:8]))
    return numbers


def test_all_records_come(cold: LogdProcess) -> None:
    with RawClient(cold.port) as client:
        assert read_all(client) == list(range(BATCHES))
    cold.stop()


@deep
def test_answers_come_in_the_order_of_the_requests(cold: LogdProcess) -> None:
    offsets = [1500, 0, 500, 1990, 1000]
    with RawClient(cold.port) as client:
        for offset in offsets:
            client.send_fetch("t", offset, partition_max_bytes=100)
        got = []
        for _ in offsets:
            records = client.receive(1, 12).responses[0].partitions[0].records
            got.append(next(header.base_offset for _, header in iter_batches(records)))
    assert got == offsets
    cold.stop()


def test_who_hangs_up_meanwhile_harms_nobody(cold: LogdProcess) -> None:
    for number in range(20):
        with RawClient(cold.port) as client:
            client.send_fetch("t", number * 100)
    with RawClient(cold.port) as client:
        assert read_all(client) == list(range(BATCHES))
    assert "Traceback" not in cold.log
    cold.stop()


def test_offsets_of_times_long_gone(cold: LogdProcess) -> None:
    numbers = [150, 7, 99]
    with RawClient(cold.port) as client:
        for number in numbers:
            partition = ListOffsetsPartition(partition_index=0, timestamp=NOW + number)
            topic = ListOffsetsTopic(name="t", partitions=[partition])
            answer = client.request(ListOffsetsRequest(replica_id=-1, topics=[topic]), 8)
            assert answer.topics[0].partitions[0].offset == number * RECORDS
    cold.stop()
