"""Produce and Fetch: batches come back as they were sent, and bad requests are refused."""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import Codec, NewRecord, build_batch, decode_records, iter_batches, read_header
from kafka_client.records.header import assign_append_time, assign_max_timestamp, compute_crc
from kafka_client.wire import Message, decode_response_header, encode_request
from kafka_client.wire.messages.delete_topics import DeleteTopicsRequest
from kafka_client.wire.messages.describe_configs import DescribeConfigsRequest
from kafka_client.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

Make = Callable[..., str]
NOW = int(time.time() * 1000)


def records(*values: str, timestamp: int = NOW) -> list[NewRecord]:
    return [(timestamp, b"k", value.encode(), (("h", b"1"),)) for value in values]


def values_in(data: bytes) -> list[bytes | None]:
    return [record[3] for pos, _ in iter_batches(data) for record in decode_records(data, pos)]


def offsets_in(data: bytes) -> list[int]:
    return [record[0] for pos, _ in iter_batches(data) for record in decode_records(data, pos)]


def topic_id(client: RawClient, name: str) -> bytes:
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
    result: bytes = client.request(request, 12).topics[0].topic_id
    return result


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce(client: RawClient, make_topic: Make, version: int) -> None:
    name = make_topic()
    topic = topic_id(client, name) if version >= 13 else name
    for expected in (0, 2):
        produced = client.produce(topic, records("a", "b"), version=version)
        assert (produced.error_code, produced.base_offset) == (0, expected)
    assert values_in(client.fetch(name).records) == [b"a", b"b", b"a", b"b"]


@pytest.mark.parametrize("version", range(4, 19))
def test_every_version_of_fetch(client: RawClient, make_topic: Make, version: int) -> None:
    name = make_topic()
    client.produce(name, records("a", "b", "c"))
    topic = topic_id(client, name) if version >= 13 else name
    fetched = client.fetch(topic, 0, version=version)
    assert fetched.error_code == 0
    assert (fetched.high_watermark, fetched.last_stable_offset) == (3, 3)
    assert values_in(fetched.records) == [b"a", b"b", b"c"]
    assert fetched.aborted_transactions is None
    empty = client.fetch(topic, 3, version=version, isolation_level=1)
    assert empty.records == b"", "an empty fetch has no bytes, not null (KAFKA-18646)"
    assert empty.aborted_transactions == []


@pytest.mark.parametrize("codec", list(Codec))
def test_a_batch_comes_back_as_it_was_sent(client: RawClient, make_topic: Make, codec: Codec) -> None:
    name = make_topic()
    batch = build_batch(records(*[str(number) for number in range(100)]), codec=codec)
    client.produce(name, records("before"))
    assert client.produce(name, batch).base_offset == 1
    fetched = client.fetch(name, 50).records
    assert read_header(fetched).codec == codec
    assert offsets_in(fetched) == list(range(1, 101)), "a position inside a batch gives the whole batch"
    assert fetched[21:] == batch[21:], "only offset and leader epoch are written over"


@pytest.mark.parametrize("codec", list(Codec))
def test_a_header_without_the_newest_time_gets_it(client: RawClient, make_topic: Make, codec: Codec) -> None:
    """Batches without a maximum timestamp, as sarama sends them, get it: lookups by time and retention
    depend on it.
    """
    name = make_topic()
    sent = bytearray(build_batch([(NOW + i % 3, None, b"%d" % i, ()) for i in range(5)], codec=codec))
    whole = bytes(sent)
    assign_max_timestamp(sent, -1)
    assert client.produce(name, bytes(sent)).base_offset == 0
    fetched = client.fetch(name).records
    assert fetched[17:] == whole[17:], "CRC, and everything it covers"
    assert read_header(fetched).max_timestamp == NOW + 2
    ahead = bytearray(build_batch([(NOW + 86_400_000, None, b"", ())], codec=codec))
    assign_max_timestamp(ahead, -1)
    assert client.produce(name, bytes(ahead)).error_code == ErrorCode.INVALID_TIMESTAMP


def test_the_leader_epoch_of_a_batch_is_overwritten(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    assert client.produce(name, build_batch(records("a"), leader_epoch=77)).error_code == 0
    assert read_header(client.fetch(name).records).partition_leader_epoch == 0


def test_acks_0_gets_no_answer(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    client.send_produce(name, records("quiet"), acks=0)
    next_answer = client.fetch(name)
    assert values_in(next_answer.records) == [b"quiet"]


def test_acks_0_that_cannot_be_taken_closes_the_connection(client: RawClient, logd: LogdProcess) -> None:
    with pytest.raises(ConnectionError, match="closed the connection"):
        client.produce("no-such-topic", records("a"), acks=0)  # waits for an answer that never comes
    logd.wait_for_log("acks=0")


def broken(**changes: int) -> bytes:
    """Build a batch with changed header fields and a right CRC."""
    batch = bytearray(build_batch(records("a", "b")))
    layout = {
        "attributes": (21, ">h"),
        "last_offset_delta": (23, ">i"),
        "count": (57, ">i"),
        "magic": (16, ">b"),
    }
    layout |= {"producer_id": (43, ">q"), "base_sequence": (53, ">i"), "max_timestamp": (35, ">q")}
    for field, value in changes.items():
        position, form = layout[field]
        struct.pack_into(form, batch, position, value)
    struct.pack_into(">I", batch, 17, compute_crc(batch, 0, len(batch)))
    return bytes(batch)


def with_append_time() -> bytes:
    batch = bytearray(build_batch(records("a")))
    assign_append_time(batch, NOW)
    return bytes(batch)


@pytest.mark.parametrize(
    ("batch", "code"),
    [
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (b"x" * 61, ErrorCode.CORRUPT_MESSAGE),
        (build_batch(records("a"))[:-1] + b"?", ErrorCode.CORRUPT_MESSAGE),
        (build_batch(records("a"))[:-1], ErrorCode.CORRUPT_MESSAGE),
        (build_batch(records("a")) * 2, ErrorCode.INVALID_RECORD),
        (broken(magic=1), ErrorCode.INVALID_RECORD),
        (broken(count=3), ErrorCode.INVALID_RECORD),
        (broken(last_offset_delta=5), ErrorCode.INVALID_RECORD),
        (broken(attributes=0x20), ErrorCode.INVALID_RECORD),
        (broken(attributes=0x10, producer_id=5, base_sequence=0), ErrorCode.INVALID_RECORD),
        (broken(producer_id=5), ErrorCode.INVALID_RECORD),
        (broken(attributes=6), ErrorCode.CORRUPT_MESSAGE),
        (with_append_time(), ErrorCode.INVALID_TIMESTAMP),
        (build_batch(records("x" * 1_100_000)), ErrorCode.MESSAGE_TOO_LARGE),
    ],
    ids=lambda changes: (
        "batch" if isinstance(changes, bytes) else changes.name
    ),  # the bytes are others in every run
)
def test_batches_that_are_refused(client: RawClient, make_topic: Make, batch: bytes, code: ErrorCode) -> None:
    name = make_topic()
    produced = client.produce(name, batch)
    assert produced.error_code == code
    assert produced.base_offset == -1
    assert produced.error_message
    assert client.produce(name, records("good")).base_offset == 0, "nothing of it was written"


def test_transactional_batches_need_a_transactional_id(client: RawClient, make_topic: Make) -> None:
    batch = build_batch(records("a"), producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    answer = client.produce(make_topic(), batch)
    assert answer.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def test_where_nobody_can_produce(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    assert client.produce("missing", records("a")).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce(name, records("a"), partition=7).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.produce(b"?" * 16, records("a"), version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert client.produce(name, records("a"), acks=5).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    zstd = build_batch(records("a"), codec=Codec.ZSTD)
    assert client.produce(name, zstd, version=6).error_code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_topic_settings_hold(client: RawClient, make_topic: Make) -> None:
    small = make_topic({"max.message.bytes": "100"})
    assert client.produce(small, records("x" * 100)).error_code == ErrorCode.MESSAGE_TOO_LARGE
    strict = make_topic({"min.insync.replicas": "2"})
    assert client.produce(strict, records("a")).error_code == 0, "there is one replica (KAFKA-15583)"
    recent = make_topic({"message.timestamp.before.max.ms": "1000"})
    old = records("a", timestamp=NOW - 100_000)
    assert client.produce(recent, old).error_code == ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_refuses_records_without_a_key(
    client: RawClient, make_topic: Make, codec: Codec
) -> None:
    name = make_topic({"cleanup.policy": "compact"})
    keyless = build_batch([(NOW, b"k", b"v", ()), (NOW, None, b"v", ())], codec=codec)
    produced = client.produce(name, keyless)
    assert produced.error_code == ErrorCode.INVALID_RECORD
    assert "key" in produced.error_message
    assert client.produce(name, build_batch(records("a"), codec=codec)).error_code == 0


def test_log_append_time(client: RawClient, make_topic: Make) -> None:
    name = make_topic({"message.timestamp.type": "LogAppendTime"})
    produced = client.produce(name, build_batch(records("a", timestamp=1), codec=Codec.GZIP))
    assert abs(produced.log_append_time_ms - time.time() * 1000) < 60_000
    fetched = client.fetch(name).records
    assert read_header(fetched).timestamp_type == 1
    assert decode_records(fetched)[0][1] == produced.log_append_time_ms


def test_a_topics_own_codec(client: RawClient, make_topic: Make) -> None:
    name = make_topic({"compression.type": "zstd"})
    client.produce(name, build_batch(records("a", "b"), codec=Codec.GZIP))
    client.produce(name, build_batch(records("c")))
    fetched = client.fetch(name).records
    assert {header.codec for _, header in iter_batches(fetched)} == {Codec.ZSTD}
    assert values_in(fetched) == [b"a", b"b", b"c"]
    assert offsets_in(fetched) == [0, 1, 2]


def test_an_idempotent_producer(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    answer = client.request(InitProducerIdRequest(), 4)
    assert (answer.error_code, answer.producer_epoch) == (0, 0)
    assert client.request(InitProducerIdRequest(), 4).producer_id != answer.producer_id

    def send(sequence: int, epoch: int = 0) -> tuple[int, int]:
        batch = build_batch(
            records("a", "b"), producer_id=answer.producer_id, producer_epoch=epoch, base_sequence=sequence
        )
        produced = client.produce(name, batch)
        return produced.error_code, produced.base_offset

    assert send(0) == (0, 0)
    assert send(2) == (0, 2)
    assert send(0) == (0, 0), "a duplicate is answered as the first time"
    assert send(6) == (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
    assert send(0, epoch=1) == (0, 4)
    assert send(4, epoch=0) == (ErrorCode.INVALID_PRODUCER_EPOCH, -1)


def test_fetching_outside_the_log(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    client.produce(name, records("a"))
    assert client.fetch(name, 2).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch(name, -1).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert client.fetch("missing").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert client.fetch(b"?" * 16, version=13).error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_the_first_batch_comes_whole_however_small_the_limits(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    for _ in range(3):
        client.produce(name, records("x" * 1000))
    size = len(client.fetch(name, max_bytes=1, partition_max_bytes=1).records)
    assert 1000 < size < 2000


def test_a_fetch_waits_for_records(client: RawClient, make_topic: Make, logd: LogdProcess) -> None:
    name = make_topic()
    client.send_fetch(name, max_wait_ms=60_000)
    with RawClient(logd.port) as producer:
        producer.produce(name, records("late"))
    assert values_in(client.receive(1, 12).responses[0].partitions[0].records) == [b"late"]


def test_a_fetch_waits_for_enough_bytes(client: RawClient, make_topic: Make, logd: LogdProcess) -> None:
    name = make_topic()
    client.send_fetch(name, max_wait_ms=60_000, min_bytes=3000)
    with RawClient(logd.port) as producer:
        for _ in range(3):
            producer.produce(name, records("x" * 1000))
    assert len(values_in(client.receive(1, 12).responses[0].partitions[0].records)) == 3


def test_a_fetch_ends_when_its_time_is_up_or_its_topic_goes(
    client: RawClient, make_topic: Make, logd: LogdProcess
) -> None:
    name = make_topic()
    assert client.fetch(name, max_wait_ms=50).records == b""
    client.send_fetch(name, max_wait_ms=60_000)
    with RawClient(logd.port) as admin:
        admin.request(DeleteTopicsRequest(topic_names=[name]), 5)
    row = client.receive(1, 12).responses[0].partitions[0]
    assert row.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@deep
@pytest.mark.parametrize("request_version", [(MetadataRequest(topics=[]), 9), (DescribeConfigsRequest(), 1)])
def test_requests_sent_together_are_answered_in_order(
    client: RawClient, request_version: tuple[Message, int]
) -> None:
    """Responses come in the order of requests, for more responses than one send gathers and for APIs that
    await.
    """
    message, version = request_version
    count = 20_000
    frames = b"".join(encode_request(message, version, number, "raw") for number in range(count))
    sender = threading.Thread(target=client.send, args=(frames,))
    sender.start()
    for number in range(count):
        frame = client.receive_frame()
        assert frame is not None
        assert decode_response_header(message.API_KEY, version, frame)[0] == number
    sender.join()
