"""Backoff of a follower from a partition whose leader cannot be fetched from."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from logd.broker.cluster.replication.replica_fetcher import FIRST_BACKOFF_S, FetcherSettings, ReplicaFetcher

LIMIT_MS = 1000


async def test_it_grows_from_a_moment_to_the_setting() -> None:
    """Backoff starts short: records wait while a new leader has not heard of its election yet."""
    nobody: Any = None
    fetcher = ReplicaFetcher(
        1,
        follower=nobody,
        peers=nobody,
        settings=FetcherSettings(replica_fetch_backoff_ms=LIMIT_MS),
    )
    following: Any = SimpleNamespace(failures=0, not_before=0.0)
    loop = asyncio.get_running_loop()
    pauses = []
    for _ in range(20):
        before = loop.time()
        fetcher._back_off(following)
        after = loop.time()
        pauses.append((following.not_before - after, following.not_before - before))
    assert pauses[0][0] <= FIRST_BACKOFF_S
    assert all(most >= LIMIT_MS / 2000 for _, most in pauses[10:])
    assert all(least <= LIMIT_MS / 1000 for least, _ in pauses)
