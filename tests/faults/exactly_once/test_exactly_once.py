"""Consume, transform, produce in three processes: each record once, whatever is killed or stopped.

All kinds of kills once, and more of them by MILLSTREAM_DEPTH; for ten minutes and more:

    python -m tests.faults.exactly_once --broker kafka --seconds 600
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.faults.exactly_once.story import SETTINGS, Story
from tests.support import depth, java
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.logd_process import LogdProcess

SECONDS = 5
"""All kinds of things once take longer, mostly."""


@depth.deep
@pytest.mark.parametrize("seed", [1, 2], ids=["cooperative", "eager"])
def test_on_logd(tmp_path: Path, seed: int) -> None:
    with LogdProcess(tmp_path / "logd", SETTINGS) as logd:
        goes_well(logd, tmp_path, seed)


@java.needs_kafka_3
def test_on_apache_kafka(tmp_path: Path) -> None:
    """Kafka 3.9: once it has been killed, 4.4 may leave a transaction's offsets pending for minutes."""
    with ApacheKafka(tmp_path / "kafka", SETTINGS, libs=java.LIBS_3) as kafka:
        goes_well(kafka, tmp_path, seed=3)


def goes_well(broker: BrokerProcess, folder: Path, seed: int) -> None:
    story = Story(broker, folder, seed)
    asyncio.run(story.run(depth.times(SECONDS)))
    assert story.figures["zombies fenced by the transactional id"]
    assert story.figures["records committed in the output"] > 0
    assert story.figures["workers told: aborted"] + story.figures["workers told: refused"] > 0
