"""Hypothesis strategies for damaged requests: real ones with bytes changed, cut, added and lied about."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import strategies as st

from kafka_client.records import build_batch
from kafka_client.wire import Message, encode_request, request_class
from kafka_client.wire.message import Kind
from kafka_client.wire.produce import encode_produce_request
from kafka_client.wire.schema import Array, Field, Shape, fields_of
from tests.support.sample_requests import MORE, sample_frame, served

PRODUCE = 0
SERVED = sorted(served())

INTEGERS = {Kind.INT8: 8, Kind.INT16: 16, Kind.INT32: 32, Kind.INT64: 64}
LIES = [
    b"\x7f\xff\xff\xff",
    b"\xff\xff\xff\xff",
    b"\x80\x00\x00\x00",
    b"\x00\x00\xff\xff",
    b"\x7f\xff",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x7f",
    b"\x80\x80\x80\x80\x80\x80\x80",
    b"\xff\x7f",
    b"\x00",
]
"""Lengths, old and compact, that cannot be."""


def _values(field: Field, shape: Shape, version: int) -> st.SearchStrategy[Any]:
    if field.name in MORE:
        return st.just(MORE[field.name])
    if isinstance(shape, Array):
        return st.lists(_values(Field.bare(shape.element), shape.element, version), max_size=3)
    if not isinstance(shape, Kind):
        return messages(shape, version)
    if shape in INTEGERS:
        bits = INTEGERS[shape]
        return st.sampled_from([0, 1, -1, 2, (1 << bits - 1) - 1, -(1 << bits - 1)])
    return {
        Kind.UINT16: st.integers(0, 0xFFFF),
        Kind.UINT32: st.integers(0, 0xFFFF_FFFF),
        Kind.BOOLEAN: st.booleans(),
        Kind.FLOAT64: st.floats(allow_nan=False),
        Kind.STRING: st.sampled_from(["", "sample", "__consumer_offsets", "a/b", "é" * 70, "x" * 300]),
        Kind.UUID: st.sampled_from([bytes(16), b"sixteen bytes ok"]),
        Kind.BYTES: st.binary(max_size=20),
        Kind.RECORDS: st.binary(max_size=20),
    }[shape]


def messages(cls: type[Message], version: int) -> st.SearchStrategy[Message]:
    """Draw a request with odd but possible values."""
    fields = {}
    for field in fields_of(cls, version):
        values = _values(field, field.shape, version)
        fields[field.name] = st.none() | values if field.nullable else values
    return st.builds(cls, **fields)


@st.composite
def produce_frames(draw: st.DrawFn, version: int) -> bytes:
    """Produce requests whose batches may be damaged inside."""
    batch = build_batch(
        [(1, b"k", b"v" * draw(st.integers(0, 50)), (("h", None),))] * draw(st.integers(1, 3))
    )
    batch = draw(mutated(batch)) if draw(st.booleans()) else batch
    topic: str | bytes = (
        b"sixteen bytes ok" if version >= 13 else draw(st.sampled_from(["sample", "fuzz", ""]))
    )
    partitions = [(draw(st.integers(-1, 2)), batch)]
    chunks = encode_produce_request([(topic, partitions)], version, 7, "f", acks=draw(st.integers(-2, 2)))
    return b"".join(bytes(chunk) for chunk in chunks)


@st.composite
def mutated(draw: st.DrawFn, data: bytes, first: int = 0) -> bytes:
    """Bytes changed in a few places from ``first`` on, cut or extended."""
    damaged = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        position = draw(st.integers(first, max(first, len(damaged) - 1)))
        match draw(st.sampled_from(["byte", "lie", "insert", "remove", "cut", "extend", "repeat"])):
            case "byte":
                damaged[position : position + 1] = bytes([draw(st.integers(0, 255))])
            case "lie":
                lie = draw(st.sampled_from(LIES))
                damaged[position : position + len(lie)] = lie
            case "insert":
                damaged[position:position] = draw(st.sampled_from(LIES))
            case "remove":
                del damaged[position : position + draw(st.integers(1, 8))]
            case "cut":
                del damaged[position:]
            case "extend":
                damaged += draw(st.binary(min_size=1, max_size=20))
            case "repeat":
                damaged[position:position] = damaged[position : position + 16] * 3
    return bytes(damaged)


@st.composite
def frames(draw: st.DrawFn, key: int, version: int) -> bytes:
    """Draw a damaged request behind a correct length, so that the decoder has to refuse header or body."""
    if key == PRODUCE:
        frame = draw(produce_frames(version))
    elif draw(st.booleans()):
        frame = sample_frame(key, version)
    else:
        frame = encode_request(draw(messages(request_class(key), version)), version, 7, "f")
    # The API's key and version stay: what is not served is tested elsewhere.
    body = draw(mutated(frame[4:], first=4))
    return struct.pack(">i", len(body)) + body


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Draw what a broken client may send on one connection: damaged frames, correct ones, and noise."""
    pieces = []
    for _ in range(draw(st.integers(1, 4))):
        key, version = draw(st.sampled_from(SERVED))
        match draw(st.sampled_from(["frame", "frame", "sound", "raw", "noise"])):
            case "frame":
                pieces.append(draw(frames(key, version)))
            case "sound":
                pieces.append(sample_frame(key, version))
            case "raw":
                pieces.append(draw(mutated(sample_frame(key, version))))
            case "noise":
                pieces.append(draw(st.binary(max_size=40)))
    return b"".join(pieces)
