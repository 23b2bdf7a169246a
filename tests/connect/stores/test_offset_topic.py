"""Source offsets in a topic on a real broker: spellings of keys, fresh views, transactions."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from connect.stores import ConnectorOffsets, FileOffsetStore, InternalTopic, OffsetTopic, TopicLog
from connect.stores.topic_log import LogRecord
from kafka_client import BatchProducer, Client, TransactionalProducer, partition_for_key

JAVAS = b'["c",{"z":1,"filename":"a"}]'
"""A key as a Java worker may write it, its fields in its map's order."""
OURS = b'["c",{"filename":"a","z":1}]'


@pytest.fixture
def topic(topic: InternalTopic) -> InternalTopic:
    return replace(topic, setting="offset.storage.topic", partitions=25)


async def test_offsets_are_there_at_once_and_at_the_next_start(client: Client, topic: InternalTopic):
    store = await OffsetTopic.open(client, topic)
    offsets = ConnectorOffsets(store, "c")
    keys = [offsets.key({"file": str(number)}) for number in range(30)]
    await offsets.commit({key: offsets.encode({"position": 1}) for key in keys})
    assert offsets.offset({"file": "7"}) == {"position": 1}
    await store.put({keys[7]: offsets.encode({"position": 2}), keys[8]: None})
    assert (offsets.offset({"file": "7"}), offsets.offset({"file": "8"})) == ({"position": 2}, None)
    again = await OffsetTopic.open(client, topic)
    for each in (store, again):
        assert set(each.keys()) == set(keys) - {keys[8]}
        assert ConnectorOffsets(each, "c").offset({"file": "7"}) == {"position": 2}
        await each.close()


async def test_a_fresh_view_has_what_another_worker_stored(client: Client, topic: InternalTopic):
    one, two = await OffsetTopic.open(client, topic), await OffsetTopic.open(client, topic)
    await one.put({OURS: b'{"position":1}'})
    await two.refresh()
    assert two.get(OURS) == b'{"position":1}'
    await one.close()
    await two.close()


async def test_a_key_stays_byte_for_byte_as_it_was_first_seen(client: Client, topic: InternalTopic):
    records: list[LogRecord] = []
    log = await TopicLog.open(client, topic, records.extend)
    await log.send([(JAVAS, b'{"position":1}')])
    store = await OffsetTopic.open(client, topic)
    assert store.get(OURS) == store.get(JAVAS) == b'{"position":1}'
    assert list(store.keys()) == [OURS]
    await store.put({OURS: b'{"position":2}'})
    await log.read_to_end()
    assert [(r.key, r.value) for r in records] == [(JAVAS, b'{"position":1}'), (JAVAS, b'{"position":2}')]
    await store.close()
    await log.close()


async def test_of_two_spellings_the_newest_counts_until_one_is_left(client: Client, topic: InternalTopic):
    store = await OffsetTopic.open(client, topic)
    partitions = [partition_for_key(key, 25) for key in (OURS, JAVAS)]
    assert partitions[0] != partitions[1], "only timestamps say which is newer"
    async with BatchProducer(client) as producer:
        await (await producer.send(topic.name, partitions[0], [(2000, OURS, b'{"position":2}', ())]))
        await (await producer.send(topic.name, partitions[1], [(1000, JAVAS, b'{"position":1}', ())]))
    await store.refresh()
    assert store.get(OURS) == b'{"position":2}'
    await store.put({OURS: b'{"position":3}'})
    again = await OffsetTopic.open(client, topic)
    for each in (store, again):
        await each.refresh()
        assert each.get(JAVAS) == b'{"position":3}'
        assert [list(spellings) for spellings in each._stored.values()] in ([[JAVAS]], [[OURS]])
        await each.close()


async def test_offsets_of_an_aborted_transaction_do_not_count(client: Client, topic: InternalTopic):
    store = await OffsetTopic.open(client, topic, exactly_once=True)
    async with TransactionalProducer(client, f"id-{topic.name}") as producer:
        for position, is_committed in ((1, True), (2, False)):
            producer.begin()
            for partition, pairs in store.as_written({OURS: b'{"position":%d}' % position}).items():
                records = [(-1, key, value, ()) for key, value in pairs]
                await producer.send(store.topic, partition, records)
            await (producer.commit() if is_committed else producer.abort())
    await store.refresh()
    assert store.get(OURS) == b'{"position":1}'
    await store.close()


async def test_what_is_no_source_offset_is_kept_as_it_is(client: Client, topic: InternalTopic):
    store = await OffsetTopic.open(client, topic)
    await store.put({b"\xff\x00": b"1", b"": b"2"})
    assert (store.get(b"\xff\x00"), store.get(b"")) == (b"1", b"2")
    await store.close()


def test_a_file_keeps_keys_as_they_are_and_finds_them_in_any_spelling(tmp_path):
    path = tmp_path / "offsets"
    path.write_text('[["c",{"z":1,"filename":"a"}],{"position":1}]\n[ ["c", {}] , 5 ]\n')
    store = FileOffsetStore.open(path)
    assert (store.get(OURS), store.get(JAVAS), store.get(b'["c",{}]')) == (b'{"position":1}',) * 2 + (b"5",)
    asyncio.run(store.put({OURS: b'{"position":2}'}))
    store.close()
    assert path.read_text().splitlines()[0] == '[["c",{"z":1,"filename":"a"}],{"position":2}]'
