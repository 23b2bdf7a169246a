"""One server of ZooKeeper for all tests here that leave it alone, and a path in it for each."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.zookeeper.ensemble import Ensemble

TICK_MS = 500
_numbers = itertools.count(1)


def need_zookeeper() -> None:
    """Skip the test where there is none."""
    if shutil.which("java") is None:
        pytest.skip("ZooKeeper needs Java")
    pytest.importorskip("pyspark")


def made(folder: Path, servers: int) -> Ensemble:
    need_zookeeper()
    return Ensemble(folder, servers, tick_ms=TICK_MS)


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """A server; who stops it starts it again."""
    with made(tmp_path_factory.mktemp("zookeeper"), 1) as running:
        yield running


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Three servers; who stops one starts it again."""
    with made(tmp_path_factory.mktemp("three"), 3) as running:
        yield running


@pytest.fixture
def zookeeper(ensemble: Ensemble) -> str:
    """For `zookeeper.connect`."""
    return f"{ensemble.connect_string}/faults-{next(_numbers)}"
