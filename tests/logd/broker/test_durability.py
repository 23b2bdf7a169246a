"""flush.messages and flush.ms over the wire: what is acknowledged was synced, and syncing stops nobody else.

The broker runs in a thread of the test, so that its disk can be slowed down or failed.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import threading
from collections import Counter
from collections.abc import Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import build_batch, decode_records
from kafka_client.wire import encode_request
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_client.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafka_client.wire.produce import encode_produce_request
from logd.broker.broker import Broker
from logd.config.broker import BrokerConfig
from logd.server.server import Server
from logd.storage.disk import PosixFile
from tests.support.depth import deep
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import Writer
from tests.support.topics import make
from tests.support.waiting import SECONDS, wait_for


class Disk:
    """A stand-in for `fdatasync`, which waits while the disk is held and fails while it is broken.

    `requests` counts its calls, `done` its successes, `synced` those of segments by partition.
    """

    def __init__(self) -> None:
        self.free = threading.Event()
        self.free.set()
        self.broken = False
        self.requests = self.done = 0
        self.synced: Counter[str] = Counter()

    def sync(self, file: PosixFile) -> None:
        self.requests += 1
        assert self.free.wait(SECONDS)
        if self.broken:
            raise OSError(errno.EIO, "the disk is gone")
        self.done += 1
        path = Path(os.readlink(f"/proc/self/fd/{file.fd}"))
        if path.suffix == ".log":
            self.synced[path.parent.name] += 1


class Running:
    """A broker that runs in a thread."""

    def __init__(self, folder: Path, settings: Mapping[str, str] | None = None) -> None:
        self.port = 0
        self._settings = settings or {}
        self.broker: Broker
        self._folder = folder
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self._stop: asyncio.Event
        self._loop: asyncio.AbstractEventLoop

    async def _serve(self) -> None:
        config = BrokerConfig.of(
            {
                "log.dirs": str(self._folder),
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "millstream.flush.interval.ms": "3600000",
                "log.retention.check.interval.ms": "86400000",
                **self._settings,
            }
        )
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        broker = self.broker = Broker(config)
        server = Server(broker)
        server.bind()
        await broker.start()
        server.accept()
        self.port = broker.endpoint.port
        self._started.set()
        await self._stop.wait()
        await server.close()
        await broker.stop()

    def end_of(self, topic: str) -> int:
        """Return the log end offset, whether readers may read so far or not."""
        return self.broker.catalog.partitions[topic, 0].log_end_offset

    def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine in the broker's event loop to its end."""
        asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)

    def __enter__(self) -> Running:
        self._thread.start()
        assert self._started.wait(SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk()
    monkeypatch.setattr(PosixFile, "sync", lambda file: disk.sync(file))
    return disk


@pytest.fixture
def logd(disk: Disk, tmp_path: Path) -> Iterator[Running]:
    with Running(tmp_path / "data") as running:
        yield running
        disk.free.set()


def send(client: RawClient, topic: str, value: str, acks: int = -1) -> None:
    client.send_produce(topic, [(1, None, value.encode(), ())], acks=acks)


def answer(client: RawClient) -> Any:
    return client.receive(0, 9).responses[0].partition_responses[0]


def test_flush_messages_1_syncs_before_every_acknowledgement(logd: Running, disk: Disk) -> None:
    """Topics with flush.messages=1 sync before every acknowledgement; others are acknowledged unsynced."""
    with RawClient(logd.port) as client:
        make(client, "durable", flush_messages="1")
        make(client, "plain")
        for number in (1, 2, 3):
            for topic in ("durable", "plain"):
                assert client.produce(topic, [(1, None, b"v", ())]).error_code == 0
            assert (disk.synced["durable-0"], disk.synced["plain-0"]) == (number, 0)


def test_syncing_stops_nobody_else(logd: Running, disk: Disk) -> None:
    with RawClient(logd.port) as slow, RawClient(logd.port) as other:
        make(other, "durable", flush_messages="1")
        make(other, "plain")
        disk.free.clear()
        before = disk.requests
        send(slow, "durable", "a")
        wait_for(lambda: disk.requests > before)
        for _ in range(20):
            assert other.produce("plain", [(1, None, b"v", ())]).error_code == 0
        assert other.fetch("plain").high_watermark == 20
        disk.free.set()
        assert (answer(slow).error_code, disk.done > 0) == (0, True)


def test_those_who_wait_share_a_sync_also_on_one_connection_which_keeps_its_order(
    logd: Running, disk: Disk
) -> None:
    clients = [RawClient(logd.port) for _ in range(4)]
    make(clients[0], "t", flush_messages="1")
    disk.free.clear()
    before = disk.requests
    send(clients[0], "t", "first")
    wait_for(lambda: disk.requests > before)
    for client in clients[1:]:
        send(client, "t", "waits")
        send(client, "t", "waits along")
    with RawClient(logd.port) as reader:
        wait_for(lambda: logd.end_of("t") == 7)
        assert reader.fetch("t", max_wait_ms=0).high_watermark == 0
    disk.free.set()
    assert answer(clients[0]).base_offset == 0
    for client in clients[1:]:
        first, second = answer(client), answer(client)
        assert first.error_code == second.error_code == 0
        assert 1 <= first.base_offset < second.base_offset <= 6
    assert disk.synced["t-0"] == 1 + 1, "the six that waited shared one"
    for client in clients:
        client.close()


def test_without_an_answer_there_is_nothing_to_wait_for(logd: Running, disk: Disk) -> None:
    with RawClient(logd.port) as client:
        make(client, "t", flush_messages="1")
        disk.free.clear()
        before = disk.requests
        send(client, "t", "a", acks=0)
        send(client, "t", "b", acks=0)
        assert client.fetch("t", max_wait_ms=0).high_watermark == 0
        assert logd.end_of("t") == 2
        wait_for(lambda: disk.requests > before)
        disk.free.set()
        wait_for(lambda: client.fetch("t", max_wait_ms=0).high_watermark == 2)


def test_a_sync_that_fails_fails_everybody_who_waits(logd: Running, disk: Disk) -> None:
    with RawClient(logd.port) as first, RawClient(logd.port) as second:
        make(first, "t", flush_messages="1")
        disk.free.clear()
        before = disk.requests
        send(first, "t", "a")
        wait_for(lambda: disk.requests > before)
        send(second, "t", "b")
        disk.broken = True
        disk.free.set()
        assert answer(first).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert answer(second).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert first.produce("t", [(1, None, b"v", ())]).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_every_tenth_message_waits(logd: Running, disk: Disk) -> None:
    with RawClient(logd.port) as client:
        make(client, "t", flush_messages="10")
        before = disk.requests
        for _ in range(9):
            client.produce("t", [(1, None, b"v", ())])
        assert disk.requests == before
        client.produce("t", [(1, None, b"v", ())])
        calls = disk.requests
        assert calls > before
        client.produce("t", [(1, None, b"v", ())])
        assert disk.requests == calls


@deep
def test_flush_ms_is_kept_by_the_clock(logd: Running, disk: Disk) -> None:
    with RawClient(logd.port) as client:
        make(client, "t", flush_ms="1")
        before = disk.done
        client.produce("t", [(1, None, b"v", ())])
        wait_for(lambda: disk.done > before)


def test_a_client_that_goes_away_leaves_the_others_waiting_for_the_same_sync(
    logd: Running, disk: Disk
) -> None:
    with RawClient(logd.port) as staying, RawClient(logd.port) as busy:
        make(busy, "t", flush_messages="1")
        disk.free.clear()
        before = disk.requests
        send(busy, "t", "a")
        wait_for(lambda: disk.requests > before)
        leaving = RawClient(logd.port)
        send(leaving, "t", "b")
        send(staying, "t", "c")
        with RawClient(logd.port) as reader:
            wait_for(lambda: logd.end_of("t") == 3)
            leaving.close()
            reader.fetch("t", max_wait_ms=0)
        disk.free.set()
        assert answer(busy).error_code == answer(staying).error_code == 0


def test_nobody_reads_what_is_not_on_the_disk_yet(logd: Running, disk: Disk) -> None:
    """Records can be read only once they are on the disk.

    A consumer could otherwise read a record, act on it, and find another one at its offset after a power
    loss.
    """
    with RawClient(logd.port) as writer, RawClient(logd.port) as reader, RawClient(logd.port) as waiting:
        make(reader, "t", flush_messages="1")
        reader.produce("t", [(1, None, b"before", ())])
        disk.free.clear()
        before = disk.requests
        send(writer, "t", "a")
        wait_for(lambda: disk.requests > before)
        waiting.send_fetch("t", 1, max_wait_ms=60_000)
        for isolation_level in (0, 1):
            fetched = reader.fetch("t", max_wait_ms=0, isolation_level=isolation_level)
            assert (fetched.high_watermark, fetched.last_stable_offset) == (1, 1)
            assert [record[3] for record in decode_records(fetched.records)] == [b"before"]
            assert latest(reader, "t", isolation_level) == 1
        assert reader.fetch("t", 2, max_wait_ms=0).error_code == 0, "there is such an offset already"
        disk.free.set()
        assert answer(writer).error_code == 0
        assert latest(reader, "t", 1) == 2, "who was answered finds what he wrote"
        fetched = waiting.receive(1, 12).responses[0].partitions[0]  # long before max.wait is over
        assert [record[3] for record in decode_records(fetched.records)] == [b"a"]


def latest(client: RawClient, topic: str, isolation_level: int) -> int:
    topic_row = ListOffsetsTopic(
        name=topic, partitions=[ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )
    request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=[topic_row])
    offset: int = client.request(request, 7).topics[0].partitions[0].offset
    return offset


def test_a_committed_offset_is_told_once_it_is_on_the_disk(logd: Running, disk: Disk) -> None:
    with RawClient(logd.port) as committing, RawClient(logd.port) as asking:
        make(committing, "__consumer_offsets", flush_messages="1")
        make(committing, "t")
        disk.free.clear()
        before = disk.requests
        commit = OffsetCommitRequest(
            group_id="g",
            generation_id_or_member_epoch=-1,
            topics=[
                OffsetCommitRequestTopic(
                    name="t",
                    partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=7)],
                )
            ],
        )
        committing.send(encode_request(commit, 8, 7, "raw"))
        wait_for(lambda: disk.requests > before)
        fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=None)])
        asking.send(encode_request(fetch, 8, 7, "raw"))
        with RawClient(logd.port) as other:
            latest(other, "t", 0)
        assert not select.select([asking.socket], [], [], 0)[0]
        disk.free.set()
        assert committing.receive(commit.API_KEY, 8).topics[0].partitions[0].error_code == 0
        assert asking.receive(fetch.API_KEY, 8).groups[0].topics[0].partitions[0].committed_offset == 7


def test_a_record_comes_into_its_partition_once_its_transaction_is_on_the_disk(
    logd: Running, disk: Disk
) -> None:
    """Transactional batches are appended once their transaction is on the disk.

    A power loss could otherwise take the transaction and leave the record, which blocked readers for good.
    """
    with RawClient(logd.port) as client:
        make(client, "__transaction_state", flush_messages="1")
        make(client, "t")
        writer = Writer.begin(client, "tid")
        disk.free.clear()
        before = disk.requests
        batch = build_batch(
            [(1, None, b"v", ())],
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            base_sequence=0,
            transactional=True,
        )
        chunks = encode_produce_request([("t", [(0, batch)])], 12, 7, "raw", transactional_id="tid")
        client.send(b"".join(bytes(chunk) for chunk in chunks))
        wait_for(lambda: disk.requests > before)
        assert logd.end_of("t") == 0
        disk.free.set()
        answered = client.receive(0, 12).responses[0].partition_responses[0]
        assert (answered.error_code, answered.base_offset, logd.end_of("t")) == (0, 0, 1)
