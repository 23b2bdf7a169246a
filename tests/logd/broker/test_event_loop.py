"""Nothing that may wait for the disk is done in the event loop (docs/design.md).

A broker lives through all it knows while its disk notes which thread asks: fsync, deletions and reads that
need not be in memory belong into the thread pool. It begins with nothing, is stopped and started, killed and
started; each time everything is done again, since what memory holds of a log differs.
"""

from __future__ import annotations

import asyncio
import itertools
import shutil
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kafka_client.records import build_batch
from kafka_client.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from kafka_client.wire.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafka_client.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from logd.broker.broker import Broker
from logd.config.broker import BrokerConfig
from logd.server.server import Server
from tests.support.depth import deep
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import Writer
from tests.support.requests import (
    BROKER_CONFIG,
    TOPIC_CONFIG,
    offset_commit,
    record_deletion,
    setting_change,
    topic_creation,
    topic_growth,
)
from tests.support.waiting import wait_for
from tests.support.watched_disk import WatchedDisk

LONG_MS = "3600000"
SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "log.segment.bytes": "3000",
    "log.index.interval.bytes": "300",
    "log.segment.delete.delay.ms": "1",
    "log.cleaner.backoff.ms": "20",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.cleaner.min.compaction.lag.ms": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "millstream.flush.interval.ms": LONG_MS,
    "log.retention.check.interval.ms": LONG_MS,
}
TOPICS = {
    "plain": {"retention.ms": "-1"},
    "durable": {"flush.messages": "1", "retention.ms": "-1"},
    "timed": {"message.timestamp.type": "LogAppendTime", "segment.ms": "50"},
    "compacted": {"cleanup.policy": "compact", "max.compaction.lag.ms": "1000000"},
    "again": {},
}
PRODUCERS = 3


class Life:
    """A broker in a thread, from start to end; `client` is connected to it, `epochs` are producer epochs."""

    def __init__(self, folder: Path, disk: WatchedDisk, epochs: Iterator[int]) -> None:
        self.folder = folder
        self.epochs = epochs
        self.broker: Broker
        self.client: RawClient
        self._disk = disk
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._ready = threading.Event()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine in the broker's event loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(30)

    async def _live(self) -> None:
        folders = ",".join(str(self.folder / name) for name in ("a", "b"))
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self.broker = Broker(BrokerConfig.of({**SETTINGS, "log.dirs": folders}), disk=self._disk)
        server = Server(self.broker)
        server.bind()
        await self.broker.start()
        self._disk.watch()
        server.accept()
        self._ready.set()
        await self._stop.wait()
        await server.close()
        self._disk.unwatch()
        await self.broker.stop()

    @contextmanager
    def lived(self) -> Iterator[Life]:
        thread = threading.Thread(target=lambda: asyncio.run(self._live()))
        thread.start()
        try:
            assert self._ready.wait(30)
            with RawClient(self.broker.endpoint.port) as self.client:
                yield self
        finally:
            self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(30)
            assert not thread.is_alive()

    def log(self, topic: str, index: int = 0) -> Any:
        return self.broker.catalog.partitions[topic, index].log


# What clients do


def create(life: Life, *names: str) -> None:
    for name in names:
        (created,) = life.client.request(topic_creation(name, 2, TOPICS[name]), 7).topics
        assert created.error_code == 0, created.error_message


def produce(life: Life, topic: str, count: int = 20) -> None:
    """Produce enough records for several segments, with keys for the cleaner."""
    for number in range(count):
        record = (int(time.time() * 1000), b"k%d" % (number % 3), b"v" * 300, ())
        assert life.client.produce(topic, [record]).error_code == 0


def produce_idempotently(life: Life) -> None:
    epoch = next(life.epochs)
    for producer_id in range(1000, 1000 + PRODUCERS):
        for number in range(6):
            batch = build_batch(
                [(1, None, b"v" * 300, ())],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=number,
            )
            assert life.client.produce("plain", batch).error_code == 0


def transact(life: Life) -> None:
    for commit in (True, False, True, False):
        writer = Writer.begin(life.client, "tid")
        for topic in ("plain", "durable"):
            writer.add_partition(topic, 0)
            assert writer.produce(topic, 0) == 0
        writer.end(commit=commit)


def commit_offsets(life: Life) -> None:
    request = offset_commit("g", "plain", 0, 3)

    def is_committed() -> bool:
        answer = life.client.request(request, 8)
        return bool(answer.topics[0].partitions[0].error_code == 0)

    life.run(life.broker.groups.ensure_topic())
    for _ in range(20):
        wait_for(is_committed)


def read(life: Life) -> None:
    for topic in TOPICS:
        for isolation in (0, 1):
            offset = life.log(topic).log_start_offset
            while offset < life.log(topic).log_end_offset:
                fetched = life.client.fetch(
                    topic, offset, isolation_level=isolation, partition_max_bytes=1000
                )
                assert fetched.error_code == 0
                offset += 5
        for timestamp in (-1, -2, -3, 1, int(time.time() * 1000) - 100):
            row = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
            request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[row])])
            assert life.client.request(request, 7).topics[0].partitions[0].error_code == 0


def describe(life: Life) -> None:
    assert life.client.request(DescribeLogDirsRequest(), 4).error_code == 0
    life.client.request(
        DescribeProducersRequest(topics=[TopicRequest(name="plain", partition_indexes=[0])]), 0
    )


def delete_records(life: Life) -> None:
    offset = life.log("plain").log_start_offset + 12
    response = life.client.request(record_deletion("plain", 0, offset), 2)
    assert response.topics[0].partitions[0].error_code == 0


def delete_and_create_again(life: Life) -> None:
    """Delete a topic and create it again under the same name, while a checkpoint still has the old one."""
    produce(life, "again")
    life.run(life.broker.housekeeping.flush_all())
    for _ in range(2):
        (deleted,) = life.client.request(DeleteTopicsRequest(topic_names=["again"]), 5).responses
        assert deleted.error_code == 0
        create(life, "again")
        produce(life, "again", 1)


def grow(life: Life) -> None:
    count = len(life.broker.catalog.find("plain").partitions) + 1
    (grown,) = life.client.request(topic_growth("plain", count), 3).results
    assert grown.error_code == 0


def alter(life: Life) -> None:
    configure(life, TOPIC_CONFIG, "plain", "max.message.bytes", "99999")
    configure(life, BROKER_CONFIG, "", "message.max.bytes", "99999")


def move(life: Life) -> None:
    partition = life.broker.catalog.partitions["plain", 0]
    there = life.folder / ("b" if partition.directory.path.name == "a" else "a")
    topic = AlterReplicaLogDirTopic(name="plain", partitions=[0])
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(there), topics=[topic])])
    answer = life.client.request(request, 2)
    assert answer.results[0].partitions[0].error_code == 0
    wait_for(lambda: partition.directory.path == there and not life.broker.moves.futures)


# What goes on by the clock


def keep_house(life: Life) -> None:
    house = life.broker.housekeeping
    for work in (
        house.apply_retention,
        house.flush_due,
        house.flush_all,
        house.write_checkpoints,
        house.expire_producers,
        house.close_idle_files,
        house.close_idle_files,
    ):
        life.run(work())


def retain(life: Life) -> None:
    """Run retention by size, by time, and of the active segment."""
    for value in ("4000", "-1"):
        configure(life, TOPIC_CONFIG, "again", "retention.bytes", value)
        produce(life, "again")
        keep_house(life)
    configure(life, TOPIC_CONFIG, "again", "retention.ms", "1")
    wait_for(lambda: _is_empty_after_retention(life))


def _is_empty_after_retention(life: Life) -> bool:
    life.run(life.broker.housekeeping.apply_retention())
    log = life.log("again")
    return bool(log.log_start_offset == log.log_end_offset)


def configure(life: Life, kind: int, name: str, key: str, value: str) -> None:
    response = life.client.request(setting_change(kind, name, key, value), 1)
    assert response.responses[0].error_code == 0


def compact(life: Life) -> None:
    produce(life, "compacted", 40)
    log = life.log("compacted")
    before = log.size
    life.run(life.broker.housekeeping.flush_all())  # before that there is nothing to compact
    wait_for(lambda: log.size < before)


WORKS: tuple[Callable[[Life], None], ...] = (
    lambda life: produce(life, "plain"),
    lambda life: produce(life, "durable"),
    lambda life: produce(life, "timed"),
    produce_idempotently,
    transact,
    commit_offsets,
    keep_house,
    # Again, now that idle logs have released their memory.
    lambda life: produce(life, "plain"),
    produce_idempotently,
    transact,
    read,
    describe,
    delete_records,
    delete_and_create_again,
    grow,
    alter,
    move,
    retain,
    compact,
    keep_house,
    read,
)


def killed(folder: Path, target: Path) -> Path:
    """Copy a folder as a kill would leave it, and return the copy."""

    def copy(source: str, copied: str) -> None:
        with suppress(FileNotFoundError):  # deleted meanwhile
            shutil.copy2(source, copied)

    ignored = shutil.ignore_patterns(".lock", "*.tmp", "*-delete", "*.deleted")
    shutil.copytree(folder, target, ignore=ignored, copy_function=copy)
    return target


@deep
@pytest.mark.filterwarnings("error")
def test_nothing_waits_for_the_disk_in_the_event_loop(tmp_path: Path) -> None:
    disk = WatchedDisk()
    folder, epochs = tmp_path / "0", itertools.count()
    with disk.installed():
        for number in range(3):
            with Life(folder, disk, epochs).lived() as life:
                if number == 0:
                    create(life, *TOPICS)
                for work in WORKS:
                    work(life)
                if number == 1:
                    produce_idempotently(life)
                    folder = killed(folder, tmp_path / "killed")
    assert {"fdatasync", "fsync", "unlink", "rmdir"} <= disk.operations_elsewhere, "nothing was watched"
    kinds = {wait.stack: str(wait) for wait in disk.waits}
    assert not kinds, f"{len(kinds)} kinds of waiting in the event loop:\n" + "\n".join(kinds.values())
