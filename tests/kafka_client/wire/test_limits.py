"""Kafka 4.4's limits of messages: 1,000,000 elements of an array, 10,000 tagged fields of a struct.

The bytes are all there; nothing is made of them.
"""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kafka_client.errors import MalformedMessage
from kafka_client.wire import decode_exactly, decode_request_header, encode
from kafka_client.wire.fetch import decode_fetch_request
from kafka_client.wire.fetched import decode_fetch_response
from kafka_client.wire.message import Boolean, Int32, Message, String
from kafka_client.wire.primitives import ARRAY_LENGTH_MAX, TAGGED_FIELDS_MAX, uvarint
from kafka_client.wire.produce import decode_produce_request
from tests.support.apache_kafka import ApacheKafka
from tests.support.java import needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient


class Lists(Message):
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    flags: list[Boolean] = []
    names: list[String] = []
    numbers: list[Int32] = []


def compact(count: int) -> bytes:
    return uvarint(count + 1)


def plain(count: int) -> bytes:
    return struct.pack(">i", count)


def tags(count: int) -> bytes:
    """Tagged fields nobody knows, of no bytes."""
    return uvarint(count) + b"\x7f\0" * count


MANY = ARRAY_LENGTH_MAX
EMPTY = compact(0) * 3 + tags(0)
NO_TOPICS = struct.pack(">iiiibii", -1, 0, 0, 1, 0, 0, -1)
"""A Fetch request before its topics."""
NO_RESPONSES = struct.pack(">ihi", 0, 0, 0)
"""A Fetch response before its topics."""


def array_in(read: Callable[[bytes], Any], before: bytes, element: bytes, after: bytes, size: Any) -> Any:
    """Return a function that reads a message with an array of `count` elements in its middle."""
    return lambda count: read(before + size(count) + element * count + after)


READ_ARRAY: dict[str, Callable[[int], Any]] = {
    "fixed": array_in(lambda b: decode_exactly(Lists, 0, b), b"", b"\1", plain(0) * 2, plain),
    "strings": array_in(lambda b: decode_exactly(Lists, 0, b), plain(0), b"\0\0", plain(0), plain),
    "compact fixed": array_in(
        lambda b: decode_exactly(Lists, 1, b), b"", b"\1", compact(0) * 2 + b"\0", compact
    ),
    "compact strings": array_in(
        lambda b: decode_exactly(Lists, 1, b), compact(0), b"\1", compact(0) + b"\0", compact
    ),
    "numbers": array_in(lambda b: decode_exactly(Lists, 0, b), plain(0) * 2, bytes(4), b"", plain),
    "Produce topics": array_in(
        lambda b: decode_produce_request(b, 3), struct.pack(">hhi", -1, 1, 0), b"\0\1t" + plain(0), b"", plain
    ),
    "Produce partitions": array_in(
        lambda b: decode_produce_request(b, 9),
        b"\0" + struct.pack(">hi", 1, 0) + compact(1) + b"\2t",
        bytes(4) + b"\1\0",
        b"\0\0",
        compact,
    ),
    "Fetch topics": array_in(
        lambda b: decode_fetch_request(b, 7), NO_TOPICS, b"\0\1t" + plain(0), plain(0), plain
    ),
    "Fetch response topics": array_in(
        lambda b: decode_fetch_response(b, 7), NO_RESPONSES, b"\0\1t" + plain(0), b"", plain
    ),
}


@pytest.mark.parametrize("name", READ_ARRAY)
def test_longest_arrays(name: str) -> None:
    if not name.endswith("topics"):  # a million topics take seconds
        READ_ARRAY[name](MANY)
    with pytest.raises(MalformedMessage, match="1000001 elements, 1000000 are allowed"):
        READ_ARRAY[name](MANY + 1)


def test_nothing_is_made_of_an_array_that_is_too_long() -> None:
    body = plain(0) * 2 + plain(MANY + 1) + bytes(4 * MANY + 4)
    tracemalloc.start()
    try:
        with pytest.raises(MalformedMessage):
            decode_exactly(Lists, 0, body)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


FETCH_12 = struct.pack(">iiiibii", -1, 0, 0, 1, 0, 0, -1) + compact(0) + compact(0) + b"\1"
READ_TAGS: dict[str, Callable[[bytes], Any]] = {
    "message": lambda tagged: decode_exactly(Lists, 1, compact(0) * 3 + tagged),
    "request header": lambda tagged: decode_request_header(struct.pack(">hhih", 3, 12, 1, -1) + tagged),
    "Produce": lambda tagged: decode_produce_request(
        b"\0" + struct.pack(">hi", 1, 0) + compact(0) + tagged, 9
    ),
    "Fetch": lambda tagged: decode_fetch_request(FETCH_12 + tagged, 12),
    "Fetch response": lambda tagged: decode_fetch_response(NO_RESPONSES + compact(0) + tagged, 12),
}


@pytest.mark.parametrize("name", READ_TAGS)
def test_most_tagged_fields(name: str) -> None:
    READ_TAGS[name](tags(TAGGED_FIELDS_MAX))
    with pytest.raises(MalformedMessage, match="10001 tagged fields, 10000 are allowed"):
        READ_TAGS[name](tags(TAGGED_FIELDS_MAX + 1))


def test_a_tagged_field_of_a_message_that_has_some() -> None:
    """Metadata's responses have none; what has some counts them in a loop of its own."""
    from kafka_client.wire.messages.api_versions import ApiVersionsResponse

    body = encode(ApiVersionsResponse(), 3)
    assert body.endswith(b"\0")
    decode_exactly(ApiVersionsResponse, 3, body[:-1] + tags(TAGGED_FIELDS_MAX))
    with pytest.raises(MalformedMessage, match="10001 tagged fields"):
        decode_exactly(ApiVersionsResponse, 3, body[:-1] + tags(TAGGED_FIELDS_MAX + 1))


def closes(port: int, count: int) -> bool:
    """Return True if a broker closes the connection on a Metadata request that names `count` topics."""
    body = struct.pack(">hhih", 3, 1, 7, -1) + plain(count) + b"\0\0" * count
    with RawClient(port) as client:
        client.send(struct.pack(">i", len(body)) + body)
        return client.is_closed_by_peer()


def test_a_broker_closes_the_connection(logd: LogdProcess) -> None:
    assert closes(logd.port, MANY + 1)


@needs_kafka
def test_apache_kafka_closes_it_too(tmp_path: Path) -> None:
    with ApacheKafka(tmp_path) as kafka:
        assert closes(kafka.port, MANY + 1)
