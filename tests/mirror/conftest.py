"""Two brokers for the whole run, `dc1` and `dc2`; tests that damage one start their own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from tests.mirror.pair import Pair
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess

QUICK_CLEANER = {"log.cleaner.backoff.ms": 50}
QUICK_LOGD_CLEANER = {**QUICK_CLEANER, "millstream.flush.interval.ms": 50}
"""logd's cleaner leaves alone what is not flushed yet, which otherwise takes five seconds."""
QUICK_GROUPS = {"group.min.session.timeout.ms": "500"}
NO_CLEANER = {"log.cleaner.enable": "false"}
_numbers = itertools.count()


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("mirror")
    with LogdProcess(folder / "dc1") as dc1, LogdProcess(folder / "dc2", QUICK_GROUPS) as dc2:
        yield Pair(dc1.bootstrap, dc2.bootstrap)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of an Apache Kafka broker; only tests marked `java.needs_kafka` may use it."""
    with ApacheKafka(tmp_path_factory.mktemp("mirror-kafka"), QUICK_CLEANER) as kafka:
        yield kafka.bootstrap


@pytest.fixture
def new_name() -> Callable[[], str]:
    """Topic names no other test uses."""
    return lambda: f"topic-{next(_numbers)}"
