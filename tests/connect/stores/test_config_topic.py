"""Config records that come back from a topic on a real broker."""

from __future__ import annotations

import pytest

from connect.errors import ConfigError
from connect.herder import Herder, TargetState
from connect.stores import ConfigRecord, ConfigTopic, InternalTopic
from connect.stores.fenced_writer import PrivilegedWriteError
from kafka_client import Admin, Client, NewTopic, Producer
from tests.support.waiting import until


async def test_what_one_worker_writes_another_reads(client: Client, topic: InternalTopic):
    leader, follower = Herder(), Herder()
    one = await ConfigTopic.open(client, topic, leader.read)
    two = await ConfigTopic.open(client, topic, follower.read)
    assert (one.offset, two.offset) == (-1, -1)
    await one.write(leader.put_connector("a", {"name": "a"}))
    assert leader.config.connectors == {"a": {"name": "a"}}, "a write returns once it is read back"
    await one.write(leader.put_plan("a", [{"n": "0"}, {"n": "1"}]))
    await one.write(leader.set_target("a", TargetState.PAUSED))
    assert await two.read_to_end() == one.offset == 5
    assert follower.runs("a") == leader.runs("a")
    assert list(follower.runs("a").tasks) == [0, 1]
    await one.close()
    await two.close()


async def test_everything_is_there_at_the_next_start(client: Client, topic: InternalTopic):
    herder, later = Herder(), Herder()
    store = await ConfigTopic.open(client, topic, herder.read)
    await store.write(herder.put_connector("é", {"name": "é", "empty": ""}))
    await store.write(herder.put_plan("é", [{"n": "0"}]))
    await store.close()
    again = await ConfigTopic.open(client, topic, later.read)
    assert again.offset == 3
    assert later.runs("é") == herder.runs("é")
    await again.close()


async def test_unreadable_records_are_named_and_left_out(client: Client, topic: InternalTopic, caplog):
    records: list[ConfigRecord] = []
    store = await ConfigTopic.open(client, topic, records.extend)
    async with Producer(client) as producer:
        for key, value in [(b"connector-a", b"{"), (b"\xff", b"{}"), (b"commit-a", b"[" * 100_000)]:
            await producer.send_and_wait(topic.name, value, key=key)
    await store.write([("connector-b", None)])
    assert records == [("connector-b", None)]
    assert store.offset == 4
    for offset in range(3):
        assert f"{topic.name}: the record at {offset} is ignored" in caplog.text
    await store.close()
    records.clear()
    again = await ConfigTopic.open(client, topic, records.extend)
    assert records == [("connector-b", None)]
    await again.close()


async def test_a_topic_of_several_partitions_has_no_order_and_is_refused(
    client: Client, topic: InternalTopic
):
    settings = {"cleanup.policy": "compact"}
    await Admin(client).create_topics([NewTopic(topic.name, 2, 1, settings)])
    with pytest.raises(ConfigError, match=r"config\.storage\.topic.*has 2 partitions"):
        await ConfigTopic.open(client, topic, lambda _: None)


async def test_only_the_last_leader_writes(client: Client, topic: InternalTopic):
    records: list[ConfigRecord] = []
    group = f"connect-cluster-{topic.name}"
    old = await ConfigTopic.open(client, topic, lambda _: None, transactional_id=group)
    new = await ConfigTopic.open(
        client, topic, records.extend, transactional_id=group, isolation_level="read_committed"
    )
    with pytest.raises(PrivilegedWriteError, match="has to be claimed"):
        await old.write([("connector-a", None)])
    await old.claim()
    await old.write([("connector-a", {"properties": {}}), ("connector-b", {"properties": {}})])
    await new.claim()
    with pytest.raises(PrivilegedWriteError, match=topic.name):
        await old.write([("connector-c", {"properties": {}})])
    await new.claim()
    await new.write([("connector-d", {"properties": {}})])
    assert [key for key, _ in records] == ["connector-a", "connector-b", "connector-d"]
    await old.close()
    await new.close()


async def test_what_another_worker_writes_arrives_without_being_asked_for(
    client: Client, topic: InternalTopic
):
    records: list[ConfigRecord] = []
    one = await ConfigTopic.open(client, topic, lambda _: None)
    two = await ConfigTopic.open(client, topic, records.extend)
    await one.write([("restart-connector-a", {"include-tasks": True, "only-failed": False})])
    await until(lambda: records)
    assert records == [("restart-connector-a", {"include-tasks": True, "only-failed": False})]
    await one.close()
    await two.close()
