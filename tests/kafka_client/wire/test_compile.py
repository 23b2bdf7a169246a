"""The declaration vocabulary and what the compiled code refuses, on messages declared here."""

from __future__ import annotations

import tracemalloc
from typing import Annotated, Any, ClassVar

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode, decode_exactly, decode_versioned, decoder, encode, encode_versioned
from kafka_client.wire.message import (
    NO_UUID,
    Boolean,
    Bytes,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Message,
    String,
    UInt16,
    UInt32,
    Uuid,
    V,
)


class Inner(Message):
    name: String = ""
    numbers: list[Int32] = []
    note: Annotated[String | None, V(2, tag=3)] = None


class Everything(Message):
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    tiny: Int8 = 0
    small: Int16 = -1
    late: Annotated[Int32, V(1)] = 7
    dropped: Annotated[Int64, V(0, 1)] = 0
    port: UInt16 = 0
    mask: UInt32 = 0
    on: Boolean = False
    share: Float64 = 0.0
    id: Uuid = NO_UUID
    name: String = ""
    nick: Annotated[String | None, V(1, nullable=2)] = ""
    data: Bytes | None = None
    inner: Inner = msgspec.field(default_factory=Inner)
    maybe: Inner | None = None
    inners: Annotated[list[Inner] | None, V(nullable=1)] = []
    names: list[String] = []
    ids: list[Uuid] = []
    flags: list[Boolean] = []
    tagged: Annotated[list[Inner], V(2, tag=0)] = []
    rack: Annotated[String | None, V(3, tag=1)] = "here"


FULL = Everything(
    tiny=-128,
    small=32767,
    late=5,
    port=65535,
    mask=0xFFFF_FFFF,
    on=True,
    share=1.5,
    id=bytes(range(16)),
    name="ä",
    nick=None,
    data=b"d" * 300,
    inner=Inner(name="in", numbers=list(range(200)), note="n"),
    maybe=Inner(name="x"),
    inners=[Inner(), Inner(numbers=[1, -1])],
    names=["", "b" * 500],
    ids=[NO_UUID, bytes(range(16))],
    flags=[True, False],
    tagged=[Inner(name="t")],
    rack=None,
)


def test_flexible_versions_round_trip() -> None:
    assert decode(Everything, 3, encode(FULL, 3)) == FULL


def test_fields_of_other_versions_are_left_out_and_read_as_defaults() -> None:
    written = msgspec.structs.replace(
        FULL, nick="n", inners=[], inner=Inner(name="a", note="lost"), dropped=9
    )
    read = decode(Everything, 0, encode(written, 0))
    assert (read.late, read.nick, read.dropped, read.rack) == (7, "", 9, "here")
    assert (read.tagged, read.inner) == ([], Inner(name="a"))


@pytest.mark.parametrize("version", range(4))
def test_defaults_take_no_tagged_field(version: int) -> None:
    data = encode(Everything(), version)
    assert decode(Everything, version, data) == Everything()
    assert version < 2 or data[-1] == 0


def test_unknown_tagged_fields_are_skipped() -> None:
    class Newer(Message):
        VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
        FLEXIBLE: ClassVar[int] = 0
        number: Int32 = 0
        before: Annotated[String | None, V(tag=0)] = None
        label: Annotated[String | None, V(tag=4)] = None
        after: Annotated[Int64, V(tag=300)] = 0

    class Older(Message):
        VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
        FLEXIBLE: ClassVar[int] = 0
        number: Int32 = 0
        label: Annotated[String | None, V(tag=4)] = None

    globals().update(Newer=Newer, Older=Older)
    data = encode(Newer(number=1, before="b" * 200, label="k", after=5), 0)
    assert decode(Older, 0, data) == Older(number=1, label="k")
    assert encode(Older(), 0) == b"\0\0\0\0\0"


@pytest.mark.parametrize(
    ("version", "changes", "field"),
    [
        (0, {"tiny": 128}, "tiny"),
        (0, {"small": None}, "small"),
        (0, {"name": None}, "name"),
        (0, {"name": "x" * 40_000}, "name"),
        (0, {"inners": None}, "inners"),
        (1, {"nick": None}, "nick"),
        (3, {"names": ["a", None]}, "names"),
        (3, {"id": b"short"}, "id"),
        (3, {"ids": [b""]}, "ids"),
        (3, {"inner": Inner(numbers=[1 << 31])}, "inner.numbers"),
        (3, {"tagged": [Inner(name=None)]}, "tagged.name"),  # type: ignore[arg-type]
        (3, {"maybe": Inner(name=3)}, "maybe.name"),  # type: ignore[arg-type]
    ],
)
def test_encoder_names_what_it_cannot_write(version: int, changes: dict[str, Any], field: str) -> None:
    message = msgspec.structs.replace(Everything(), **changes)
    with pytest.raises(ValueError, match=rf"Everything v{version}, cannot write .*\b{field}\b"):
        encode(message, version)


def test_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="versions 0 to 3, not 4"):
        encode(Everything(), 4)
    with pytest.raises(ValueError, match="versions 0 to 3, not -1"):
        decode(Everything, -1, b"")


@pytest.mark.parametrize("version", range(4))
def test_every_truncation_is_malformed(version: int) -> None:
    full = msgspec.structs.replace(FULL, nick="n") if version < 2 else FULL
    data = encode(full, version)
    for size in range(len(data)):
        with pytest.raises(MalformedMessage, match=rf"Everything v{version}, \w"):
            decode(Everything, version, data[:size])


class Lists(Message):
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 1
    inners: list[Inner] = []
    numbers: list[Int64] = []


@pytest.mark.parametrize(
    ("version", "data", "complaint"),
    [
        (0, b"\x7f\xff\xff\xff", "inners: an array of 2147483647 elements in 0 bytes"),
        (0, b"\xff\xff\xff\xff", "inners: a length of -1"),
        (0, b"\x80\x00\x00\x00", "inners: a length of -2147483648"),
        (0, b"\0\0\0\0\x7f\xff\xff\xff", "numbers: an array of 2147483647 elements"),
        (0, b"\0\0\0\1\x7f\xff\0\0\0\0", "inners.name: 32767 bytes, 4 are left"),
        (0, b"\0\0\0\1\0\2\xff\xfe\0\0\0\0\0\0\0\0", "inners.name: .*utf-8"),
        (1, b"\xff\xff\xff\xff\x0f", "inners: an array of 4294967294 elements"),
        (1, b"\xff\xff\xff\xff\xff\x01", "inners: an unsigned varint of more than 32 bits"),
        (1, b"\xff\xff\xff\xff\x1f", "inners: an unsigned varint of more than 32 bits"),
        (1, b"\0", "inners: a length of -1"),
        (1, b"\1\1\xff\xff\xff\xff\x0f", "tagged fields: 4294967295 tagged fields, 10000 are allowed"),
        (1, b"\1\1\1\x09\x05abc", "tagged fields: tag 9 of 5 bytes, 3 are left"),
        (2, b"\2\2a\1\1\3\1\2\1\0", "inners.tagged fields: tag 3 does not end where its size says"),
    ],
)
def test_garbage_is_named(version: int, data: bytes, complaint: str) -> None:
    with pytest.raises(MalformedMessage, match=f"Lists v{version}, {complaint}"):
        decode(Lists, version, data)


@pytest.mark.parametrize("version", [0, 1])
@given(data=st.binary(max_size=200))
def test_garbage_is_malformed_or_a_message(version: int, data: bytes) -> None:
    try:
        message, end = decoder(Everything, version + 1)(data, 0)
    except MalformedMessage:
        return
    assert end <= len(data)
    assert isinstance(message, Everything)


def test_lying_lengths_allocate_nothing() -> None:
    """Native readers once allocated 6 GB for a frame of 20 bytes."""
    data = b"\x7f\xff\xff\xff" + bytes(16)
    with pytest.raises(MalformedMessage):
        decode(Lists, 0, data)  # compiled before anything is measured
    tracemalloc.start()
    with pytest.raises(MalformedMessage):
        decode(Lists, 0, data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100_000


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_buffer_decodes_from_a_position(kind: type[Any]) -> None:
    data = b"skip" + encode(FULL, 3) + b"more"
    assert decode(Everything, 3, kind(data), 4) == FULL
    assert decoder(Everything, 3)(data, 4)[1] == len(data) - 4


def test_decode_exactly_takes_no_more() -> None:
    data = encode(Everything(), 2)
    assert decode_exactly(Everything, 2, data) == Everything()
    with pytest.raises(MalformedMessage, match="1 bytes after its end"):
        decode_exactly(Everything, 2, data + b"\0")


def test_versioned_messages_read_newer_ones_as_the_newest_known() -> None:
    class Grown(Message):
        VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
        number: Int32 = 0
        more: Annotated[String, V(1)] = ""

    class Earlier(Message):
        VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
        number: Int32 = 0

    globals().update(Grown=Grown, Earlier=Earlier)
    data = encode_versioned(Grown(number=3, more="m"), 5)
    assert data[:2] == b"\0\5"
    assert decode_versioned(Earlier, data) == Earlier(number=3)
    for garbage in (b"", b"\0", b"\xff\xff\0\0\0\0", b"\0\0\0"):
        with pytest.raises(MalformedMessage):
            decode_versioned(Earlier, garbage)


def test_declarations_outside_the_vocabulary_are_refused() -> None:
    class Odd(Message):
        number: int = 0

    with pytest.raises(TypeError, match="vocabulary"):
        encode(Odd(), 0)
