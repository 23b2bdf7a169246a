"""Fetch packed and parsed by hand, against the compiled codecs (which are checked against kio)."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode, decode_response_header, encode
from kafka_client.wire.fetch import (
    FLEXIBLE,
    NO_REPLICA,
    TOPIC_IDS,
    VERSIONS,
    PartitionFetched,
    Topic,
    decode_fetch_request,
    encode_fetch_response,
)
from kafka_client.wire.fetched import decode_fetch_response
from kafka_client.wire.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchLeaderIdAndEpoch,
    FetchNodeEndpoint,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
    ReplicaState,
)

versions = st.integers(*VERSIONS)
int32 = st.integers(-(1 << 31), (1 << 31) - 1)
int64 = st.integers(-(1 << 63), (1 << 63) - 1)
names = st.text(max_size=5) | st.just("t" * 200)
ids = st.binary(min_size=16, max_size=16)
record_bytes = st.binary(max_size=20) | st.just(b"r" * 300)


class Elsewhere(NamedTuple):
    """Records that are not in memory."""

    content: bytes

    @property
    def length(self) -> int:
        return len(self.content)


def topics_of(version: int, partition: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    topic = ids if version >= TOPIC_IDS else names
    return st.lists(st.tuples(topic, st.lists(partition, max_size=3)), max_size=3)


def name_or_id(topic: Topic) -> dict[str, Any]:
    return {"topic_id": topic} if isinstance(topic, bytes) else {"topic": topic}


def test_versions_are_those_declared() -> None:
    assert FetchRequest.VERSIONS == FetchResponse.VERSIONS == VERSIONS
    assert FetchRequest.FLEXIBLE == FLEXIBLE


requested = st.builds(
    FetchPartition,
    partition=int32,
    current_leader_epoch=int32,
    fetch_offset=int64,
    last_fetched_epoch=int32,
    log_start_offset=int64,
    partition_max_bytes=int32,
    replica_directory_id=ids | st.just(bytes(16)),
    high_watermark=int64,
)


@given(data=st.data(), version=versions)
def test_requests(data: st.DataObject, version: int) -> None:
    topics = data.draw(topics_of(version, requested))
    forgotten = data.draw(topics_of(version, int32))
    declared = data.draw(
        st.builds(
            FetchRequest,
            cluster_id=st.none() | names,
            replica_id=int32,
            replica_state=st.builds(ReplicaState)
            | st.builds(ReplicaState, replica_id=int32, replica_epoch=int64),
            max_wait_ms=int32,
            min_bytes=int32,
            max_bytes=int32,
            isolation_level=st.integers(0, 1),
            session_id=int32,
            session_epoch=int32,
            topics=st.just([FetchTopic(**name_or_id(topic), partitions=parts) for topic, parts in topics]),
            forgotten_topics_data=st.just(
                [ForgottenTopic(**name_or_id(topic), partitions=parts) for topic, parts in forgotten]
            ),
            rack_id=names,
        )
    )
    body = encode(declared, version)
    read = decode_fetch_request(bytearray(b"head" + body + b"more"), version, 4, 4 + len(body))
    assert read.replica_id == (declared.replica_state.replica_id if version >= 15 else declared.replica_id)
    assert read.replica_epoch == (declared.replica_state.replica_epoch if version >= 15 else -1)
    assert read.cluster_id == (declared.cluster_id if version >= 12 else None)
    assert read[1:5] == (
        declared.max_wait_ms,
        declared.min_bytes,
        declared.max_bytes,
        declared.isolation_level,
    )
    session = (declared.session_id, declared.session_epoch) if version >= 7 else (0, -1)
    assert (read.session_id, read.session_epoch) == session
    assert read.rack_id == (declared.rack_id if version >= 11 else "")
    assert read.forgotten == (forgotten if version >= 7 else [])
    assert read.topics == [
        (
            topic,
            [
                (
                    one.partition,
                    one.current_leader_epoch if version >= 9 else -1,
                    one.fetch_offset,
                    one.last_fetched_epoch if version >= 12 else -1,
                    one.log_start_offset if version >= 5 else -1,
                    one.partition_max_bytes,
                )
                for one in parts
            ],
        )
        for topic, parts in topics
    ]


fetched = st.builds(
    PartitionFetched,
    int32,
    st.integers(-1, 133),
    int64,
    int64,
    int64,
    record_bytes | st.builds(Elsewhere, record_bytes),
    st.none() | st.lists(st.tuples(int64, int64), max_size=2),
    int32,
    st.none() | st.tuples(st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 63) - 1)),
    st.none(),
    st.just(-1),
)
leaders = st.tuples(st.integers(0, (1 << 31) - 1), st.integers(0, (1 << 31) - 1))
misled = leaders.map(lambda leader: PartitionFetched[Elsewhere](3, 6, leader=leader))
node_endpoints = st.lists(st.tuples(int32, names, int32, st.none() | names), max_size=2)


def content(records: Elsewhere | bytes) -> bytes:
    return records if isinstance(records, bytes) else records.content


@given(data=st.data(), version=versions, throttle=int32, session_id=int32)
def test_responses(data: st.DataObject, version: int, throttle: int, session_id: int) -> None:
    topics = data.draw(topics_of(version, fetched | misled))
    nodes = data.draw(node_endpoints)
    chunks = encode_fetch_response(
        topics, version, 12, throttle_time_ms=throttle, error_code=70, session_id=session_id, nodes=nodes
    )
    frame = b"".join([chunk if isinstance(chunk, bytes) else chunk.content for chunk in chunks])
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    correlation_id, body = decode_response_header(1, version, frame, 4)
    assert correlation_id == 12
    declared = FetchResponse(
        throttle_time_ms=throttle,
        error_code=70,
        session_id=session_id,
        node_endpoints=[
            FetchNodeEndpoint(node_id=node_id, host=host, port=port, rack=rack)
            for node_id, host, port, rack in nodes
        ],
        responses=[
            FetchableTopicResponse(**name_or_id(topic), partitions=[declare(one) for one in parts])
            for topic, parts in topics
        ],
    )
    assert frame[body:] == encode(declared, version)
    read = decode_fetch_response(memoryview(frame), version, body)
    assert read[:3] == (throttle, 70 if version >= 7 else 0, session_id if version >= 7 else 0)
    assert read.topics == [
        (
            topic,
            [
                (
                    *one[:4],
                    one.log_start_offset if version >= 5 else -1,
                    list(one.aborted or ()),
                    one.preferred_read_replica if version >= 11 else -1,
                    content(one.records),
                    *(one.leader if one.leader and version >= 12 else (-1, -1)),
                    *(one.diverging if one.diverging and version >= 12 else (-1, -1)),
                    -1,
                )
                for one in parts
            ],
        )
        for topic, parts in topics
    ]


@given(
    removal_offset=st.integers(0, (1 << 63) - 1),
    diverging=st.none() | st.just((-1, 0)) | st.just((3, 70)),
    version=versions,
)
def test_the_removal_offset_is_a_tag_that_others_skip(
    removal_offset: int, diverging: tuple[int, int] | None, version: int
) -> None:
    name = bytes(range(16)) if version >= 13 else "t"
    partition = PartitionFetched[Elsewhere](3, high_watermark=9, records=b"abc", diverging=diverging)
    topics = [(name, [partition._replace(removal_offset=removal_offset)])]
    frame = b"".join(encode_fetch_response(topics, version, 12))  # type: ignore[arg-type]
    _, body = decode_response_header(1, version, frame, 4)
    (one,) = decode_fetch_response(memoryview(frame), version, body).topics[0][1]
    assert one.removal_offset == (removal_offset if version >= 12 else -1)
    assert (one.diverging_epoch, one.diverging_end_offset) == (
        diverging if diverging and version >= 12 else (-1, -1)
    )
    read = decode(FetchResponse, version, frame, body)
    assert read.responses[0].partitions == [decode_of(partition, version)]


def decode_of(one: PartitionFetched[Elsewhere], version: int) -> PartitionData:
    """Return the partition as a client decodes it."""
    response = FetchResponse(responses=[FetchableTopicResponse(partitions=[declare(one)])])
    return decode(FetchResponse, version, encode(response, version)).responses[0].partitions[0]


def declare(one: PartitionFetched[Elsewhere]) -> PartitionData:
    aborted = None
    if one.aborted is not None:
        aborted = [AbortedTransaction(producer_id=pid, first_offset=first) for pid, first in one.aborted]
    diverging = EpochEndOffset()
    if one.diverging is not None:
        diverging = EpochEndOffset(epoch=one.diverging[0], end_offset=one.diverging[1])
    leader = FetchLeaderIdAndEpoch()
    if one.leader is not None:
        leader = FetchLeaderIdAndEpoch(leader_id=one.leader[0], leader_epoch=one.leader[1])
    return PartitionData(
        diverging_epoch=diverging,
        current_leader=leader,
        partition_index=one.partition,
        error_code=one.error_code,
        high_watermark=one.high_watermark,
        last_stable_offset=one.last_stable_offset,
        log_start_offset=one.log_start_offset,
        aborted_transactions=aborted,
        preferred_read_replica=one.preferred_read_replica,
        records=content(one.records),
    )


@pytest.mark.parametrize("version", [4, 11, 12, 18])
def test_slices_stay_slices_and_an_empty_partition_is_not_null(version: int) -> None:
    topic: Topic = bytes(16) if version >= TOPIC_IDS else "t"
    first, second = Elsewhere(b"abc"), Elsewhere(b"defg")
    partitions = [
        PartitionFetched(0, records=first),
        PartitionFetched[Elsewhere](1),
        PartitionFetched(2, records=second),
    ]
    chunks = encode_fetch_response([(topic, partitions)], version, 1)
    assert [type(chunk) for chunk in chunks[:4]] == [bytes, Elsewhere, bytes, Elsewhere]
    assert chunks[1] is first and chunks[3] is second
    assert all(not isinstance(chunk, bytes) or chunk for chunk in chunks)
    frame = b"".join([chunk if isinstance(chunk, bytes) else chunk.content for chunk in chunks])
    ((_, slices),) = decode_fetch_response(
        frame, version, decode_response_header(1, version, frame, 4)[1]
    ).topics
    assert [bytes(one.records) for one in slices] == [b"abc", b"", b"defg"]
    assert slices[0].records.obj is frame


def test_leader_hints_are_read() -> None:
    declared = FetchResponse(
        responses=[
            FetchableTopicResponse(
                partitions=[
                    PartitionData(
                        records=b"",
                        current_leader=FetchLeaderIdAndEpoch(leader_id=3, leader_epoch=9),
                        diverging_epoch=EpochEndOffset(epoch=4, end_offset=100),
                    )
                ]
            )
        ]
    )
    ((_, (partition,)),) = decode_fetch_response(encode(declared, 16), 16).topics
    assert (partition.leader_id, partition.leader_epoch) == (3, 9)
    assert (partition.diverging_epoch, partition.diverging_end_offset) == (4, 100)


@pytest.mark.parametrize("version", range(VERSIONS[0], VERSIONS[1] + 1))
def test_truncated_messages_are_malformed(version: int) -> None:
    request = FetchRequest(
        cluster_id="c",
        replica_state=ReplicaState(replica_id=1),
        topics=[FetchTopic(topic="t", partitions=[FetchPartition(high_watermark=5)])],
        forgotten_topics_data=[ForgottenTopic(topic="u", partitions=[1, 2])],
        rack_id="r",
    )
    body = encode(request, version)
    for end in range(len(body)):
        with pytest.raises(MalformedMessage, match=f"FetchRequest v{version}"):
            decode_fetch_request(body, version, 0, end)
    with pytest.raises(MalformedMessage, match="1 bytes after its end"):
        decode_fetch_request(body + b"\0", version)
    assert decode_fetch_request(body, version).replica_id == (1 if version >= 15 else NO_REPLICA)
    response = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="t",
                partitions=[
                    PartitionData(
                        records=b"abc",
                        aborted_transactions=[AbortedTransaction()],
                        current_leader=FetchLeaderIdAndEpoch(leader_id=1, leader_epoch=1),
                    )
                ],
            )
        ]
    )
    body = encode(response, version)
    for end in range(len(body)):
        with pytest.raises(MalformedMessage, match=f"FetchResponse v{version}"):
            decode_fetch_response(body[:end], version)


@given(data=st.binary(max_size=150), version=versions)
def test_garbage_is_malformed(data: bytes, version: int) -> None:
    for read in (decode_fetch_request, decode_fetch_response):
        try:
            read(data, version)  # type: ignore[operator]
        except MalformedMessage:
            pass
