"""A real broker for the stores, and topics that no other test uses."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from connect.stores import InternalTopic
from kafka_client import Client
from tests.support.logd_process import LogdProcess

_numbers = itertools.count()


@pytest.fixture(scope="session")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Yield a broker that these tests share; tests that stop a broker start their own."""
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


@pytest.fixture
async def client(logd: LogdProcess) -> AsyncIterator[Client]:
    async with Client(logd.bootstrap) as client:
        yield client


@pytest.fixture
def topic() -> InternalTopic:
    """A topic that no other test uses; it does not exist yet."""
    return InternalTopic(
        name=f"internal-{next(_numbers)}",
        setting="config.storage.topic",
        purpose="connector configurations",
        replication_factor=1,
    )
