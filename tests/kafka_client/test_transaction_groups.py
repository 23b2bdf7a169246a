"""Offsets in a transaction are refused once their member's generation is over (KIP-447), by logd and by
Apache Kafka alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from unittest import mock

import pytest

from kafka_client import (
    Admin,
    Client,
    Consumer,
    GroupMetadata,
    NewTopic,
    TopicPartition,
    TransactionalProducer,
)
from kafka_client.errors import AbortableTransactionError, ErrorCode, RebalanceNeeded, TransactionRebalanced
from kafka_client.group.coordinator import fetch_offsets
from kafka_client.producer import transaction_manager
from tests.kafka_client.running import run
from tests.support import java
from tests.support.apache_kafka import ApacheKafka
from tests.support.broker_process import BrokerProcess
from tests.support.depth import deep

STRANGERS: dict[str, tuple[Callable[[GroupMetadata], GroupMetadata], ErrorCode]] = {
    "past generation": (
        lambda who: replace(who, generation=who.generation - 1),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "later generation": (
        lambda who: replace(who, generation=who.generation + 1),
        ErrorCode.ILLEGAL_GENERATION,
    ),
    "no generation": (lambda who: replace(who, generation=-1), ErrorCode.ILLEGAL_GENERATION),
    "unknown member": (
        lambda who: replace(who, member_id="somebody", group_instance_id=None),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "no member": (
        lambda who: replace(who, member_id="", group_instance_id=None),
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
    "unknown instance": (lambda who: replace(who, group_instance_id="nobody's"), ErrorCode.UNKNOWN_MEMBER_ID),
    "another's instance": (lambda who: replace(who, member_id="somebody"), ErrorCode.FENCED_INSTANCE_ID),
    "unknown group": (lambda who: replace(who, group_id=who.group_id + "?"), ErrorCode.ILLEGAL_GENERATION),
}
"""Who is not the (static) member that made it, and the code of the refusal."""

_numbers = itertools.count()


@pytest.fixture(scope="module", params=["logd", pytest.param("kafka", marks=java.needs_kafka)])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """logd, and Apache Kafka."""
    if request.param == "logd":
        yield request.getfixturevalue("logd")
        return
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka


@deep
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("name", STRANGERS)
def test_nobody_but_a_member_of_this_generation_may_commit(
    broker: BrokerProcess, version: int, name: str
) -> None:
    stranger, code = STRANGERS[name]
    topic, group = (f"{what}-{version}-{next(_numbers)}" for what in ("in", "group"))
    tp = TopicPartition(topic, 0)

    async def test() -> None:
        async with Client(broker.bootstrap) as client, TransactionalProducer(client, group) as producer:
            await Admin(client).create_topics([NewTopic(topic, 1)])
            async with Consumer(client, group_id=group, group_instance_id="instance") as consumer:
                await consumer.subscribe([topic])
                await consumer.wait_assigned()
                who = consumer.group_metadata()
                producer.begin()
                await producer.commit({tp: 3}, who)
                producer.begin()
                with pytest.raises(AbortableTransactionError) as caught:
                    await producer.commit({tp: 4}, stranger(who))
                assert caught.value.code is code
                rejoins = code is not ErrorCode.FENCED_INSTANCE_ID
                assert isinstance(caught.value, TransactionRebalanced) is rejoins
                await producer.abort()
                for group_id in (group, stranger(who).group_id):
                    offsets = await fetch_offsets(client, group_id, [tp])
                    assert {tp: each.offset for tp, each in offsets.items()} == (
                        {tp: 3} if group_id == group else {}
                    )
                producer.begin()
                await producer.commit({tp: 5}, who)
                assert (await fetch_offsets(client, group, [tp]))[tp].offset == 5

    with mock.patch.object(transaction_manager, "IMPLICIT_FROM", 2 if version == 2 else 99):
        run(test())


async def test_a_member_of_a_past_generation_cannot_commit(
    bootstrap: str, new_name: Callable[[str], str]
) -> None:
    topic, group = new_name("in"), new_name("group")
    tp = TopicPartition(topic, 0)
    async with Client(bootstrap) as client, TransactionalProducer(client, new_name("id")) as producer:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with Consumer(client, group_id=group) as consumer:
            await consumer.subscribe([topic])
            await consumer.wait_assigned()
            first = consumer.group_metadata()
            assert (first.group_id, first.generation > 0, bool(first.member_id)) == (group, True, True)
            producer.begin()
            await producer.commit({tp: 3}, first)
            assert (await fetch_offsets(client, group, [tp]))[tp].offset == 3
        async with Consumer(client, group_id=group) as consumer:
            await consumer.subscribe([topic])
            await consumer.wait_assigned()
            producer.begin()
            with pytest.raises(TransactionRebalanced) as caught:
                await producer.send_offsets({tp: 4}, first)
            assert isinstance(caught.value, RebalanceNeeded)
            await producer.abort()
            producer.begin()
            with pytest.raises(TransactionRebalanced):
                await producer.commit({tp: 4}, first)
            await producer.abort()
            producer.begin()
            await producer.commit({tp: 5}, consumer.group_metadata())
            assert (await fetch_offsets(client, group, [tp]))[tp].offset == 5


async def test_a_consumer_outside_of_its_group_is_told(
    bootstrap: str, new_name: Callable[[str], str]
) -> None:
    topic, group = new_name("in"), new_name("group")
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1)])
        async with Consumer(client, group_id=group) as consumer:
            await consumer.assign([TopicPartition(topic, 0)])
            metadata = consumer.group_metadata()
            assert (metadata.group_id, metadata.generation, metadata.member_id) == (group, -1, "")
        async with Consumer(client, group_id=group) as consumer:
            await consumer.subscribe([topic])
            await consumer.wait_assigned()
            await consumer.close()
            with pytest.raises(RebalanceNeeded):
                consumer.group_metadata()
