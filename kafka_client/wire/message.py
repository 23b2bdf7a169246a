"""The vocabulary messages are declared in.

A message is one class over all its versions. A field's type says how it travels, `V` says in
which versions:

    class FetchPartition(Message, kw_only=True):
        partition: Int32 = 0
        current_leader_epoch: Annotated[Int32, V(9)] = -1                # version 9 and later
        rack: Annotated[String | None, V(3, nullable=5)] = ""            # from 3, null from 5
        log_start: Annotated[Int64, V(5, 11)] = -1                       # versions 5 to 11
        cluster_id: Annotated[String | None, V(12, tag=0)] = None        # tagged field 0 (KIP-482)
        replicas: list[Int32] = []                                       # an array
        cursor: Cursor | None = None                                     # a nullable struct (KIP-893)

Every field has a default: what a decoder gives where the version has no such field, and what a
tagged field is left out for. `compile` turns a class into an encoder and a decoder per version.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

NEVER: Final = 1 << 30
"""A version that is never reached: `FLEXIBLE` of messages without flexible versions, or a field's last
version.
"""

NO_UUID: Final = bytes(16)
"""Kafka's zero uuid: no topic id."""


class Kind(Enum):
    """How a field's value travels."""

    INT8 = auto()
    INT16 = auto()
    INT32 = auto()
    INT64 = auto()
    UINT16 = auto()
    UINT32 = auto()
    BOOLEAN = auto()
    FLOAT64 = auto()
    STRING = auto()
    UUID = auto()
    BYTES = auto()
    RECORDS = auto()


OUR_TAGS = 10_000
"""Tagged fields from this number on are ours, and skipped by Kafka, which counts its own from 0."""


@dataclass(frozen=True, slots=True, init=False)
class V:
    """In which versions a field is there.

    `V(7)`: from 7 on; `V(0, 9)`: 0 to 9; `nullable=5`: may be null from version 5 on (without
    it an optional type may be null in every version); `tag=0`: travels as tagged field 0.
    """

    first: int
    last: int
    tag: int | None
    nullable: int

    def __init__(
        self, first: int = 0, last: int = NEVER, *, tag: int | None = None, nullable: int = 0
    ) -> None:
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "last", last)
        object.__setattr__(self, "tag", tag)
        object.__setattr__(self, "nullable", nullable)


Int8: TypeAlias = Annotated[int, Kind.INT8]
Int16: TypeAlias = Annotated[int, Kind.INT16]
Int32: TypeAlias = Annotated[int, Kind.INT32]
Int64: TypeAlias = Annotated[int, Kind.INT64]
UInt16: TypeAlias = Annotated[int, Kind.UINT16]
UInt32: TypeAlias = Annotated[int, Kind.UINT32]
Boolean: TypeAlias = Annotated[bool, Kind.BOOLEAN]
Float64: TypeAlias = Annotated[float, Kind.FLOAT64]
String: TypeAlias = Annotated[str, Kind.STRING]
Uuid: TypeAlias = Annotated[bytes, Kind.UUID]
"""16 raw bytes."""
Bytes: TypeAlias = Annotated[bytes, Kind.BYTES]
Records: TypeAlias = Annotated[bytes, Kind.RECORDS]
"""Record batches, as they are."""


class Message(msgspec.Struct, kw_only=True):
    """Base of every message and of the structs inside messages.

    Top-level messages set the class variables; the structs inside take their flexibility from
    the message they travel in.
    """

    API_KEY: ClassVar[int] = -1
    """Kafka's number of the API; -1 for data that is no request or response."""
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    """First and last version the declaration covers."""
    FLEXIBLE: ClassVar[int] = NEVER
    """First version with compact lengths and tagged fields (KIP-482)."""
