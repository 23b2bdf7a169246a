"""The records of `__consumer_offsets`, in Kafka's format.

A record's key and value each begin with a version, then the message in that version:

    key    | int16: 0, 1 = OffsetCommitKey, 2 = GroupMetadataKey | message |
    value  | int16: version of the value                         | message |       (no value: a tombstone)

Key versions from 3 on belong to the newer group protocols (KIP-848, KIP-932, KIP-1071), and are skipped when
read. Values are written as Kafka 4 writes them: groups in version 3, offsets in version 3, or in version 1 if
the client requested an expiry of its own. All versions are read.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, NamedTuple

from kafka_client.wire import decode_versioned, encode_versioned
from kafka_client.wire.message import NEVER, NO_UUID, Bytes, Int32, Int64, Message, String, Uuid, V

OFFSETS_TOPIC: Final = "__consumer_offsets"
_OFFSET_KEYS: Final = (0, 1)
_OFFSET_KEY: Final = 1
_GROUP_KEY: Final = 2
_OFFSET_VALUE: Final = 3
_OFFSET_VALUE_WITH_EXPIRY: Final = 1
_GROUP_VALUE: Final = 3


class OffsetCommitKey(Message):
    """The key of a committed offset's record."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = NEVER

    group: String = ""
    topic: String = ""
    partition: Int32 = 0


class OffsetCommitValue(Message):
    """A committed offset."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    offset: Int64 = 0
    leader_epoch: Annotated[Int32, V(3)] = -1
    metadata: String = ""
    commit_timestamp: Int64 = 0
    expire_timestamp: Annotated[Int64, V(1, 1)] = -1
    topic_id: Annotated[Uuid, V(4, tag=0)] = NO_UUID


class GroupMetadataKey(Message):
    """The key of a group's record."""

    VERSIONS: ClassVar[tuple[int, int]] = (2, 2)
    FLEXIBLE: ClassVar[int] = NEVER

    group: String = ""


class MemberMetadata(Message):
    """A member in a GroupMetadataValue."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, V(3)] = None
    client_id: String = ""
    client_host: String = ""
    rebalance_timeout: Annotated[Int32, V(1)] = -1
    session_timeout: Int32 = 0
    subscription: Bytes = b""
    assignment: Bytes = b""


class GroupMetadataValue(Message):
    """A generation: its members with subscriptions and assignments; an empty group has no members."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    protocol_type: String = ""
    generation: Int32 = 0
    protocol: String | None = None
    leader: String | None = None
    current_state_timestamp: Annotated[Int64, V(2)] = -1
    members: list[MemberMetadata] = []


class OffsetRecord(NamedTuple):
    """A committed offset, or its tombstone."""

    key: OffsetCommitKey
    value: OffsetCommitValue | None


class GroupRecord(NamedTuple):
    """A group's generation, or its tombstone."""

    key: GroupMetadataKey
    value: GroupMetadataValue | None


CoordinatorRecord = OffsetRecord | GroupRecord


def encode_record(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """Return key and value as they are in the log; raises ValueError if a text is too long for the format."""
    if isinstance(record, OffsetRecord):
        key = encode_versioned(record.key, _OFFSET_KEY)
        expires = record.value is not None and record.value.expire_timestamp != -1
        version = _OFFSET_VALUE_WITH_EXPIRY if expires else _OFFSET_VALUE
    else:
        key = encode_versioned(record.key, _GROUP_KEY)
        version = _GROUP_VALUE
    return key, None if record.value is None else encode_versioned(record.value, version)


def decode_record(key: bytes, value: bytes | None) -> CoordinatorRecord | None:
    """Return the record of a key and a value; None for a kind of a newer protocol.

    Raises MalformedMessage for bytes that do not match their version.
    """
    kind = int.from_bytes(key[:2], "big", signed=True)
    if kind in _OFFSET_KEYS:
        offset = None if value is None else decode_versioned(OffsetCommitValue, value)
        return OffsetRecord(decode_versioned(OffsetCommitKey, key), offset)
    if kind == _GROUP_KEY:
        group = None if value is None else decode_versioned(GroupMetadataValue, value)
        return GroupRecord(decode_versioned(GroupMetadataKey, key), group)
    return None
