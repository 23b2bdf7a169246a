"""A broker, and a bench of exactly-once source tasks on it."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator

import pytest

from connect.stores import OffsetTopics
from kafka_client import Admin, Client, NewTopic
from tests.support.exactly_once_bench import Bench, worker
from tests.support.logd_process import LogdProcess

_numbers = itertools.count()


@pytest.fixture(scope="package")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


@pytest.fixture
async def bench(logd: LogdProcess) -> AsyncIterator[Bench]:
    async with Client(logd.bootstrap) as client:
        topic = f"numbers-{next(_numbers)}"
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        store = await OffsetTopics.open(client, worker().offset_topic(), exactly_once=True)
        yield Bench(client, store, topic)
        await store.close()
