"""A record that is at fault is named, and the others of its batch are not blamed for it (KIP-467).

Apache Kafka says what is right: the same requests go to both.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pytest
from crc32c import crc32c

from kafka_client import BatchProducer, Client
from kafka_client.errors import ErrorCode, KafkaError, RecordsRefused
from kafka_client.records import Codec, NewRecord, build_batch
from logd.broker.partition.batch_rules import RECORD_ERRORS_MAX
from tests.support.apache_kafka import ApacheKafka
from tests.support.java import needs_javac, needs_kafka, run_program
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

NOT_YET = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NOT_LEADER_OR_FOLLOWER)
"""Kafka's answers for a topic whose creation its broker has not learnt of yet."""

NOW = int(time.time() * 1000)
HOUR = 3_600_000
COMPACTED = {"cleanup.policy": "compact"}
NOT_OLD = {"message.timestamp.before.max.ms": str(2 * HOUR)}
KEYLESS = "Compacted topic cannot accept message without key in topic partition "


def six(*keyless: int, step_ms: int = 0) -> list[NewRecord]:
    """Return six records, each `step_ms` later than the one before, without a key at the given places."""
    return [(NOW + n * step_ms, None if n in keyless else b"k", b"v", ()) for n in range(6)]


def refused(produced: Any) -> tuple[int, list[tuple[int, str]]]:
    return produced.error_code, [(e.batch_index, e.batch_index_error_message) for e in produced.record_errors]


@pytest.mark.parametrize("codec", Codec)
def test_records_without_a_key_are_named(
    client: RawClient, make_topic: Callable[..., str], codec: Codec
) -> None:
    """Records without a key are named, not only the first of the batch."""
    topic = make_topic(COMPACTED)
    produced = client.produce(topic, build_batch(six(1, 4), codec=codec))
    text = f"{KEYLESS}{topic}-0"
    assert refused(produced) == (ErrorCode.INVALID_RECORD, [(1, text), (4, text)])
    assert "due to 2 record errors" in produced.error_message


def test_each_record_out_of_time_is_told_its_own_time(
    client: RawClient, make_topic: Callable[..., str]
) -> None:
    for configs, step_ms, at_fault in (
        (NOT_OLD, -HOUR, (2, 3, 4, 5)),
        ({"message.timestamp.after.max.ms": str(2 * HOUR)}, HOUR, (3, 4, 5)),
    ):
        code, errors = refused(client.produce(make_topic(configs), six(step_ms=step_ms)))
        assert code == ErrorCode.INVALID_TIMESTAMP
        assert [index for index, _ in errors if index > 2] == [index for index in at_fault if index > 2]
        for index, text in errors:
            assert text.startswith(f"Timestamp {NOW + index * step_ms} of message with offset {index} is")


def test_versions_without_record_errors_get_the_code(
    client: RawClient, make_topic: Callable[..., str]
) -> None:
    produced = client.produce(make_topic(COMPACTED), six(1), version=7)
    assert refused(produced) == (ErrorCode.INVALID_RECORD, [])


def test_a_newest_timestamp_that_no_record_has(client: RawClient, make_topic: Callable[..., str]) -> None:
    """Brokers correct a wrong maximum timestamp in the header, as Apache Kafka does."""
    batch = bytearray(build_batch(six()))
    batch[35:43] = (NOW + 10 * HOUR).to_bytes(8, "big")
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    topic = make_topic()
    assert refused(client.produce(topic, bytes(batch))) == (ErrorCode.NONE, [])
    assert client.fetch(topic).records == build_batch(six(), leader_epoch=0)


def test_the_answer_has_a_bound(client: RawClient, make_topic: Callable[..., str]) -> None:
    """Record errors are limited in number: a small batch can have very many records."""
    records: list[NewRecord] = [(NOW, None, b"", ())] * (RECORD_ERRORS_MAX + 5)
    code, errors = refused(client.produce(make_topic(COMPACTED), build_batch(records, codec=Codec.ZSTD)))
    assert code == ErrorCode.INVALID_RECORD
    assert [index for index, _ in errors] == list(range(RECORD_ERRORS_MAX))


def test_our_producer_tells_each_send_of_its_own_records(
    logd: LogdProcess, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(COMPACTED)

    async def outcomes() -> list[BaseException | int | None]:
        async with Client(logd.bootstrap) as client, BatchProducer(client, linger_ms=60_000) as producer:
            futures = [await producer.send(topic, 0, [record]) for record in six(1, 4)]
            await producer.flush()
            return await asyncio.gather(*futures, return_exceptions=True)

    for number, outcome in enumerate(asyncio.run(outcomes())):
        assert isinstance(outcome, KafkaError)
        assert outcome.code is ErrorCode.INVALID_RECORD
        if number in (1, 4):
            assert isinstance(outcome, RecordsRefused)
            assert outcome.message == f"record 0: {KEYLESS}{topic}-0"
        else:
            assert type(outcome) is KafkaError
            assert "others" in outcome.message


class Sent(NamedTuple):
    """A batch to send to both brokers, and the topic's configs."""

    name: str
    configs: Mapping[str, str]
    records: list[NewRecord]
    codec: Codec = Codec.NONE
    version: int = 9


BOTH = {**COMPACTED, **NOT_OLD}
SENT = (
    Sent("two-keyless", COMPACTED, six(1, 4)),
    Sent("compressed", COMPACTED, six(1, 4), Codec.LZ4),
    Sent("one", COMPACTED, six(1)[1:2]),
    Sent("all", COMPACTED, six(*range(6))),
    Sent("old", NOT_OLD, six(step_ms=-HOUR)),
    Sent("ahead", {"message.timestamp.after.max.ms": "1000"}, six(step_ms=HOUR)),
    Sent("keyless-and-old", BOTH, six(0, 1, step_ms=-HOUR), Codec.GZIP),
    Sent("keyless-or-old", BOTH, six(*range(6), step_ms=-HOUR)),
    Sent("version-4", BOTH, six(0, 1, step_ms=-HOUR), version=4),
    Sent("append-time", {**BOTH, "message.timestamp.type": "LogAppendTime"}, six(1, step_ms=-HOUR)),
)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


def answer(broker: LogdProcess | ApacheKafka, sent: Sent) -> tuple[int, list[tuple[int, str]], str | None]:
    """Return error code, record errors and error message, without the time bounds that depend on the
    broker's clock.
    """

    def plain(text: str) -> str:
        return re.sub(r"\[-?\d+, \d+\]", "[…]", text)

    create_topic(broker, sent.name, sent.configs)
    with RawClient(broker.port) as client:
        batch = build_batch(sent.records, codec=sent.codec)
        produced = client.produce(sent.name, batch, version=sent.version)
        while produced.error_code in NOT_YET:
            produced = client.produce(sent.name, batch, version=sent.version)
    code, errors = refused(produced)
    return code, [(index, plain(text)) for index, text in errors], produced.error_message


@needs_kafka
@pytest.mark.parametrize("sent", SENT, ids=lambda sent: sent.name)
def test_as_apache_kafka_answers(kafka: ApacheKafka, logd: LogdProcess, sent: Sent) -> None:
    assert answer(logd, sent) == answer(kafka, sent)


@needs_javac
def test_as_the_java_producer_tells_it(kafka: ApacheKafka, logd: LogdProcess) -> None:
    """Java's producer reports InvalidRecordException for the two bad records; the other four fail with their
    batch.
    """
    outputs = []
    for broker in (logd, kafka):
        create_topic(broker, "java", COMPACTED)
        outputs.append(run_program("RecordErrors", broker.bootstrap, "java").splitlines())
    assert outputs[0] == outputs[1]
    assert [number for number, line in enumerate(outputs[0]) if "InvalidRecord" in line] == [1, 4]
