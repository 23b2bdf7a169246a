"""Readers with and without fetch sessions read the same in random histories; see `session_history`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kafka_client.running import run
from tests.kafka_client.session_history import History
from tests.kafka_client.two_brokers import TwoBrokers
from tests.support import depth, java
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess

STEPS = 40


@pytest.mark.parametrize("seed", depth.seeds(6))
def test_sessions_change_nothing_of_what_is_read(tmp_path: Path, seed: int) -> None:
    with LogdProcess(tmp_path / "logd") as logd:

        def kill_and_start() -> None:
            logd.kill()
            logd.start()

        async def restart(_: Sequence[str]) -> None:
            await asyncio.to_thread(kill_and_start)

        events = {"the broker is killed": restart}
        run(History(logd.bootstrap, f"seed-{seed}", seed, events).run(STEPS))


@java.needs_kafka
def test_sessions_of_apache_kafka_change_nothing_of_what_is_read(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka") as kafka:
        for seed in range(2):
            run(History(kafka.bootstrap, f"seed-{seed}", seed).run(STEPS // 2))


@java.needs_kafka
def test_sessions_of_two_brokers_change_nothing_of_what_is_read(tmp_path: Path) -> None:
    """Leaders change by election, and by the kill of the broker that led."""
    with TwoBrokers(tmp_path) as brokers:
        events = {"leaders change": brokers.elect_others, "a broker is killed": brokers.kill_and_start}
        for seed in range(depth.times(1)):
            history = History(brokers.bootstrap, f"seed-{seed}", seed, events, replicas=2)
            run(history.run(STEPS))
        assert brokers.elected > 0 and brokers.killed > 0
