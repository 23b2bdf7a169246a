"""A broker shared by the tests of ``streams``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.logd_process import LogdProcess
from tests.support.memory_folder import memory_folder

_numbers = itertools.count()


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Return the one broker of the whole run; ``new_name`` keeps tests apart."""
    folder = tmp_path_factory.mktemp("logd-streams")
    settings = {
        "group.min.session.timeout.ms": 500,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
    }
    with LogdProcess(folder, settings) as process:
        yield process


@pytest.fixture
def new_name() -> Callable[[str], str]:
    """Names no other test uses."""
    return lambda prefix: f"{prefix}-{next(_numbers)}"


@pytest.fixture
def tmp_path(tmp_path: Path) -> Iterator[Path]:
    """In memory where it can be: state is synced often. The broker's log is on the disk."""
    with memory_folder(tmp_path) as folder:
        yield folder


@pytest.fixture
def kafka_state(tmp_path: Path) -> str:
    """Where Kafka's test driver keeps state."""
    return str(tmp_path / "state")
