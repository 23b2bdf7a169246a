"""A partition of several replicas on a real log, whose role says what it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka_client.records import build_batch, iter_batches
from logd.broker.background.flusher import Flusher
from logd.broker.partition.partition import Partition
from logd.broker.partition.replication_role import ReplicationRole
from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.storage import Appended, LogDirectory
from logd.storage.disk import read_slice

NOW = 1_700_000_000_000


class FakeRole:
    """A replication role for tests; `ends` are the log end offsets that it got."""

    def __init__(self, high_watermark: int = 0) -> None:
        self.high_watermark = high_watermark
        self.epoch_start_offset = 0
        self.ends: list[int] = []

    @property
    def leader_high_watermark(self) -> int:
        """See `ReplicationRole`."""
        return self.high_watermark

    @property
    def is_leased(self) -> bool:
        """See `ReplicationRole`."""
        return True

    @property
    def removable_to(self) -> int:
        """See `ReplicationRole`."""
        return LONG_MAX

    def removed(self, offset: int) -> None:
        """See `ReplicationRole`."""

    def appended(self, log_end_offset: int) -> None:
        """See `ReplicationRole`."""
        self.ends.append(log_end_offset)


class Waiter:
    """A waiter that goes on waiting; `woken` counts its calls."""

    def __init__(self, partition: Partition, *, follower: bool) -> None:
        self.woken = 0
        self._partition = partition
        self._follower = follower
        self._wait()

    def on_commit(self) -> None:
        """See `FollowerWaiter`."""

    def on_append(self) -> None:
        """See `AppendWaiter`."""
        self.woken += 1
        self._wait()

    def _wait(self) -> None:
        self._partition.wait_for_append(self, follower=self._follower)


class Bench:
    """A partition for tests; the thread pool's jobs wait in `started` if it is `slow`."""

    def __init__(
        self, folder: LogDirectory, role: ReplicationRole | None, slow: bool, **configs: str
    ) -> None:
        self.folder = folder
        self.started: list[asyncio.Event] = []
        self._slow = slow
        self.flusher = Flusher(self._run, 1 << 30)
        config = TopicConfig().overridden(configs)
        if ("t", 0) not in folder.logs:
            folder.create_log("t", 0, topic_id=bytes(16), config=config, now_ms=NOW)
        self.partition = Partition(
            folder.logs["t", 0],
            folder,
            bytes(16),
            config,
            self.flusher,
            role=role,
            checkpointed_high_watermark=folder.high_watermarks.get(("t", 0), -1),
        )

    async def _run(self, job: Callable[[], None]) -> None:
        if self._slow:
            go = asyncio.Event()
            self.started.append(go)
            await go.wait()
        job()

    async def release(self) -> None:
        """Run the first job in the pool."""
        self.started.pop(0).set()
        await turns()

    def produce(self, count: int = 1, acks: int = -1, **facts: Any) -> Appended:
        batch = build_batch([(NOW, b"k", b"v", ())] * count, **facts)
        return self.partition.produce(memoryview(batch), NOW, acks)

    def offsets(self, **how: bool) -> list[int]:
        """Return the base offsets of the batches that a reader gets."""
        piece = self.partition.read(self.partition.log_start_offset, 1 << 20, **how)
        data = b"" if piece is None else read_slice(piece)
        return [header.base_offset for _, header in iter_batches(data)]


async def turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@contextmanager
def opened(
    path: Path, role: ReplicationRole | None = None, *, slow: bool = False, **configs: str
) -> Iterator[Bench]:
    folder = LogDirectory.open(
        path,
        node_id=1,
        cluster_id="c",
        config_for=lambda topic: TopicConfig(),
        now_ms=NOW,
        is_replicated=role is not None,
    )
    bench = Bench(folder, role, slow, **{key.replace("_", "."): value for key, value in configs.items()})
    try:
        yield bench
    finally:
        folder.close({bench.partition.tp: bench.partition.high_watermark})


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await work()

    asyncio.run(main())
