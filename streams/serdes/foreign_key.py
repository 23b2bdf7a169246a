"""The messages between the two sides of a foreign-key join, in the format of Kafka Streams 4.4.

A subscription is sent from the left table to the foreign one, and stored there (version 1):

    uint8 version, and 0x80 if there is no hash | uint8 instruction | 16 bytes hash | key bytes ... | int32
    partition

A response is sent back (version 0); without a value it ends after the hash:

    uint8 version, and 0x80 if there is no hash | 16 bytes hash | value bytes ...

Subscriptions are stored under both keys:

    int32 length of the foreign key | foreign key bytes ... | key bytes ...
"""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import partial
from typing import Any, NamedTuple

from streams.serdes.base import Serde

SUBSCRIPTION_VERSION = 1
RESPONSE_VERSION = 0
_NO_HASH = 0x80
_HASH_BYTES = 16
_HASH_HEAD, _NO_HASH_HEAD = bytes((RESPONSE_VERSION,)), bytes((RESPONSE_VERSION | _NO_HASH,))
"""The first byte of a response, with and without a hash."""
_INT = struct.Struct(">i")


class Instruction(IntEnum):
    """The instruction of a subscription to the foreign side."""

    DELETE_KEY_NO_PROPAGATE = 0
    DELETE_KEY_AND_PROPAGATE = 1
    PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE = 2
    PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE = 3


class Subscription(NamedTuple):
    """A left row that refers to a foreign key: its value's hash (None: it was deleted), key and partition.

    ``partition`` is None in subscriptions written by Kafka Streams before 3.4.
    """

    hash: bytes | None
    instruction: Instruction
    key: Any
    partition: int | None


class Response(NamedTuple):
    """The foreign value for a left row.

    ``partition`` is the left row's partition, to which the response is sent. It is not serialized.
    """

    hash: bytes | None
    value: Any
    partition: int | None


# The constructors of named tuples, and an enumeration's lookup, cost as much as all the rest.
_subscription, _response = partial(tuple.__new__, Subscription), partial(tuple.__new__, Response)
_INSTRUCTIONS = {int(each): each for each in Instruction}
_HEADS = [bytes((SUBSCRIPTION_VERSION, instruction)) for instruction in range(max(Instruction) + 1)]
"""The first bytes of most subscriptions, by instruction."""


class SubscriptionSerde(Serde[Subscription]):
    """Subscriptions of left rows with keys of this serde."""

    def __init__(self, key_serde: Serde[Any]) -> None:
        self._key = key_serde
        self.immutable = key_serde.immutable

    def serialize(self, value: Subscription) -> bytes:
        hash, instruction, key, partition = value
        if hash is not None and partition is not None:
            return _HEADS[instruction] + hash + self._key.serialize(key) + _INT.pack(partition)
        version = 0 if partition is None else SUBSCRIPTION_VERSION
        head = bytes((version if hash is not None else version | _NO_HASH, instruction)) + (hash or b"")
        data = head + self._key.serialize(key)
        return data if partition is None else data + _INT.pack(partition)

    def deserialize(self, data: bytes) -> Subscription:
        version, hash, begin = _head(data, 2)
        if version > SUBSCRIPTION_VERSION:
            raise ValueError(f"subscription of version {version}; {SUBSCRIPTION_VERSION} is the latest known")
        end = len(data) - (_INT.size if version else 0)
        partition = _INT.unpack_from(data, end)[0] if version else None
        instruction = _INSTRUCTIONS.get(data[1])
        if instruction is None:
            raise ValueError(f"subscription with instruction {data[1]}; {max(Instruction)} is the last known")
        return _subscription((hash, instruction, self._key.deserialize(data[begin:end]), partition))


class ResponseSerde(Serde[Response]):
    """Responses with foreign values of this serde."""

    def __init__(self, value_serde: Serde[Any]) -> None:
        self._value = value_serde

    def serialize(self, value: Response) -> bytes:
        hash, foreign_value, _ = value
        head = _NO_HASH_HEAD if hash is None else _HASH_HEAD + hash
        return head if foreign_value is None else head + self._value.serialize(foreign_value)

    def deserialize(self, data: bytes) -> Response:
        version, hash, begin = _head(data, 1)
        if version > RESPONSE_VERSION:
            raise ValueError(f"response of version {version}; {RESPONSE_VERSION} is the latest known")
        return _response((hash, self._value.deserialize(data[begin:]) if len(data) > begin else None, None))


def _head(data: bytes, begin: int) -> tuple[int, bytes | None, int]:
    """Return version, hash, and the position after the hash."""
    if data[0] & _NO_HASH:
        return data[0] & ~_NO_HASH, None, begin
    return data[0], data[begin : begin + _HASH_BYTES], begin + _HASH_BYTES


def combined_key(foreign_key: bytes, key: bytes) -> bytes:
    """Return a subscription's stored key; with an empty ``key`` the prefix of all of a foreign key."""
    return _INT.pack(len(foreign_key)) + foreign_key + key


def end_of_prefix(prefix: bytes) -> bytes:
    """Return the first bytes after all that begin with ``prefix``, a prefix of a combined key."""
    return (int.from_bytes(prefix, "big") + 1).to_bytes(len(prefix), "big")
