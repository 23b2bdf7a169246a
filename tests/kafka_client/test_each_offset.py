"""The offsets of many partitions: an error of one does not hide the answers for the others."""

from __future__ import annotations

from collections.abc import Callable

from kafka_client import Admin, Client, NewTopic, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError, RequestTimedOut
from kafka_client.fetcher.offsets import LATEST, ListedOffset, list_each_offset
from kafka_client.wire import ApiKey
from tests.kafka_client.fake_broker import SILENCE, FakeBroker


async def test_a_missing_partition_is_an_error_beside_the_others(
    bootstrap: str, new_name: Callable[[str], str]
) -> None:
    topic = new_name("ends")
    there, missing, nowhere = (
        TopicPartition(name, partition) for name, partition in ((topic, 0), (topic, 9), (f"{topic}-no", 0))
    )
    async with Client(bootstrap) as client:
        await Admin(client).create_topics([NewTopic(topic, 1, 1)])
        specs = dict.fromkeys((there, missing, nowhere), LATEST)
        results = await list_each_offset(client, specs, timeout_ms=60_000)
    listed = results[there]
    assert isinstance(listed, ListedOffset)
    assert listed.offset == 0
    for tp in (missing, nowhere):
        error = results[tp]
        assert isinstance(error, KafkaError)
        assert (error.code, str(tp) in str(error)) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, True)


async def test_a_broker_that_does_not_answer_is_named_after_the_timeout() -> None:
    tp = TopicPartition("t", 0)
    async with FakeBroker() as broker:
        broker.topics = {"t": {0: 1}}
        broker.on(ApiKey.LIST_OFFSETS, lambda _: SILENCE)
        async with Client(broker.bootstrap) as client:
            (error,) = (await list_each_offset(client, {tp: LATEST}, timeout_ms=50)).values()
    assert isinstance(error, RequestTimedOut)
    assert "broker 1 did not answer within 50 ms" in str(error)
