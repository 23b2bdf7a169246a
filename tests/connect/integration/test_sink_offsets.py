"""The offsets of a sink's group on a real broker, as a user reads, changes and resets them (KIP-875)."""

from __future__ import annotations

import pytest

from connect.errors import BadRequest, ConnectError
from connect.runtime.connector_offsets import alter_sink_offsets, reset_sink_offsets, sink_offsets
from kafka_client import Admin, Client, Consumer, NewTopic, Producer, TopicPartition


async def yes(_) -> bool:
    return True


def shown(topic: str, **offsets: int) -> dict:
    return {
        "offsets": [
            {
                "partition": {"kafka_topic": topic, "kafka_partition": int(p[1:])},
                "offset": {"kafka_offset": o},
            }
            for p, o in offsets.items()
        ]
    }


async def test_a_groups_offsets_are_shown_altered_and_reset(logd, topic: str):
    async with Client(logd.bootstrap) as client:
        admin, group = Admin(client), f"connect-{topic}"
        await admin.create_topics([NewTopic(topic, 2, 1)])
        first, second = (TopicPartition(topic, number) for number in range(2))
        assert await sink_offsets(admin, group) == {"offsets": []}
        message = await alter_sink_offsets(admin, "c", group, {first: 5, second: 7}, yes)
        assert message == "The offsets for this connector have been altered successfully"
        assert await sink_offsets(admin, group) == shown(topic, p0=5, p1=7)
        await alter_sink_offsets(admin, "c", group, {first: 6, second: None}, yes)
        assert await sink_offsets(admin, group) == shown(topic, p0=6)
        calls: list[object] = []

        async def alter(offsets) -> None:
            calls.append(offsets)

        assert "manually reset" in await reset_sink_offsets(admin, "c", group, alter)
        assert calls == [{first: None}]
        assert await sink_offsets(admin, group) == {"offsets": []}
        await reset_sink_offsets(admin, "c", group, yes)  # a group that is not there is reset


async def test_a_topic_or_partition_that_does_not_exist_is_named(logd, topic: str):
    async with Client(logd.bootstrap) as client:
        admin = Admin(client)
        await admin.create_topics([NewTopic(topic, 1, 1)])
        for tp in (TopicPartition(topic, 1), TopicPartition(f"{topic}-x", 0)):
            with pytest.raises(BadRequest, match=f"no partition {tp.partition} of a topic {tp.topic}"):
                await alter_sink_offsets(admin, "c", f"connect-{topic}", {tp: 5}, yes)
        assert await sink_offsets(admin, f"connect-{topic}") == {"offsets": []}


async def test_a_group_with_members_is_left_alone(logd, topic: str):
    async with Client(logd.bootstrap) as client, Producer(client) as producer:
        admin, group = Admin(client), f"connect-{topic}"
        await admin.create_topics([NewTopic(topic, 1, 1)])
        await producer.send_and_wait(topic, b"1")
        async with Consumer(client, group, auto_offset_reset="earliest") as consumer:
            await consumer.subscribe([topic])
            await anext(aiter(consumer))
            await consumer.commit()
            with pytest.raises(ConnectError, match=r"Failed to alter .* the zombie sink tasks"):
                await alter_sink_offsets(admin, "c", group, {TopicPartition(topic, 0): 0}, yes)
            with pytest.raises(ConnectError, match=r"Failed to reset .* the zombie sink tasks"):
                await reset_sink_offsets(admin, "c", group, yes)
            assert await sink_offsets(admin, group) == shown(topic, p0=1)
