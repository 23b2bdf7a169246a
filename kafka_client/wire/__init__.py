"""Bytes and messages: declarations, compiled encoders and decoders, headers, frames.

Messages live in `kafka_client.wire.messages.<api>`. Produce and Fetch, whose records must not be copied or
looked at, have modules of their own: `kafka_client.wire.produce` and `kafka_client.wire.fetch`.
"""

from kafka_client.wire.api_keys import ApiKey, is_flexible
from kafka_client.wire.compile import decode, decoder, encode, encoder
from kafka_client.wire.framing import (
    decode_exactly,
    decode_versioned,
    encode_request,
    encode_response,
    encode_versioned,
)
from kafka_client.wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    skip_tags,
)
from kafka_client.wire.message import NO_UUID, Message
from kafka_client.wire.registry import request_class, response_class

__all__ = [
    "NO_UUID",
    "ApiKey",
    "Message",
    "RequestHeader",
    "decode",
    "decode_exactly",
    "decode_request_header",
    "decode_response_header",
    "decode_versioned",
    "decoder",
    "encode",
    "encode_request",
    "encode_request_header",
    "encode_response",
    "encode_response_header",
    "encode_versioned",
    "encoder",
    "is_flexible",
    "request_class",
    "response_class",
    "skip_tags",
]
