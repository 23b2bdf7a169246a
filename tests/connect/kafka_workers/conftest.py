"""The broker of the scripts, which creates no topic by itself, and one worker that a file's scripts share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connect.integration.conftest import kit, topic
from tests.connect.kafka_workers.worker_script import WorkerScript
from tests.support.logd_process import LogdProcess

__all__ = ["kit", "topic"]


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a broker that these tests share; tests that stop a broker start their own."""
    settings = {"group.min.session.timeout.ms": "500", "auto.create.topics.enable": "false"}
    with LogdProcess(tmp_path_factory.mktemp("logd"), settings) as process:
        yield process


@pytest.fixture(scope="module")
def worker(logd: LogdProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerScript]:
    """Yield one worker that all tests of a file share."""
    script = WorkerScript(logd.bootstrap, tmp_path_factory.mktemp("worker"))
    try:
        yield script.start()
    finally:
        script.close()


@pytest.fixture
def name(worker: WorkerScript, topic: str) -> Iterator[str]:
    """Yield the name of a connector on the shared worker, which is deleted after the test."""
    yield f"connector-{topic}"
    if f"connector-{topic}" in worker.ask("GET", "/connectors")[1]:
        worker.delete(f"connector-{topic}")
