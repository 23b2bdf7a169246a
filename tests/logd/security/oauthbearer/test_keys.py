"""Key sets, their keys, and how they are read again."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator

import pytest

from kafka_client.security.web_request import Unreachable
from logd.security.oauthbearer import source
from logd.security.oauthbearer.errors import BadKeySet
from logd.security.oauthbearer.keys import CANDIDATES_MAX, KEYS_MAX, KeySet
from logd.security.oauthbearer.source import KeyReader, RefreshTimes
from logd.security.oauthbearer.token_rules import TokenRules
from logd.security.oauthbearer.validators import SignedTokens
from tests.support.token_issuer import TokenIssuer, private_key, public_jwk

OLD, NEW = TokenIssuer("old"), TokenIssuer("new")


def key_set(*keys: object) -> bytes:
    return json.dumps({"keys": keys}).encode()


def rsa(**members: str) -> dict[str, object]:
    return public_jwk(private_key("old"), **members)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "is not JSON"),
        (b"[" * 100_000, "is not JSON"),
        (b"{}", "no JSON Web Key Set"),
        (b"[]", "no JSON Web Key Set"),
        (key_set(), "no key that verifies"),
        (key_set(*[{}] * (KEYS_MAX + 1)), f"{KEYS_MAX} are allowed"),
        (b" " * 2_000_000, "more than"),
        (key_set(7, {"kty": "oct", "k": "AAAA", "alg": "HS256"}), "no key that verifies"),
        (key_set(rsa(use="enc")), "no key that verifies"),
        (key_set(rsa(alg="HS256")), "no key that verifies"),
        (key_set(rsa(alg="ES256")), "no key that verifies"),
        (key_set(rsa() | {"key_ops": ["encrypt"]}), "no key that verifies"),
        (key_set(rsa() | {"n": "AQAB"}), "no key that verifies"),
        (key_set(rsa() | {"n": 7}), "no key that verifies"),
        (key_set({"kty": "RSA"}), "no key that verifies"),
        (key_set({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}), "no key that verifies"),
        (key_set({"kty": "EC", "crv": ["P-256"]}), "no key that verifies"),
        (key_set(public_jwk(private_key("short", 1024))), "2048 bits"),
    ],
)
def test_bad_key_sets(text: bytes, reason: str) -> None:
    with pytest.raises(BadKeySet, match=reason):
        KeySet.parse(text)


def test_keys_by_id_and_algorithm() -> None:
    keys = KeySet.parse(key_set(rsa(kid="a", alg="PS256"), public_jwk(private_key("ES256"), kid="b"), 7))
    assert len(keys) == 2
    assert [key.key_id for key in keys.find("a", "PS256")] == ["a"]
    assert [key.key_id for key in keys.find(None, "ES256")] == ["b"]
    for key_id, algorithm in (
        ("a", "RS256"),
        ("b", "RS256"),
        ("c", "PS256"),
        (None, "ES384"),
        (None, "none"),
    ):
        assert not keys.find(key_id, algorithm)
    many = KeySet.parse(key_set(*[rsa(kid="a")] * 9))
    assert len(many.find("a", "RS256")) == CANDIDATES_MAX


class Issued:
    """Readings that come one after the other; an exception is raised."""

    def __init__(self, *results: bytes | Exception) -> None:
        self._results: Iterator[bytes | Exception] = iter(results)
        self.count = 0

    def __call__(self) -> bytes:
        self.count += 1
        result = next(self._results)
        if isinstance(result, Exception):
            raise result
        return result


def reader_of(issued: Issued, **times: int) -> KeyReader:
    return KeyReader("https://issuer.example/jwks", issued, RefreshTimes(**{"retry_backoff_ms": 1, **times}))


async def prepare(validator: SignedTokens, token: str) -> None:
    waited = validator.preparation(token)
    if waited is not None:
        await waited


async def test_an_unknown_key_has_the_keys_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    issued = Issued(OLD.key_set(), NEW.key_set())
    validator = SignedTokens(TokenRules(), reader_of(issued))
    now_ms = 1e6
    old, new = (each.token(iat=1000, exp=2000) for each in (OLD, NEW))
    await prepare(validator, old)
    assert validator.validate(old, now_ms).user == "alice"
    await prepare(validator, old)
    assert validator.preparation(new) is None and issued.count == 1, "not again so soon"
    monkeypatch.setattr(source, "EXPEDITED_SECONDS_MIN", 0.0)
    await asyncio.gather(*(prepare(validator, new) for _ in range(5)))
    assert issued.count == 2 and validator.validate(new, now_ms).user == "alice"
    for malformed in ("x", "..", "a.b.c", NEW.token() + "."):
        assert validator.preparation(malformed) is None


async def test_failures_leave_the_keys_in_force(caplog: pytest.LogCaptureFixture) -> None:
    issued = Issued(Unreachable("away"), OLD.key_set(), Unreachable("away"), BadKeySet(), OSError("gone"))
    reader = reader_of(issued, retry_backoff_max_ms=3)
    for count in (2, 5):
        running = asyncio.create_task(reader.run())
        await asyncio.sleep(0)
        waited = reader.refresh_for_key()
        assert waited is not None
        await waited
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert issued.count == count
    assert len(reader.keys) == 1
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR] == [
        "https://issuer.example/jwks: no keys, the last keys stay in force: gone"
    ]
