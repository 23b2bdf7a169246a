"""The admin client of aiokafka."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

pytest.importorskip("aiokafka")

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import InvalidPartitionsError

from tests.interop.clients import aio
from tests.support.logd_process import LogdProcess
from tests.support.topics import create_topic


@asynccontextmanager
async def admin_of(logd: LogdProcess) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=logd.bootstrap)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


def test_topics_partitions_and_configs(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    name = new_name("admin")

    async def scenario() -> None:
        async with admin_of(logd) as admin:
            new = NewTopic(name, 2, 1, topic_configs={"segment.ms": "60000"})
            created = await admin.create_topics([new])
            assert [error[1] for error in created.topic_errors] == [0]
            again = await admin.create_topics([new])
            assert [error[1] for error in again.topic_errors] == [36]
            assert name in await admin.list_topics()
            await admin.create_partitions({name: NewPartitions(5)})
            with pytest.raises(InvalidPartitionsError):
                await admin.create_partitions({name: NewPartitions(1)})
            (topic,) = await admin.describe_topics([name])
            assert len(topic["partitions"]) == 5
            resource = ConfigResource(ConfigResourceType.TOPIC, name, {"segment.ms": None})
            (described,) = await admin.describe_configs([resource])
            assert described.resources[0][4][0][:2] == ("segment.ms", "60000")
            # The old API sets exactly what it is given: segment.ms falls back to the default.
            changed = ConfigResource(ConfigResourceType.TOPIC, name, {"retention.ms": "1234567"})
            (altered,) = await admin.alter_configs([changed])
            assert altered.resources[0][0] == 0
            two_keys = ConfigResource(
                ConfigResourceType.TOPIC, name, {"segment.ms": None, "retention.ms": None}
            )
            (described,) = await admin.describe_configs([two_keys])
            assert {entry[0]: entry[1] for entry in described.resources[0][4]} == {
                "retention.ms": "1234567",
                "segment.ms": "604800000",
            }
            deleted = await admin.delete_topics([name])
            assert deleted.topic_error_codes == [(name, 0)]
            assert name not in await admin.list_topics()

    aio.run(scenario())


def test_the_cluster(logd: LogdProcess) -> None:
    async def scenario() -> None:
        async with admin_of(logd) as admin:
            cluster = await admin.describe_cluster()
            assert [f"{broker['host']}:{broker['port']}" for broker in cluster["brokers"]] == [logd.bootstrap]
            assert cluster["controller_id"] == 1

    aio.run(scenario())


def test_deleted_records(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("admin"))
    aio.produce(logd.bootstrap, topic, [(1, None, b"%d" % number, ()) for number in range(6)])

    async def scenario() -> None:
        partition = TopicPartition(topic, 0)
        async with admin_of(logd) as admin:
            assert await admin.delete_records({partition: RecordsToDelete(before_offset=4)}) == {partition: 4}
        async with AIOKafkaConsumer(
            bootstrap_servers=logd.bootstrap, auto_offset_reset="earliest"
        ) as consumer:
            consumer.assign([partition])
            assert await consumer.beginning_offsets([partition]) == {partition: 4}
            assert await consumer.end_offsets([partition]) == {partition: 6}
            assert (await consumer.getone()).value == b"4"

    aio.run(scenario())


def test_groups(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic, group = create_topic(logd, new_name("admin")), new_name("g")
    aio.produce(logd.bootstrap, topic, [(1, None, b"v", ())] * 3)

    async def scenario() -> None:
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=logd.bootstrap, group_id=group, auto_offset_reset="earliest"
        )
        async with consumer, admin_of(logd) as admin:
            await consumer.getone()
            await consumer.commit({TopicPartition(topic, 0): (2, "noted")})
            assert (group, "consumer") in [entry[:2] for entry in await admin.list_consumer_groups()]
            (described,) = await admin.describe_consumer_groups([group])
            error, name, state, protocol_type, protocol, members = described.groups[0][:6]
            assert (error, name, state, protocol_type) == (0, group, "Stable", "consumer")
            assert protocol == "roundrobin" and len(members) == 1
            offsets = await admin.list_consumer_group_offsets(group)
            assert {tp: tuple(committed) for tp, committed in offsets.items()} == {
                TopicPartition(topic, 0): (2, "noted")
            }
            assert await admin.find_coordinator(group) == 1

    aio.run(scenario())
