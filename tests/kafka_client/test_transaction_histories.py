"""Random histories of transactional producers, by both transaction versions, read back exactly.

The same on Apache Kafka, 4 with each level of its feature `transaction.version` and 3 as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_client import Client, TransactionalProducer
from kafka_client.producer import transaction_manager
from tests.kafka_client.running import run
from tests.kafka_client.transaction_history import ACTIONS, History, random_actions
from tests.support import depth, java
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.logd_process import LogdProcess

_names = (f"history-{number}" for number in itertools.count())
LENGTH = 40

histories = st.lists(st.sampled_from(ACTIONS), min_size=5, max_size=LENGTH)


@given(histories)
@settings(max_examples=depth.times(40))
def test_with_version_2(logd: LogdProcess, actions: list[str]) -> None:
    run(History(logd.bootstrap, next(_names)).play(actions))


@given(histories)
@settings(max_examples=depth.times(40))
def test_with_version_1(logd: LogdProcess, actions: list[str]) -> None:
    with mock.patch.object(transaction_manager, "IMPLICIT_FROM", 99):
        run(History(logd.bootstrap, next(_names)).play(actions))


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((None, 2), id="kafka-4", marks=java.needs_kafka),
        pytest.param((1, 1), id="kafka-4-level-1", marks=java.needs_kafka),
        pytest.param((0, 1), id="kafka-4-level-0", marks=java.needs_kafka),
        pytest.param(("3", 1), id="kafka-3", marks=java.needs_kafka_3),
    ],
)
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[BrokerProcess, int]]:
    """Apache Kafka, and the version by which its clients write transactions."""
    level, version = request.param
    folder = tmp_path_factory.mktemp("kafka")
    if level == "3":
        made = ApacheKafka(folder, libs=java.LIBS_3)
    else:
        made = ApacheKafka(folder, features={} if level is None else {"transaction.version": level})
    with made as broker:
        yield broker, version


@pytest.mark.parametrize("seed", range(depth.times(4)))
def test_on_apache_kafka(kafka: tuple[BrokerProcess, int], seed: int) -> None:
    broker, _ = kafka
    run(History(broker.bootstrap, next(_names)).play(random_actions(seed, LENGTH)))


async def test_the_version_is_the_clusters(kafka: tuple[BrokerProcess, int]) -> None:
    broker, version = kafka
    async with (
        Client(broker.bootstrap) as client,
        TransactionalProducer(client, next(_names)) as producer,
    ):
        assert producer.transaction_version == version
