"""Fetching ends when it is told to, whatever comes at that moment."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from kafka_client import TopicPartition
from kafka_client.fetcher.buffer import FetchBuffer
from kafka_client.fetcher.fetch_metrics import FetchMetrics
from kafka_client.fetcher.node import FetchSettings, NodeFetch

NODE = 1
SETTINGS = FetchSettings(
    isolation_level="read_committed",
    fetch_min_bytes=1,
    fetch_max_wait_ms=500,
    fetch_max_bytes=1_000,
    max_partition_fetch_bytes=1_000,
    client_rack="",
    fetch_sessions=True,
)


async def test_an_end_that_comes_with_news_is_one() -> None:
    """While a partition backs off, so that there is a time to wait for; `asyncio.wait_for` would go on."""
    buffer, tp = FetchBuffer(1_000), TopicPartition("t", 0)
    unused: Any = SimpleNamespace(backoff=lambda: None)
    node = NodeFetch(
        unused,
        NODE,
        lane="fetch",
        settings=SETTINGS,
        buffer=buffer,
        director=unused,
        metrics=FetchMetrics(),
    )
    buffer.add(tp, 0, -1)
    buffer.partitions[tp].found_leader(NODE, 0, b"i" * 16)
    buffer.partitions[tp].back_off(asyncio.get_running_loop().time() + 3600)
    running = asyncio.create_task(node.run())
    for _ in range(3):
        await asyncio.sleep(0)
    node.wake()
    running.cancel()
    _, still = await asyncio.wait([running], timeout=10)
    assert not still, "it goes on for ever, and whoever closes the fetcher waits"
