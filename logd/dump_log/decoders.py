"""Keys and values of records as text: plain ones, and those of Kafka's internal topics."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from kafka_client.errors import MalformedMessage
from kafka_client.wire import Message, decode
from kafka_client.wire.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafka_client.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from logd.dump_log.json_form import as_json, json_text
from logd.dump_log.newer_groups import NEWER_GROUPS
from logd.groups.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from logd.transactions.records import TransactionLogKey, TransactionLogValue
from logd.transactions.states import state_name

Decoder: TypeAlias = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]
"""Converts a record's offset, key and value to the texts after `key:` and `payload:`, None for no text."""

Kinds: TypeAlias = Mapping[int, tuple[type[Message], type[Message]]]
"""The messages in key and value, by the number that a key starts with."""

_GROUP_RECORDS: Final[Kinds] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    **NEWER_GROUPS,
}
_TRANSACTION_RECORDS: Final[Kinds] = {0: (TransactionLogKey, TransactionLogValue)}
_EMBEDDED: Final[dict[str, type[Message]]] = {
    "subscription": ConsumerProtocolSubscription,
    "assignment": ConsumerProtocolAssignment,
}
_CONSUMERS: Final = "consumer"


def decode_plain(offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Return key and value as UTF-8 text."""
    return as_text(key), as_text(value)


def decode_offsets(offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Decode a record of `__consumer_offsets`."""
    return _decode(_GROUP_RECORDS, offset, key, value)


def decode_transactions(offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
    """Decode a record of `__transaction_state`."""
    return _decode(_TRANSACTION_RECORDS, offset, key, value)


def as_text(data: bytes | None) -> str | None:
    """Return the bytes as UTF-8 text; invalid bytes are replaced."""
    return None if data is None else data.decode("utf-8", "replace")


def as_integer(data: bytes | None) -> str | None:
    """Return a big-endian int32 as text."""
    return _number(data, 4)


def as_long(data: bytes | None) -> str | None:
    """Return a big-endian int64 as text."""
    return _number(data, 8)


def _number(data: bytes | None, size: int) -> str | None:
    if data is None:
        return None
    if len(data) != size:
        return f"{len(data)} bytes, not a number of {size}"
    return str(int.from_bytes(data, "big", signed=True))


COLUMNS: Final[dict[str, Callable[[bytes | None], str | None]]] = {
    "StringDecoder": as_text,
    "IntegerDecoder": as_integer,
    "LongDecoder": as_long,
}
"""The decoders of plain keys and values, by the last part of Kafka's class names."""


def columns(key_name: str, value_name: str) -> Decoder:
    """Return a decoder of two of `COLUMNS`; raises KeyError for another name."""
    read_key, read_value = (COLUMNS[name.rpartition(".")[2]] for name in (key_name, value_name))
    return lambda offset, key, value: (read_key(key), read_value(value))


def _decode(kinds: Kinds, offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    if key is None:
        return f"Error at offset {offset}, skipping. The record has no key.", None
    try:
        number = _version(key)
        if number not in kinds:
            return f"Unknown record type {number} at offset {offset}, skipping.", None
        key_class, value_class = kinds[number]
        # A key starts with the number of its type, which older Kafka versions called a version.
        key_version = min(max(number, key_class.VERSIONS[0]), key_class.VERSIONS[1])
        key_json = {"type": str(number), "data": as_json(decode(key_class, key_version, key, 2), key_version)}
        return json_text(key_json), "<DELETE>" if value is None else json_text(
            _value_json(value_class, value)
        )
    except (MalformedMessage, ValueError) as error:
        return f"Error at offset {offset}, skipping. {error}", None


def _value_json(cls: type[Message], value: bytes) -> dict[str, Any]:
    version = _version(value)
    message = decode(cls, version, value, 2)
    data = as_json(message, version)
    if isinstance(message, GroupMetadataValue) and message.protocol_type == _CONSUMERS:
        for member, fields in zip(message.members, data["members"], strict=True):
            for name, embedded in _EMBEDDED.items():
                fields[name] = _embedded(embedded, getattr(member, name), fields[name])
    if isinstance(message, TransactionLogValue):
        data["transactionStatus"] = state_name(message.transaction_status)
    return {"version": str(version), "data": data}


def _embedded(cls: type[Message], data: bytes, otherwise: str) -> Any:
    """Decode a consumer's subscription or assignment; return `otherwise` if it is invalid."""
    try:
        version = _version(data)
        return as_json(decode(cls, version, data, 2), version)
    except (MalformedMessage, ValueError):
        return otherwise


def _version(data: bytes) -> int:
    if len(data) < 2:
        raise MalformedMessage(f"{len(data)} bytes are too few for a version")
    return int(struct.unpack_from(">h", data)[0])
