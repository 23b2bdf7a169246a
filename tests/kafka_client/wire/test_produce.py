"""Produce packed and parsed by hand, against kio's and the compiled codecs."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode, decode_request_header, decode_response_header, encode
from kafka_client.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceLeaderIdAndEpoch,
    ProduceNodeEndpoint,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafka_client.wire.produce import (
    FLEXIBLE,
    TOPIC_IDS,
    VERSIONS,
    PartitionProduced,
    ReceivedProduce,
    Topic,
    decode_produce_request,
    encode_produce_request,
    encode_produce_response,
)

versions = st.integers(*VERSIONS)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
names = st.text(max_size=5) | st.just("t" * 200)
ids = st.binary(min_size=16, max_size=16)
records = st.binary(max_size=20) | st.just(b"r" * 300)


def topics_of(version: int, partition: st.SearchStrategy) -> st.SearchStrategy:  # type: ignore[type-arg]
    topic = ids if version >= TOPIC_IDS else names
    return st.lists(st.tuples(topic, st.lists(partition, max_size=3)), max_size=3)


def test_versions_are_those_declared() -> None:
    assert ProduceRequest.VERSIONS == ProduceResponse.VERSIONS == VERSIONS
    assert ProduceRequest.FLEXIBLE == FLEXIBLE


def name_or_id(topic: Topic) -> dict[str, str | bytes]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"name": topic}


@given(data=st.data(), version=versions)
def test_requests(data: st.DataObject, version: int) -> None:
    topics = data.draw(topics_of(version, st.tuples(int32, records)))
    transactional_id, timeout_ms = data.draw(st.none() | names), data.draw(int32)
    declared = ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=timeout_ms,
        topic_data=[
            TopicProduceData(
                **name_or_id(topic),  # type: ignore[arg-type]
                partition_data=[PartitionProduceData(index=index, records=batch) for index, batch in parts],
            )
            for topic, parts in topics
        ],
    )
    chunks = encode_produce_request(
        topics, version, 7, "me", transactional_id=transactional_id, timeout_ms=timeout_ms
    )
    frame = b"".join(chunks)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    header = decode_request_header(frame, 4)
    assert header[:4] == (0, version, 7, "me")
    assert frame[header.body :] == encode(declared, version)
    # The broker parses out of the middle of its receive buffer.
    read = decode_produce_request(bytearray(frame + b"more"), version, header.body, len(frame))
    assert read == ReceivedProduce(transactional_id, -1, timeout_ms, topics)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_batches_are_not_copied(version: int) -> None:
    topic: Topic = bytes(16) if version >= TOPIC_IDS else "t"
    batch = bytes(1000)
    chunks = encode_produce_request([(topic, [(0, batch)])], version, 1, None)
    assert any(chunk is batch for chunk in chunks)
    frame = b"".join(chunks)
    request = decode_produce_request(frame, version, decode_request_header(frame, 4).body)
    assert request.topics[0][1][0][1].obj is frame


def test_null_records_are_an_empty_view() -> None:
    for version in (8, 9):
        body = encode(
            ProduceRequest(topic_data=[TopicProduceData(partition_data=[PartitionProduceData()])]), version
        )
        ((_, ((_, view),)),) = decode_produce_request(body, version).topics
        assert len(view) == 0


plain = st.tuples(int32, st.integers(-1, 133), int64, int64, int64).map(lambda t: PartitionProduced(*t))
refused = st.tuples(
    int32,
    st.just(87),
    *[int64] * 3,
    st.none() | names,
    st.lists(st.tuples(int32, st.none() | names), max_size=2),
    st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9)),
).map(lambda t: PartitionProduced(*t))
produced = plain | refused
node_endpoints = st.lists(st.tuples(int32, names, int32, st.none() | names), max_size=2)


@given(data=st.data(), version=versions, throttle=int32)
def test_responses(data: st.DataObject, version: int, throttle: int) -> None:
    topics = data.draw(topics_of(version, produced))
    nodes = data.draw(node_endpoints)
    frame = encode_produce_response(topics, version, 12, throttle, nodes)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    correlation_id, body = decode_response_header(0, version, frame, 4)
    assert correlation_id == 12
    declared = ProduceResponse(
        throttle_time_ms=throttle,
        node_endpoints=[
            ProduceNodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in nodes
        ],
        responses=[
            TopicProduceResponse(
                **name_or_id(topic),  # type: ignore[arg-type]
                partition_responses=[
                    PartitionProduceResponse(
                        index=one.partition,
                        error_code=one.error_code,
                        base_offset=one.base_offset,
                        log_append_time_ms=one.log_append_time_ms,
                        log_start_offset=one.log_start_offset,
                        error_message=one.error_message,
                        record_errors=[
                            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
                            for index, text in one.record_errors
                        ],
                        current_leader=ProduceLeaderIdAndEpoch(
                            leader_id=one.leader[0], leader_epoch=one.leader[1]
                        )
                        if one.leader is not None
                        else ProduceLeaderIdAndEpoch(),
                    )
                    for one in parts
                ],
            )
            for topic, parts in topics
        ],
    )
    assert frame[body:] == encode(declared, version)
    assert decode(ProduceResponse, version, frame, body).throttle_time_ms == throttle


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
def test_truncated_requests_are_malformed(version: int) -> None:
    topic: Topic = bytes(16) if version >= TOPIC_IDS else "topic"
    chunks = encode_produce_request([(topic, [(0, b"r" * 10), (1, b"")])], version, 1, "me")
    frame = b"".join(chunks)
    body = decode_request_header(frame, 4).body
    for end in range(body, len(frame)):
        with pytest.raises(MalformedMessage, match=f"ProduceRequest v{version}"):
            decode_produce_request(frame, version, body, end)
    with pytest.raises(MalformedMessage, match="1 bytes after its end"):
        decode_produce_request(frame + b"\0", version, body)


@given(data=st.binary(max_size=100), version=versions)
def test_garbage_requests_are_malformed(data: bytes, version: int) -> None:
    try:
        decode_produce_request(data, version)
    except MalformedMessage:
        pass


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (3, b"\xff\xff\0\1\0\0\0\0\x7f\xff\xff\xff"),
        (3, b"\xff\xff\0\1\0\0\0\0\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\x7f\xff\xff\xffrec"),
        (9, b"\0\0\1\0\0\0\0\xff\xff\xff\xff\x0f"),
        (9, b"\0\0\1\0\0\0\0\2\2t\2\0\0\0\0\xff\xff\xff\xff\x0frec"),
    ],
)
def test_lying_lengths_are_malformed(version: int, body: bytes) -> None:
    with pytest.raises(MalformedMessage, match="bytes"):
        decode_produce_request(body, version)
