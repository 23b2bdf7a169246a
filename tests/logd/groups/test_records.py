"""Records of `__consumer_offsets` equal the bytes of Apache Kafka 4.1's own classes and of its broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode_versioned, encode_versioned
from logd.broker.coordinators.coordinator import partition_for
from logd.groups import decode_record, encode_record
from logd.groups.records import (
    CoordinatorRecord,
    GroupMetadataKey,
    GroupMetadataValue,
    GroupRecord,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetRecord,
)

# MessageUtil.toVersionPrefixedByteBuffer of OffsetCommitValue(5000000000, epoch 7, "größe", 1700000000000).
OFFSET_VALUES = {
    0: "0000000000012a05f20000076772c3b6c39f650000018bcfe56800",
    1: "0001000000012a05f20000076772c3b6c39f650000018bcfe568000000018bcfe58f0f",
    2: "0002000000012a05f20000076772c3b6c39f650000018bcfe56800",
    3: "0003000000012a05f2000000000700076772c3b6c39f650000018bcfe56800",
    4: "0004000000012a05f20000000007086772c3b6c39f650000018bcfe568000100100102030405060708090a0b0c0d0e0f10",
}
# The same of a GroupMetadataValue with one member.
GROUP_VALUES = {
    0: "00000008636f6e73756d657200000003000572616e676500036d2d310000000100036d2d3100026d65000a2f3132372e"
    "302e302e31000027100000000200010000000102",
    1: "00010008636f6e73756d657200000003000572616e676500036d2d310000000100036d2d3100026d65000a2f3132372e"
    "302e302e31000493e0000027100000000200010000000102",
    2: "00020008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000100036d2d3100026d"
    "65000a2f3132372e302e302e31000493e0000027100000000200010000000102",
    3: "00030008636f6e73756d657200000003000572616e676500036d2d310000018bcfe568000000000100036d2d31000369"
    "2d3100026d65000a2f3132372e302e302e31000493e0000027100000000200010000000102",
    4: "000409636f6e73756d6572000000030672616e6765046d2d310000018bcfe5680002046d2d3104692d31036d650b2f31"
    "32372e302e302e31000493e00000271003000102020000",
}
# What an Apache Kafka 4.1 broker appended when a static member joined, synced and committed, and a group was
# deleted.
BROKER_RECORDS = {
    "empty": ("0002000f67726f7570732d676f6c64656e2d67", "0003000000000000ffffffff000001a1fe0b92c000000000"),
    "stable": (
        "0002000f67726f7570732d676f6c64656e2d67",
        "00030008636f6e73756d657200000001000572616e6765002b696e73742d312d32623231646438352d316662332d343730662d62"
        "3866642d333162653534303766666634000001a1fe0b930300000001002b696e73742d312d32623231646438352d316662332d34"
        "3730662d623866642d3331626535343037666666340006696e73742d3100026d65000a2f3132372e302e302e31000493e0000027"
        "1000000023000300000001000d67726f7570732d676f6c64656e0000000000000000ffffffff000000000025000000000001000d"
        "67726f7570732d676f6c64656e00000002000000000000000100000000",
    ),
    "offset": (
        "0001000f67726f7570732d676f6c64656e2d67000d67726f7570732d676f6c64656e00000000",
        "00040000000000000005ffffffff096772c3b6c39f6500000001a1fe0b960b00",
    ),
    "offset tombstone": ("0001000d67726f7570732d73696d706c65000d67726f7570732d676f6c64656e00000000", None),
    "group tombstone": ("0002000d67726f7570732d73696d706c65", None),
}


def from_broker(name: str) -> tuple[bytes, bytes | None]:
    key, value = BROKER_RECORDS[name]
    return bytes.fromhex(key), None if value is None else bytes.fromhex(value)


@pytest.mark.parametrize("version", OFFSET_VALUES)
def test_offset_value_of_every_version(version: int) -> None:
    data = bytes.fromhex(OFFSET_VALUES[version])
    value = decode_versioned(OffsetCommitValue, data)
    assert (value.offset, value.metadata, value.commit_timestamp) == (
        5_000_000_000,
        "größe",
        1_700_000_000_000,
    )
    assert value.leader_epoch == (7 if version >= 3 else -1)
    assert value.expire_timestamp == (1_700_000_009_999 if version == 1 else -1)
    assert value.topic_id == (bytes(range(1, 17)) if version == 4 else bytes(16))
    assert encode_versioned(value, version) == data


@pytest.mark.parametrize("version", GROUP_VALUES)
def test_group_value_of_every_version(version: int) -> None:
    data = bytes.fromhex(GROUP_VALUES[version])
    value = decode_versioned(GroupMetadataValue, data)
    assert value == GroupMetadataValue(
        protocol_type="consumer",
        generation=3,
        protocol="range",
        leader="m-1",
        current_state_timestamp=1_700_000_000_000 if version >= 2 else -1,
        members=[
            MemberMetadata(
                member_id="m-1",
                group_instance_id="i-1" if version >= 3 else None,
                client_id="me",
                client_host="/127.0.0.1",
                rebalance_timeout=300_000 if version >= 1 else -1,
                session_timeout=10_000,
                subscription=b"\x00\x01",
                assignment=b"\x02",
            )
        ],
    )
    assert encode_versioned(value, version) == data


@pytest.mark.parametrize("name", BROKER_RECORDS)
def test_records_of_an_apache_broker(name: str) -> None:
    key, value = from_broker(name)
    record = decode_record(key, value)
    assert record is not None
    again_key, again_value = encode_record(record)
    assert again_key == key
    if (
        name != "offset"
    ):  # Kafka 4.1 writes offsets in version 4; version 3 is the one every broker since 2.1 reads.
        assert again_value == value
    else:
        assert again_value is not None
        assert decode_record(again_key, again_value) == record


def test_a_client_given_expiry_is_written_in_the_version_that_has_it() -> None:
    value = OffsetCommitValue(offset=1, commit_timestamp=2, expire_timestamp=3)
    _, data = encode_record(OffsetRecord(OffsetCommitKey(group="g", topic="t", partition=0), value))
    assert data is not None
    assert data[:2] == b"\x00\x01"
    assert decode_versioned(OffsetCommitValue, data) == value


def test_records_of_newer_protocols_are_passed_over() -> None:
    assert decode_record(b"\x00\x03\x00\x01g", b"whatever") is None


@pytest.mark.parametrize(
    "key", [b"", b"\x00", b"\x00\x01", b"\x00\x01\x00\x05g", b"\x00\x02\xff\xff", b"\xff\xff"]
)
def test_nonsense(key: bytes) -> None:
    if key in (b"\xff\xff",):
        assert decode_record(key, None) is None
    else:
        with pytest.raises(MalformedMessage):
            decode_record(key, None)


# abs(String.hashCode) % 50 by Java; the third's hash is the smallest int, whose abs is 0 in Kafka.
@pytest.mark.parametrize(
    ("group_id", "partition"),
    [("g", 3), ("groups-golden-g", 10), ("polygenelubricants", 0), ("größe", 7), ("😀", 49), ("", 0)],
)
def test_partition_for(group_id: str, partition: int) -> None:
    assert partition_for(group_id, 50) == partition


TEXT = st.text(max_size=20)
MEMBERS = st.builds(
    MemberMetadata,
    member_id=TEXT,
    group_instance_id=st.none() | TEXT,
    client_id=TEXT,
    client_host=TEXT,
    rebalance_timeout=st.integers(-1, 2**31 - 1),
    session_timeout=st.integers(0, 2**31 - 1),
    subscription=st.binary(max_size=50),
    assignment=st.binary(max_size=50),
)
GROUPS = st.builds(
    GroupMetadataValue,
    protocol_type=TEXT,
    generation=st.integers(0, 2**31 - 1),
    protocol=st.none() | TEXT,
    leader=st.none() | TEXT,
    current_state_timestamp=st.integers(-1, 2**62),
    members=st.lists(MEMBERS, max_size=4),
)
OFFSETS = st.builds(
    OffsetCommitValue,
    offset=st.integers(-1, 2**62),
    leader_epoch=st.integers(-1, 2**31 - 1),
    metadata=TEXT,
    commit_timestamp=st.integers(0, 2**62),
)
OFFSET_KEYS = st.builds(OffsetCommitKey, group=TEXT, topic=TEXT, partition=st.integers(0, 2**31 - 1))
RECORDS = st.one_of(
    st.builds(OffsetRecord, OFFSET_KEYS, st.none() | OFFSETS),
    st.builds(GroupRecord, st.builds(GroupMetadataKey, group=TEXT), st.none() | GROUPS),
)


@given(RECORDS)
def test_round_trip(record: CoordinatorRecord) -> None:
    assert decode_record(*encode_record(record)) == record
