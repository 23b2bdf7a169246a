"""A compacted topic that is read whole and followed, on a real broker."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from connect.errors import ConfigError, ConnectError
from connect.stores import InternalTopic, TopicLog
from connect.stores.topic_log import LogRecord
from kafka_client import (
    Admin,
    Client,
    NewTopic,
    Producer,
    TopicPartition,
    TransactionalProducer,
    partition_for_key,
)
from tests.support.logd_process import LogdProcess
from tests.support.waiting import until


async def test_a_missing_topic_is_created_compacted(client: Client, topic: InternalTopic):
    changed = replace(topic, partitions=3, configs={"segment.ms": "60000", "cleanup.policy": "delete"})
    log = await TopicLog.open(client, changed, lambda _: None)
    assert log.partition_count == 3
    configs = await Admin(client).describe_configs(topic.name, keys=["cleanup.policy", "segment.ms"])
    assert {key: entry.value for key, entry in configs.items()} == {
        "cleanup.policy": "compact",
        "segment.ms": "60000",
    }
    await log.close()


async def test_workers_that_start_together_share_the_topic_that_one_creates(
    client: Client, topic: InternalTopic
):
    logs = await asyncio.gather(*(TopicLog.open(client, topic, lambda _: None) for _ in range(4)))
    assert [log.partition_count for log in logs] == [1] * 4
    await asyncio.gather(*(log.close() for log in logs))


async def test_a_missing_topic_is_an_error_where_topics_are_not_to_be_created(
    client: Client, topic: InternalTopic
):
    with pytest.raises(ConfigError, match=f"{topic.name}.*internal.topics.automatic.creation.enable"):
        await TopicLog.open(client, replace(topic, create=False), lambda _: None)
    assert topic.name not in await Admin(client).list_topics()


@pytest.mark.parametrize("policy", ["delete", "compact,delete"])
async def test_a_topic_that_forgets_by_age_is_refused_with_the_remedy(
    client: Client, topic: InternalTopic, policy: str
):
    await Admin(client).create_topics([NewTopic(topic.name, 1, 1, {"cleanup.policy": policy})])
    with pytest.raises(ConfigError, match=f"config.storage.topic.*{topic.name}.*{policy}.*to compact"):
        await TopicLog.open(client, topic, lambda _: None)


async def test_a_topic_that_brokers_refuse_to_create_is_named(client: Client, topic: InternalTopic):
    with pytest.raises(ConnectError, match=f"{topic.name}.*config.storage.topic.*"):
        await TopicLog.open(client, replace(topic, replication_factor=5), lambda _: None)


async def test_what_was_sent_is_read_at_the_next_start_and_by_those_who_follow(
    client: Client, topic: InternalTopic
):
    first: list[LogRecord] = []
    second: list[LogRecord] = []
    log = await TopicLog.open(client, topic, first.extend)
    assert await log.send([(b"a", b"1"), (b"b", b"2"), (b"a", None)]) == {0: 0}
    await log.read_to_end()
    other = await TopicLog.open(client, topic, second.extend)
    assert [(r.offset, r.key, r.value) for r in second] == [(0, b"a", b"1"), (1, b"b", b"2"), (2, b"a", None)]
    assert second == first
    await log.send([(b"c", b"3")])
    await until(lambda: second[-1].key == b"c")
    await log.close()
    await other.close()


async def test_a_key_has_the_partition_that_kafkas_producer_chooses(client: Client, topic: InternalTopic):
    records: list[LogRecord] = []
    log = await TopicLog.open(client, replace(topic, partitions=25), records.extend)
    keys = [f'["c",{{"file":"{n}"}}]'.encode() for n in range(50)]
    await log.send([(key, b"1") for key in keys])
    await log.read_to_end()
    assert {r.key: r.partition for r in records} == {key: partition_for_key(key, 25) for key in keys}
    await log.close()


async def test_a_topic_whose_records_are_all_deleted_is_at_its_end(client: Client, topic: InternalTopic):
    admin = Admin(client)
    await admin.create_topics([NewTopic(topic.name, 1, 1)])
    async with Producer(client) as producer:
        await producer.send_and_wait(topic.name, b"1", key=b"a")
    await admin.delete_records({TopicPartition(topic.name, 0): -1})
    await admin.incremental_alter_configs(topic.name, {"cleanup.policy": "compact"})
    log = await TopicLog.open(client, topic, lambda _: None)
    await log.read_to_end()
    await log.close()


async def test_reading_committed_records_waits_for_an_open_transaction(client: Client, topic: InternalTopic):
    records: list[LogRecord] = []
    log = await TopicLog.open(client, topic, records.extend, isolation_level="read_committed")
    async with TransactionalProducer(client, f"id-{topic.name}") as producer:
        producer.begin()
        await (await producer.send(topic.name, 0, [(-1, b"a", b"aborted", ())]))
        reading = asyncio.create_task(log.read_to_end())
        await producer.abort()
        await reading
        assert records == []
        producer.begin()
        await (await producer.send(topic.name, 0, [(-1, b"a", b"1", ())]))
        reading = asyncio.create_task(log.read_to_end())
        await producer.commit()
        await reading
        assert [r.value for r in records] == [b"1"]
    await log.close()


async def test_a_callback_that_raises_stops_nothing(client: Client, topic: InternalTopic, caplog):
    records: list[LogRecord] = []

    def take(batch: list[LogRecord]) -> None:
        if batch[0].value == b"bad":
            raise RuntimeError("no")
        records.extend(batch)

    log = await TopicLog.open(client, topic, take)
    await log.send([(b"a", b"bad")])
    await log.read_to_end()
    await log.send([(b"a", b"good")])
    await log.read_to_end()
    assert [r.value for r in records] == [b"good"]
    assert f"records 0 to 0 of {topic.name}-0" in caplog.text
    await log.close()


async def test_a_broker_that_is_away_is_waited_for(tmp_path, topic: InternalTopic):
    records: list[LogRecord] = []
    with LogdProcess(tmp_path / "logd") as logd:
        async with Client(logd.bootstrap) as client:
            log = await TopicLog.open(client, topic, records.extend)
            await log.send([(b"a", b"1")])
            logd.kill()
            sending = asyncio.create_task(log.send([(b"b", b"2")]))
            await asyncio.to_thread(logd.start)
            await sending
            await until(lambda: [r.key for r in records] == [b"a", b"b"])
            await log.close()


async def write(client: Client, name: str, *keys: bytes) -> None:
    async with Producer(client) as producer:
        for key in keys:
            await producer.send_and_wait(name, b"1", key=key)


async def make_again(client: Client, name: str) -> None:
    await Admin(client).delete_topics([name])
    await Admin(client).create_topics([NewTopic(name, 1, 1, {"cleanup.policy": "compact"})])


@pytest.mark.parametrize("count", [0, 1, 3, 5], ids="{} records in the new topic".format)
async def test_a_topic_that_was_made_again_is_read_from_its_start(
    logd: LogdProcess, topic: InternalTopic, caplog, count: int
):
    """Fewer records than were read, as many, or more: their offsets alone do not show it."""
    records: list[LogRecord] = []
    lost: list[int] = []
    async with Client(logd.bootstrap) as client, Client(logd.bootstrap) as other:
        log = await TopicLog.open(client, topic, records.extend, on_lost=lost.append)
        await log.send([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
        await log.read_to_end()
        records.clear()
        await make_again(other, topic.name)
        keys = [b"new-%d" % number for number in range(count)]
        await write(other, topic.name, *keys)
        await until(lambda: lost and [r.key for r in records] == keys)
        assert lost == [0]
        assert f"topic {topic.name} (config.storage.topic) has lost connector configurations" in caplog.text
        await log.send([(b"last", b"1")])
        await log.read_to_end()
        assert [r.key for r in records] == [*keys, b"last"]
        assert log.position(0) == count + 1
        await log.close()


async def test_a_write_to_a_topic_made_again_is_read_back_at_once(logd: LogdProcess, topic: InternalTopic):
    """The positions of the old topic are not taken for those of the new one."""
    records: list[LogRecord] = []
    async with Client(logd.bootstrap) as client, Client(logd.bootstrap) as other:
        log = await TopicLog.open(client, topic, records.extend)
        await log.send([(b"a", b"1"), (b"b", b"1"), (b"c", b"1")])
        await log.read_to_end()
        await make_again(other, topic.name)
        await log.send([(b"new", b"1")])
        await log.read_to_end()
        assert records[-1].key == b"new"
        await log.close()


@pytest.mark.parametrize("before", [1, -1], ids=["some", "all"])
async def test_deleted_records_are_noticed_and_the_others_read_again(
    client: Client, topic: InternalTopic, caplog, before: int
):
    records: list[LogRecord] = []
    lost: list[int] = []
    log = await TopicLog.open(client, topic, records.extend, on_lost=lost.append)
    await log.send([(b"a", b"1"), (b"b", b"1")])
    await log.read_to_end()
    records.clear()
    admin = Admin(client)
    await admin.incremental_alter_configs(topic.name, {"cleanup.policy": "delete"})
    await admin.delete_records({TopicPartition(topic.name, 0): before})
    await log.send([(b"c", b"1")])
    await log.read_to_end()
    left = [b"b", b"c"] if before == 1 else [b"c"]
    await until(lambda: lost == [0] and [r.key for r in records][-len(left) :] == left)
    assert "records were deleted from its start" in caplog.text
    await log.close()
