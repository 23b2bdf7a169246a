"""A broker for the tests of transactions: logd, or to check the tests themselves, Apache Kafka.

INTEROP_BROKER=kafka KAFKA_LIBS=... python -m pytest tests/interop/transactions
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.interop.transactions.clients.base import LIBRARIES, Library, load
from tests.support.apache_kafka import ApacheKafka
from tests.support.logd_process import LogdProcess

Broker = LogdProcess | ApacheKafka

SETTINGS: Mapping[str, object] = {
    "group.min.session.timeout.ms": 500,
    "transaction.state.log.num.partitions": 5,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 200,
}


@pytest.fixture(scope="session")
def new_broker() -> Callable[[Path], Broker]:
    """Makes a broker in a folder, not started yet."""
    made = ApacheKafka if os.environ.get("INTEROP_BROKER") == "kafka" else LogdProcess
    return lambda folder: made(folder, SETTINGS)


@pytest.fixture(scope="session")
def broker(
    new_broker: Callable[[Path], Broker], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """Yield a broker that is shared by all tests that do not stop it."""
    with new_broker(tmp_path_factory.mktemp("transactions")) as process:
        yield process
    assert "Traceback" not in process.log


@pytest.fixture(params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Library:
    """Return each library in turn."""
    return load(request.param)
