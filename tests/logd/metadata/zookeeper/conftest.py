"""Fixtures of one ZooKeeper for all tests of the folder; each test has a chroot of its own."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from millstream.zookeeper.ensemble import Ensemble

TICK_MS = 500
"""Sessions last from 1 to 10 s."""
_numbers = itertools.count()


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ensemble]:
    """Yield a server that no test may stop. Skips without Java or PySpark's jars."""
    if shutil.which("java") is None or find_spec("pyspark") is None:
        pytest.skip("ZooKeeper needs Java and PySpark's jars")
    with Ensemble(tmp_path_factory.mktemp("zookeeper"), tick_ms=TICK_MS) as running:
        yield running


@pytest.fixture
def connect(ensemble: Ensemble) -> str:
    """A `zookeeper.connect` with a chroot that is not there yet."""
    return f"{ensemble.connect_string}/test-{os.getpid()}-{next(_numbers)}/kafka"
