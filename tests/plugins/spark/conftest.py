"""Fixtures of one broker and one Spark driver for all tests; Spark starts while the first tests prepare."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from plugins.spark.driver import SparkDriver, acquire_driver, release_driver
from plugins.spark.settings import SparkSettings
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess

_numbers = itertools.count()


@pytest.fixture(scope="session")
def driver() -> Iterator[SparkDriver]:
    shared = acquire_driver(SparkSettings())
    yield shared
    release_driver(shared)


@pytest.fixture(scope="session")
def log(driver: SparkDriver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    with LogdProcess(tmp_path_factory.mktemp("spark-logd")) as logd:
        yield Log(logd.bootstrap)


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Names of topics and views no other test uses."""
    return lambda: f"t{next(_numbers)}"
