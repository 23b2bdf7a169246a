"""Offsets in a transaction are refused once their member's generation is over (KIP-447)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from logd.client import Admin, Client, Consumer, NewTopic, TopicPartition, TransactionalProducer
from logd.client.group.coordinator import fetch_offsets
from logd.errors import RebalanceNeeded, TransactionRebalanced
from tests.logd.client.running import run


def test_a_member_of_a_past_generation_cannot_commit(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic, group = new_name("in"), new_name("group")
    tp = TopicPartition(topic, 0)

    async def test() -> None:
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

    run(test())


def test_a_consumer_outside_of_its_group_is_told(bootstrap: str, new_name: Callable[[str], str]) -> None:
    topic, group = new_name("in"), new_name("group")

    async def test() -> None:
        async with Client(bootstrap) as client:
            await Admin(client).create_topics([NewTopic(topic, 1)])
            async with Consumer(client, group_id=group) as consumer:
                await consumer.assign([TopicPartition(topic, 0)])
                told = consumer.group_metadata()
                assert (told.group_id, told.generation, told.member_id) == (group, -1, "")
            async with Consumer(client, group_id=group) as consumer:
                await consumer.subscribe([topic])
                await consumer.wait_assigned()
                await consumer.close()
                with pytest.raises(RebalanceNeeded):
                    consumer.group_metadata()

    run(test())
