"""What is read through fetch sessions is what is read without, whatever happens; see `session_history`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.logd.client.running import run
from tests.logd.client.session_history import History
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import seeds
from tests.support.logd_process import LogdProcess

STEPS = 40


@pytest.mark.parametrize("seed", seeds(6))
def test_sessions_change_nothing_of_what_is_read(tmp_path: Path, seed: int) -> None:
    with LogdProcess(tmp_path / "logd") as logd:

        def kill_and_start() -> None:
            logd.kill()
            logd.start()

        async def restart() -> None:
            await asyncio.to_thread(kill_and_start)

        run(History(logd.bootstrap, f"seed-{seed}", seed, restart).run(STEPS))


@java.needs_kafka
def test_sessions_of_apache_kafka_change_nothing_of_what_is_read(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path / "kafka") as kafka:
        for seed in range(2):
            run(History(kafka.bootstrap, f"seed-{seed}", seed).run(STEPS // 2))
