"""Bytes and messages: declarations, compiled encoders and decoders, headers, frames.

Messages live in `logd.wire.messages.<api>`. Produce and Fetch, whose records must not be copied or
looked at, have modules of their own: `logd.wire.produce` and `logd.wire.fetch`.
"""

from logd.wire.api_keys import ApiKey, is_flexible
from logd.wire.compile import decode, decoder, encode, encoder
from logd.wire.framing import (
    decode_exactly,
    decode_versioned,
    encode_request,
    encode_response,
    encode_versioned,
)
from logd.wire.headers import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    encode_request_header,
    encode_response_header,
    skip_tags,
)
from logd.wire.message import NO_UUID, Message
from logd.wire.registry import request_class, response_class

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
