"""Batches that take long to validate: a thread validates them, and the order of requests still holds."""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.records import Codec, NewRecord, build_batch, compress, decode_records, read_header
from kafka_client.records.build import seal
from kafka_client.records.varint import varint
from kafka_client.wire.messages.end_txn import EndTxnRequest
from kafka_client.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kafka_client.wire.produce import encode_produce_request
from logd.broker.partition.batch_rules import LOOP_COMPRESSED_MAX, LOOP_DECOMPRESSED_MAX
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.raw_transaction import Writer
from tests.support.topics import create_topic

NOW = int(time.time() * 1000)
COMPRESSING = list(Codec)[1:]
Make = Callable[..., str]


def records(count: int, size: int = 100, first: int = 0) -> list[NewRecord]:
    return [(NOW + n, b"k%d" % n, b"%07d" % n + b"v" * (size - 7), ()) for n in range(first, first + count)]


LONG = records(LOOP_DECOMPRESSED_MAX // 50)
"""Records that are too large for the event loop to decompress."""


def long_batch(codec: Codec = Codec.ZSTD, **fields: int) -> bytes:
    return build_batch(LONG, codec=codec, **fields)


def broken(batch: bytes) -> bytes:
    """Return `batch` without the last byte of its last record, with a right CRC."""
    header = read_header(batch)
    body = b"".join(_bodies(header.codec, batch))[:-1]
    packed = bytes(compress(header.codec, body))
    return seal(header._replace(batch_length=49 + len(packed)), packed)


def _bodies(codec: Codec, batch: bytes) -> Iterator[bytes]:
    from kafka_client.records.compression import pieces

    return pieces(codec, batch[61:])


@pytest.mark.parametrize("codec", COMPRESSING)
def test_a_long_batch_is_appended_or_refused(client: RawClient, make_topic: Make, codec: Codec) -> None:
    topic = make_topic()
    assert client.produce(topic, long_batch(codec)).base_offset == 0
    refused = client.produce(topic, broken(long_batch(codec)))
    assert refused.error_code == ErrorCode.INVALID_RECORD
    assert client.produce(topic, records(1)).base_offset == len(LONG)
    stored = client.fetch(topic, partition_max_bytes=1 << 24).records
    assert [record[1:] for record in decode_records(stored)] == LONG


def test_random_bytes_that_are_long_as_they_came(client: RawClient, make_topic: Make) -> None:
    topic = make_topic()
    batch = build_batch([(NOW, None, zlib.compress(b"") * 10_000 + LONG[1][2], ())], codec=Codec.LZ4)
    noise = build_batch([(NOW, None, bytes(range(256)) * 1000, ())], codec=Codec.NONE)
    assert len(noise) > LOOP_COMPRESSED_MAX
    assert client.produce(topic, batch).error_code == 0
    assert client.produce(topic, noise).base_offset == 1


def test_the_order_of_a_connections_requests(client: RawClient, make_topic: Make) -> None:
    """Long and short batches of one connection, sent at once, are appended in order of their sequences."""
    topic = make_topic()
    writer = {"producer_id": 700, "producer_epoch": 0}
    sequence, sent, expected = 0, [], []
    for turn in range(8):
        batch_records = LONG if turn % 2 == 0 else records(1)
        sent.append(build_batch(batch_records, codec=Codec.GZIP, base_sequence=sequence, **writer))
        expected.append(sequence)
        sequence += len(batch_records)
    for batch in sent:
        client.send_produce(topic, batch)
    offsets = [client.receive(0, 9).responses[0].partition_responses[0] for _ in sent]
    assert [(one.error_code, one.base_offset) for one in offsets] == [(0, offset) for offset in expected]
    assert client.produce(topic, sent[-2]).base_offset == expected[-2], "a duplicate"


def test_a_refused_batch_does_not_use_up_its_sequence(client: RawClient, make_topic: Make) -> None:
    topic = make_topic()
    writer = {"producer_id": 701, "producer_epoch": 0}
    first = long_batch(base_sequence=0, **writer)
    assert client.produce(topic, first).base_offset == 0
    second = long_batch(base_sequence=len(LONG), **writer)
    assert client.produce(topic, broken(second)).error_code == ErrorCode.INVALID_RECORD
    assert client.produce(topic, second).base_offset == len(LONG)
    assert client.produce(topic, second).base_offset == len(LONG), "a duplicate"


def test_a_duplicate_whose_newest_time_was_corrected(client: RawClient, make_topic: Make) -> None:
    topic = make_topic()
    good = build_batch(records(3), producer_id=702, producer_epoch=0, base_sequence=0)
    lying = seal(read_header(good)._replace(max_timestamp=5), good[61:])
    for _ in range(2):
        assert client.produce(topic, lying).base_offset == 0
    stored = client.fetch(topic).records
    assert read_header(stored).max_timestamp == NOW + 2
    assert len(stored) == len(good), "it was appended once"


def test_others_of_the_same_request_are_appended(client: RawClient, make_topic: Make) -> None:
    topic = make_topic(partitions=5)
    short = build_batch(records(1))
    batches = [short, broken(long_batch()), long_batch(Codec.LZ4), broken(build_batch(records(2))), short]
    request = encode_produce_request([(topic, list(enumerate(batches)))], 9, 7, "raw", acks=-1)
    client.send(b"".join(bytes(chunk) for chunk in request))
    answers = client.receive(0, 9).responses[0].partition_responses
    assert [answer.index for answer in answers] == list(range(5))
    invalid = ErrorCode.INVALID_RECORD
    assert [answer.error_code for answer in answers] == [0, invalid, 0, invalid, 0]
    for partition, count in enumerate([1, 0, len(LONG), 0, 1]):
        assert client.fetch(topic, count, partition=partition, max_wait_ms=1).high_watermark == count


def test_without_acknowledgement(client: RawClient, logd: LogdProcess, make_topic: Make) -> None:
    topic = make_topic()
    client.send_produce(topic, long_batch(), acks=0)
    assert client.produce(topic, records(1)).base_offset == len(LONG)
    with RawClient(logd.port) as other:
        other.send_produce(topic, long_batch(), acks=0)
        other.send_produce(topic, broken(long_batch()), acks=0)
        other.send_produce(topic, records(1), acks=0)
        assert other.is_closed_by_peer(), "the only way to tell"
    assert client.produce(topic, records(1)).base_offset == 2 * len(LONG) + 1


@pytest.mark.parametrize("long", [False, True])
def test_in_a_transaction(client: RawClient, make_topic: Make, long: bool) -> None:
    topic = make_topic()
    writer = Writer.begin(client, f"writer-{long}")
    writer.add_partition(topic, 0)
    codec, rows = (Codec.GZIP, LONG) if long else (Codec.NONE, records(3))

    def send(sequence: int, *, is_broken: bool) -> int:
        batch = build_batch(
            rows,
            codec=codec,
            producer_id=writer.producer_id,
            producer_epoch=writer.epoch,
            base_sequence=sequence,
            transactional=True,
        )
        data = broken(batch) if is_broken else batch
        request = encode_produce_request(
            [(topic, [(0, data)])], 9, 7, "raw", acks=-1, transactional_id=writer.tid
        )
        client.send(b"".join(bytes(chunk) for chunk in request))
        code: int = client.receive(0, 9).responses[0].partition_responses[0].error_code
        return code

    assert send(0, is_broken=True) == ErrorCode.INVALID_RECORD
    assert send(0, is_broken=False) == 0
    assert send(len(rows), is_broken=True) == ErrorCode.INVALID_RECORD
    assert send(len(rows), is_broken=False) == 0
    end = EndTxnRequest(
        transactional_id=writer.tid,
        producer_id=writer.producer_id,
        producer_epoch=writer.epoch,
        committed=True,
    )
    assert client.request(end, 3).error_code == 0


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
def test_another_codec_is_asked_for(client: RawClient, make_topic: Make, codec: Codec) -> None:
    topic = make_topic({"compression.type": "zstd"})
    assert client.produce(topic, build_batch(LONG, codec=codec)).error_code == 0
    stored = client.fetch(topic, partition_max_bytes=1 << 24).records
    assert read_header(stored).codec is Codec.ZSTD
    assert [record[1:] for record in decode_records(stored)] == LONG


def test_what_gets_too_large_by_another_codec(client: RawClient, make_topic: Make) -> None:
    topic = make_topic({"compression.type": "uncompressed", "max.message.bytes": "200000"})
    assert client.produce(topic, long_batch()).error_code == ErrorCode.MESSAGE_TOO_LARGE


def test_bad_records_of_a_long_batch_are_named(client: RawClient, make_topic: Make) -> None:
    topic = make_topic({"cleanup.policy": "compact"})
    rows = [*LONG[:-1], (NOW, None, b"v", ())]
    answer = client.produce(topic, build_batch(rows, codec=Codec.ZSTD))
    assert answer.error_code == ErrorCode.INVALID_RECORD
    assert [error.batch_index for error in answer.record_errors] == [len(LONG) - 1]


# Bombs


BOMB_RECORDS = 1_500_000


def bomb(codec: Codec, *, base_timestamp: int = NOW) -> bytes:
    """Return a small batch of very many records of a few bytes."""
    body = bytearray()
    for n in range(BOMB_RECORDS):
        delta = varint(n)
        body += bytes((2 * (5 + len(delta)), 0, 0)) + delta + b"\1\1\0"
    packed = bytes(compress(codec, bytes(body)))
    header = read_header(build_batch(records(1)))._replace(
        attributes=codec,
        batch_length=49 + len(packed),
        last_offset_delta=BOMB_RECORDS - 1,
        count=BOMB_RECORDS,
        base_timestamp=base_timestamp,
        max_timestamp=base_timestamp,
    )
    return seal(header, packed)


@pytest.fixture(scope="module")
def own_logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    """Start a broker whose memory no other test uses."""
    overrides = {"message.max.bytes": "100000000"}
    with LogdProcess(tmp_path_factory.mktemp("logd"), overrides) as process:
        yield process


def offset_for(client: RawClient, topic: str, timestamp: int) -> tuple[int, int]:
    topics = ListOffsetsTopic(name=topic, partitions=[ListOffsetsPartition(timestamp=timestamp)])
    answer = client.request(ListOffsetsRequest(topics=[topics]), 7).topics[0].partitions[0]
    return answer.error_code, answer.offset


@pytest.mark.parametrize("codec", COMPRESSING)
def test_bombs(own_logd: LogdProcess, codec: Codec) -> None:
    """Large batches are stored, searched by time, and refused where a record is broken, in the memory of one
    chunk.
    """
    topic = create_topic(own_logd, f"bomb-{codec.name.lower()}")
    keyed = create_topic(own_logd, f"keyed-{codec.name.lower()}", {"cleanup.policy": "compact"})
    good, bad = bomb(codec), broken(bomb(codec))
    with RawClient(own_logd.port) as client:
        client.produce(topic, long_batch(codec))
        before = own_logd.forget_peak()
        assert client.produce(topic, good).base_offset == len(LONG)
        assert client.produce(topic, bad).error_code == ErrorCode.INVALID_RECORD
        assert offset_for(client, topic, NOW - 1) == (0, 0)
        assert offset_for(client, topic, NOW + 10) == (0, 10)
        assert offset_for(client, topic, -3) == (0, len(LONG) - 1)
        later = bomb(codec, base_timestamp=NOW + 100_000)
        assert client.produce(topic, later).base_offset == len(LONG) + BOMB_RECORDS
        assert offset_for(client, topic, NOW + 50_000) == (0, len(LONG) + BOMB_RECORDS)
        refused = client.produce(keyed, good)
        assert (refused.error_code, len(refused.record_errors)) == (ErrorCode.INVALID_RECORD, 10_000)
    # A request of the size of the largest bomb is held, and copied once.
    assert own_logd.peak_bytes - before < 20_000_000 + 6 * len(good)


def test_a_record_as_large_as_a_bomb(own_logd: LogdProcess) -> None:
    limited = create_topic(own_logd, "one-record", {"max.decompressed.message.bytes": "1000000"})
    batch = build_batch([(NOW, None, bytes(100_000_000), ())], codec=Codec.ZSTD)
    with RawClient(own_logd.port) as client:
        before = own_logd.forget_peak()
        assert client.produce(limited, batch).error_code == ErrorCode.INVALID_RECORD
        assert own_logd.peak_bytes - before < 10_000_000


def test_more_than_any_batch_may_hold(own_logd: LogdProcess) -> None:
    topic = create_topic(own_logd, "too-much")
    body = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = b"".join([body.compress(bytes(1_000_000)) for _ in range(300)]) + body.flush()
    batch = seal(
        read_header(build_batch(records(1)))._replace(attributes=Codec.GZIP, batch_length=49 + len(packed)),
        packed,
    )
    with RawClient(own_logd.port) as client:
        assert client.produce(topic, batch).error_code == ErrorCode.INVALID_RECORD


def test_a_broker_stops_meanwhile(tmp_path: Path) -> None:
    """Batches that are validated during a shutdown are appended whole or not at all, and the shutdown
    succeeds.
    """
    with LogdProcess(tmp_path / "logd") as logd:
        topic = create_topic(logd, "t")
        batch = bomb(Codec.GZIP)
        clients = [RawClient(logd.port) for _ in range(8)]
        for client in clients:
            client.send_produce(topic, batch)
            client.send_produce(topic, batch, acks=0)
        assert logd.stop() == 0
        for client in clients:
            client.close()
        logd.start()
        with RawClient(logd.port) as client:
            end = client.produce(topic, records(1)).base_offset
        assert end % BOMB_RECORDS == 0
