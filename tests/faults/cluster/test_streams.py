"""Streams exactly once on a cluster that loses leaders and coordinators, while instances are killed as well.

For ten minutes and more:

    python -m tests.faults.streams.random_kills --cluster --minutes 10
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.faults.streams.leaders import Leaders, brokers_for_streams
from tests.faults.streams.story import PATIENCE_SECONDS, PREFIX, Story
from tests.support import depth

SECONDS = 12
PARTITIONS = 4


@depth.deep
@pytest.mark.timeout(3 * PATIENCE_SECONDS)
def test_sums_are_exact(tmp_path: Path, zookeeper: str) -> None:
    with brokers_for_streams(tmp_path / "brokers", zookeeper) as cluster:
        leaders = Leaders(cluster, tmp_path, PREFIX, seed=1)
        story = Story(cluster, tmp_path, seed=1, partitions=PARTITIONS, beside=leaders)
        asyncio.run(story.run(depth.times(SECONDS)))
        cluster.assert_no_tracebacks()
    assert story.figures["records copied, committed"] > 0
