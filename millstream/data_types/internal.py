"""Records of `__consumer_offsets` and `__transaction_state` as Apache Kafka's formatters print them.

A line is `{"key":{"type":…,"data":{…}},"value":{"version":…,"data":{…}}}`, the value null for a tombstone.
A formatter prints its own kind of records and passes over all others, as Kafka's do.
"""

from __future__ import annotations

import struct
from typing import TypeAlias

from kafka_client.errors import MalformedMessage
from kafka_client.wire import Message, decode
from logd.dump_log.json_form import as_json, json_text
from logd.groups.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from logd.transactions.records import TransactionLogKey, TransactionLogValue
from logd.transactions.states import state_name
from millstream.data_types.data_type import InternalReader, WrongData

_Kinds: TypeAlias = dict[int, tuple[type[Message], type[Message]]]

_FORMATTERS: dict[str, _Kinds] = {
    "OffsetsMessageFormatter": {
        0: (OffsetCommitKey, OffsetCommitValue),
        1: (OffsetCommitKey, OffsetCommitValue),
    },
    "GroupMetadataMessageFormatter": {2: (GroupMetadataKey, GroupMetadataValue)},
    "TransactionLogMessageFormatter": {0: (TransactionLogKey, TransactionLogValue)},
}
FORMATTERS = tuple(_FORMATTERS)
"""The formatters by Kafka's names."""


def internal_reader(name: str) -> InternalReader:
    """Return the reader of the records that the Java formatter `name` prints.

    `name` may have its package in front. Raises KeyError if no reader has that name.
    """
    kinds = _FORMATTERS[name.rpartition(".")[2]]
    return lambda key, value: _read(kinds, key, value)


def _read(kinds: _Kinds, key: bytes | None, value: bytes | None) -> str | None:
    if key is None:
        return None
    try:
        number = _version(key)
        if number not in kinds:
            return None
        of_key, of_value = kinds[number]
        read = {
            "key": {"type": number, "data": as_json(decode(of_key, number, key, 2), number)},
            "value": None,
        }
        if value is not None:
            version = _version(value)
            message = decode(of_value, version, value, 2)
            data = as_json(message, version)
            if isinstance(message, TransactionLogValue):
                data["transactionStatus"] = state_name(message.transaction_status)
            read["value"] = {"version": version, "data": data}
        return json_text(read)
    except (MalformedMessage, ValueError) as error:
        raise WrongData(f"not a record of Kafka's own: {error}") from None


def _version(data: bytes) -> int:
    if len(data) < 2:
        raise MalformedMessage(f"{len(data)} bytes are too few for a version")
    return int(struct.unpack_from(">h", data)[0])
