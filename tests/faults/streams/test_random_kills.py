"""Three instances under exactly-once, killed at random for a few seconds, and longer by MILLSTREAM_DEPTH.

For ten minutes and more:

    python -m tests.faults.streams.random_kills --minutes 10 --kafka
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.faults.streams.story import BROKER_SETTINGS, PATIENCE_SECONDS, Story
from tests.support import depth
from tests.support.logd_process import LogdProcess

SECONDS = 8


@depth.deep
@pytest.mark.timeout(2 * PATIENCE_SECONDS)
def test_on_logd(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd", BROKER_SETTINGS) as logd:
        story = Story(logd, tmp_path, seed=1)
        asyncio.run(story.run(depth.times(SECONDS)))
    assert story.figures["records copied, committed"] > 0
    print(dict(story.figures))
