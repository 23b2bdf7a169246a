"""`Producer`: one record at a time, many, and transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Consumer as ForeignConsumer
from confluent_kafka import TopicPartition as ForeignPartition

from kafka_client import (
    Admin,
    Client,
    Consumer,
    ConsumerRecord,
    NewTopic,
    Producer,
    RecordMetadata,
    TopicPartition,
    partition_for_key,
)
from kafka_client.errors import ConfigError, ConnectionClosed, ErrorCode, KafkaError, ProducerFenced
from tests.kafka_client.running import run

Name = Callable[[str], str]


async def make(client: Client, topic: str, partitions: int = 1) -> None:
    await Admin(client).create_topics([NewTopic(topic, partitions, 1)])


async def everything(client: Client, topic: str, partitions: int = 1) -> list[ConsumerRecord]:
    """Return all committed records, partition by partition."""
    records: list[ConsumerRecord] = []
    for number in range(partitions):
        tp = TopicPartition(topic, number)
        end = (await Admin(client).list_offsets({tp: "latest"}))[tp].offset
        async with Consumer(client, isolation_level="read_committed") as consumer:
            await consumer.assign({tp: 0})
            while consumer.position(tp) < end:
                records += await consumer.records(timeout_ms=100)
    return records


async def test_a_record_is_where_its_metadata_says(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    async with Client(bootstrap) as client, Producer(client) as producer:
        await make(client, topic, 3)
        pending = await producer.send(
            topic, b"v", key=b"k", timestamp_ms=1_700_000_000_000, headers=[("a", b"1"), ("b", None)]
        )
        metadata = await pending
        number = partition_for_key(b"k", 3)
        assert metadata == RecordMetadata(topic, number, 0, 1_700_000_000_000) == pending.result()
        assert pending.done()
        assert await producer.send_and_wait(topic, None, partition=number) == (
            topic,
            number,
            1,
            pytest.approx(1e12, abs=1e12),
        )
        first, second = await everything(client, topic, 3)
        assert first == ConsumerRecord(
            topic, number, 0, 1_700_000_000_000, "create_time", b"k", b"v", (("a", b"1"), ("b", None))
        )
        assert (second.offset, second.key, second.value) == (1, None, None)
        assert await producer.partitions_for(topic) == [0, 1, 2]


def test_another_client_reads_it(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")

    async def produce() -> None:
        async with Client(bootstrap) as client, Producer(client, compression_type="lz4") as producer:
            await make(client, topic)
            await producer.send(topic, b"value", key=b"key", headers=[("h", b"x")])

    run(produce())
    foreign = ForeignConsumer({"bootstrap.servers": bootstrap, "group.id": topic})
    try:
        foreign.assign([ForeignPartition(topic, 0, 0)])
        message = foreign.poll(60)
        assert message is not None
        assert (message.key(), message.value(), message.headers()) == (b"key", b"value", [("h", b"x")])
    finally:
        foreign.close()


async def test_serializers_and_what_is_not_bytes(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    async with Client(bootstrap) as client:
        await make(client, topic)
        async with Producer(client, key_serializer=str.encode, value_serializer=bytes) as producer:
            await producer.send_and_wait(topic, [1, 2], key="é")
            await producer.send_and_wait(topic, None, key=None)
        async with Producer(client) as producer:
            with pytest.raises(TypeError, match="a value has to be bytes, not str"):
                await producer.send(topic, "text")
            await producer.send_and_wait(topic, bytearray(b"x"), key=memoryview(b"y"))
        records = [(record.key, record.value) for record in await everything(client, topic)]
        assert records == [("é".encode(), b"\1\2"), (None, None), (b"y", b"x")]


async def test_many_go_in_a_piece_per_partition(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    async with Client(bootstrap) as client, Producer(client) as producer:
        await make(client, topic, 4)
        assert await producer.send_many(topic, []) == []
        pairs = [(b"%d" % (n % 50), b"%d" % n) for n in range(5000)]
        sent = await producer.send_many(topic, pairs)
        places = [await pending for pending in sent]
        assert sorted(place.partition for place in places) == [0, 1, 2, 3]
        assert {place.offset for place in places} == {0}
        (one,) = await producer.send_many(topic, [(None, b"x"), (None, b"y")], partition=2)
        assert (await one).partition == 2
        assert producer.statistics()["records_sent"] == 5002
        records = await everything(client, topic, 4)
        assert len(records) == 5002
        for number in range(4):
            values = [r.value for r in records if r.partition == number and r.key is not None]
            keys = {n for n in range(50) if partition_for_key(b"%d" % n, 4) == number}
            assert values == [b"%d" % n for n in range(5000) if n % 50 in keys]


async def test_an_await_that_is_cancelled_leaves_the_record_in_the_queue(
    bootstrap: str, new_name: Name
) -> None:
    topic = new_name("topic")
    async with Client(bootstrap) as client, Producer(client, linger_ms=60_000) as producer:
        await make(client, topic)
        pending = await producer.send(topic, b"v")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(pending, 0.01)
        assert not pending.done()
        completed: list[Any] = []
        pending.add_done_callback(completed.append)
        await producer.flush()
        assert pending.done()
        assert (await pending).offset == 0
        assert completed == [pending]


async def test_errors_of_sending(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    async with Client(bootstrap, missing_topic_wait_ms=20) as client:
        await make(client, topic)
        producer = await Producer(client, max_request_size=1000, buffer_memory=1000).start()
        with pytest.raises(KafkaError) as missing:
            await producer.send(new_name("none"), b"")
        assert missing.value.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        with pytest.raises(KafkaError) as large:
            await producer.send(topic, bytes(1000))
        assert large.value.code == ErrorCode.MESSAGE_TOO_LARGE
        with pytest.raises(RuntimeError, match="transactional_id"):
            await producer.send_offsets({}, "group")
        with pytest.raises(RuntimeError, match="transactional_id"):
            async with producer.transaction():
                pass
        await producer.close()
        await producer.close()
        with pytest.raises(ConnectionClosed):
            await producer.send(topic, b"")


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": 2},
        {"acks": 1, "transactional_id": "x"},
        {"enable_idempotence": False, "transactional_id": "x"},
        {"transactional_id": ""},
        {"max_in_flight": 6},
    ],
)
async def test_settings_that_have_no_sense(settings: dict[str, Any]) -> None:
    client = Client("localhost:1")
    with pytest.raises(ConfigError):
        Producer(client, **settings)
    await client.close()


async def test_a_transaction_is_committed_or_aborted_as_a_whole(bootstrap: str, new_name: Name) -> None:
    topic, group = new_name("topic"), new_name("group")
    tp = TopicPartition(topic, 1)
    async with (
        Client(bootstrap) as client,
        Producer(client, transactional_id=new_name("id"), acks="all") as producer,
    ):
        await make(client, topic, 2)
        with pytest.raises(RuntimeError, match="no transaction is open"):
            await producer.send(topic, b"outside", partition=0)
        async with producer.transaction() as same:
            assert same is producer
            await producer.send(topic, b"a", partition=0)
            await producer.flush()
            await producer.send_many(topic, [(b"k", b"b"), (b"l", b"c")], partition=1)
            await producer.send_offsets({tp: 17}, group)
            with pytest.raises(ValueError, match="a group's"):
                await producer.send_offsets({tp: 17})
        with pytest.raises(ZeroDivisionError):
            async with producer.transaction():
                await producer.send(topic, b"lost", partition=0)
                await producer.flush()
                await producer.send_offsets({tp: 99}, group)
                raise ZeroDivisionError
        async with producer.transaction():
            await producer.send(topic, b"d", partition=0)
        values = [record.value for record in await everything(client, topic, 2)]
        assert values == [b"a", b"d", b"b", b"c"]
        assert (await Consumer(client, group).committed([tp]))[tp].offset == 17


async def test_a_newer_producer_fences(bootstrap: str, new_name: Name) -> None:
    topic, name = new_name("topic"), new_name("id")
    async with Client(bootstrap) as client, Producer(client, transactional_id=name) as old:
        await make(client, topic)
        with pytest.raises(ProducerFenced):
            async with old.transaction():
                await old.send(topic, b"old")
                async with Producer(client, transactional_id=name) as new, new.transaction():
                    await new.send(topic, b"new")
        assert [record.value for record in await everything(client, topic)] == [b"new"]


async def test_a_cancelled_body_is_aborted(bootstrap: str, new_name: Name) -> None:
    topic = new_name("topic")
    async with Client(bootstrap) as client, Producer(client, transactional_id=new_name("id")) as producer:
        await make(client, topic)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), producer.transaction():
                await producer.send(topic, b"lost")
                await producer.flush()
                await asyncio.Event().wait()
        async with producer.transaction():
            await producer.send(topic, b"kept")
        assert [record.value for record in await everything(client, topic)] == [b"kept"]
