"""Signatures of requests between workers (KIP-507)."""

import pytest

from connect.distributed.signatures import ALGORITHM, SIGNATURE, new_key, sign, verify
from connect.errors import BadRequest, Forbidden, Rebalancing
from connect.herder import SessionKey

KEY = SessionKey(b"\x01" * 32, "HmacSHA256", 0)
BODY = b'[{"a":"b"}]'
ALLOWED = ["HmacSHA256"]


def test_the_signature_is_javas():
    # of javax.crypto.Mac, with these key and body
    signature = sign(KEY, "HmacSHA256", BODY)[SIGNATURE]
    assert signature == "91xxy/meQAX9U3tcyP5pzdk4Nc0R3HBGG+KxeS+09aI="
    verify(KEY, ALLOWED, {SIGNATURE.lower(): signature, ALGORITHM.lower(): "HmacSHA256"}, BODY)


def test_a_request_that_does_not_prove_itself_is_refused():
    signed = sign(KEY, "HmacSHA256", BODY)
    with pytest.raises(Forbidden):
        verify(KEY, ALLOWED, signed, BODY + b" ")
    with pytest.raises(Forbidden):
        verify(new_key("HmacSHA256", None, 0), ALLOWED, signed, BODY)
    with pytest.raises(BadRequest, match="not signed"):
        verify(KEY, ALLOWED, {}, BODY)
    with pytest.raises(BadRequest, match="HmacSHA1"):
        verify(KEY, ALLOWED, sign(KEY, "HmacSHA1", BODY), BODY)
    with pytest.raises(BadRequest, match="base64"):
        verify(KEY, ALLOWED, {**signed, SIGNATURE: "\u00e9"}, BODY)
    with pytest.raises(Rebalancing):
        verify(None, ALLOWED, signed, BODY)


def test_a_new_key_has_as_many_bytes_as_the_digest():
    assert len(new_key("HmacSHA256", None, 0).key) == 32
    assert len(new_key("HmacSHA512", None, 0).key) == 64
    assert len(new_key("HmacSHA256", 16, 0).key) == 16
