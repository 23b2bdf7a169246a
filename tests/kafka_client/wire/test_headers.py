"""Request and response headers and frames, against kio."""

from __future__ import annotations

import io
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as KioRequestHeader1
from kio.schema.request_header.v2.header import RequestHeader as KioRequestHeader2
from kio.schema.response_header.v0.header import ResponseHeader as KioResponseHeader0
from kio.schema.response_header.v1.header import ResponseHeader as KioResponseHeader1
from kio.serial import entity_writer

import kafka_client.wire
from kafka_client.errors import MalformedMessage
from kafka_client.wire import (
    ApiKey,
    RequestHeader,
    decode,
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response,
    is_flexible,
    request_class,
    response_class,
    skip_tags,
)
from kafka_client.wire.headers import encode_request_header, encode_response_header
from kafka_client.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafka_client.wire.messages.metadata import MetadataRequest, MetadataResponse


def kio_bytes(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@given(correlation_id=st.integers(-(1 << 31), (1 << 31) - 1), client_id=st.none() | st.text(max_size=30))
def test_request_headers_are_kafkas(correlation_id: int, client_id: str | None) -> None:
    for version, kio in ((8, KioRequestHeader1), (9, KioRequestHeader2)):
        flexible = version >= 9
        data = encode_request_header(ApiKey.METADATA, version, correlation_id, client_id, flexible=flexible)
        theirs = kio(
            request_api_key=3,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=client_id,
        )
        assert data == kio_bytes(theirs)
        header = decode_request_header(b"123" + data + b"body", 3)
        assert header == RequestHeader(3, version, correlation_id, client_id, 3 + len(data))


def test_response_headers_are_kafkas() -> None:
    assert encode_response_header(3, 5, flexible=False) == kio_bytes(KioResponseHeader0(correlation_id=5))
    assert encode_response_header(3, 5, flexible=True) == kio_bytes(KioResponseHeader1(correlation_id=5))
    assert decode_response_header(3, 9, b"\0\0\0\5\0body") == (5, 5)
    assert decode_response_header(3, 8, b"\0\0\0\5body") == (5, 4)


def test_api_versions_response_header_is_always_version_0() -> None:
    frame = encode_response(ApiVersionsResponse(), 3, 77)
    assert decode_response_header(ApiKey.API_VERSIONS, 3, frame, 4) == (77, 8)
    assert decode(ApiVersionsResponse, 3, frame, 8) == ApiVersionsResponse()


@pytest.mark.parametrize("version", [2, 3])
def test_request_frames(version: int) -> None:
    request = ApiVersionsRequest(client_software_name="a") if version == 3 else ApiVersionsRequest()
    frame = encode_request(request, version, 9, "me")
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    header = decode_request_header(memoryview(frame), 4)
    assert header[:4] == (ApiKey.API_VERSIONS, version, 9, "me")
    assert decode(ApiVersionsRequest, version, frame, header.body) == request


@pytest.mark.parametrize("version", [0, 12])
def test_response_frames(version: int) -> None:
    frame = encode_response(MetadataResponse(), version, -1)
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    correlation_id, body = decode_response_header(ApiKey.METADATA, version, frame, 4)
    assert correlation_id == -1
    assert decode(MetadataResponse, version, frame, body) == MetadataResponse()


def test_unknown_tags_in_a_header_are_skipped() -> None:
    data = b"\0\3\0\x09\0\0\0\1\0\1x" + b"\2\0\1a\5\0" + b"rest"
    assert decode_request_header(data).body == len(data) - 4
    assert skip_tags(data, 11) == len(data) - 4


@given(st.binary(max_size=40))
def test_garbage_headers_are_malformed(data: bytes) -> None:
    for read in (
        lambda: decode_request_header(data),
        lambda: decode_response_header(3, 9, data),
        lambda: skip_tags(data, 0),
    ):
        try:
            read()
        except MalformedMessage:
            pass


def test_lying_client_id_is_malformed() -> None:
    with pytest.raises(MalformedMessage, match="32767 bytes, 1 are left"):
        decode_request_header(b"\0\3\0\0\0\0\0\1\x7f\xffx")


def test_every_declared_message_is_found_and_agrees_with_the_key_table() -> None:
    count = 0
    for key in ApiKey:
        try:
            request, response = request_class(key), response_class(key)
        except KeyError:
            continue
        count += 1
        first, last = request.VERSIONS
        assert request.API_KEY == response.API_KEY == key
        assert request.VERSIONS == response.VERSIONS
        for version in range(first, last + 1):
            assert (
                is_flexible(key, version) == (version >= request.FLEXIBLE) == (version >= response.FLEXIBLE)
            )
    assert count > 20
    assert request_class(3) is MetadataRequest
    with pytest.raises(KeyError):
        request_class(9999)


def test_exports() -> None:
    assert [name for name in kafka_client.wire.__all__ if not hasattr(kafka_client.wire, name)] == []
