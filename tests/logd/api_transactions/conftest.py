"""Fixtures: a raw client of the shared broker, topics, and raw transactional producers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.logd.api_transactions.producers import RawProducer, make_topic
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient


@pytest.fixture
def client(logd: LogdProcess) -> Iterator[RawClient]:
    with RawClient(logd.port) as raw:
        yield raw


@pytest.fixture
def topic(client: RawClient, new_name: Callable[..., str]) -> str:
    """Create a topic of three partitions and return its name."""
    return make_topic(client, new_name(), 3)


@pytest.fixture
def transactional_id(new_name: Callable[..., str]) -> str:
    return new_name("transactional")


@pytest.fixture(params=[0, 2], ids=["version 0", "version 2"])
def producer(request: pytest.FixtureRequest, client: RawClient, transactional_id: str) -> RawProducer:
    """Return a producer of either transaction version, ready for its first transaction."""
    raw = RawProducer(client, transactional_id, version=request.param)
    assert raw.init() == 0
    return raw


@pytest.fixture
def bumping(client: RawClient, transactional_id: str) -> RawProducer:
    """Return a producer of transaction version 2, ready for its first transaction."""
    raw = RawProducer(client, transactional_id)
    assert raw.init() == 0
    return raw
