"""The broker of the integration tests, and one worker that the scripts of a file share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.connect.integration.conftest import kit, logd, topic
from tests.connect.kafka_workers.worker_script import WorkerScript
from tests.support.logd_process import LogdProcess

__all__ = ["kit", "logd", "topic"]


@pytest.fixture(scope="module")
def worker(logd: LogdProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerScript]:
    """Yield one worker that all tests of a file share."""
    script = WorkerScript(logd.bootstrap, tmp_path_factory.mktemp("worker"))
    try:
        yield script.start()
    finally:
        script.close()
