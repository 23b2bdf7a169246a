"""Fixtures: one ZooKeeper server for all tests of the folder, and a chroot for each test."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator

import pytest

from millstream.zookeeper.ensemble import Ensemble

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    if shutil.which("java") is None:
        pytest.skip("ZooKeeper needs Java")
    pytest.importorskip("pyspark")
    ensemble = Ensemble(tmp_path_factory.mktemp("zookeeper"), 1, tick_ms=500)
    ensemble.start()
    yield ensemble
    ensemble.stop()


@pytest.fixture
def zookeeper(ensemble: Ensemble) -> str:
    """Return the test's chroot as a value of `zookeeper.connect`."""
    return f"{ensemble.connect_string}/cluster-{next(_numbers)}"
