"""Kafka's BrokerJwtValidator and ours accept the same tokens; so do the parsers of the first message."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt

from logd.security.errors import LoginFailed
from logd.security.oauthbearer.errors import InvalidToken
from logd.security.oauthbearer.exchange import first_message
from logd.security.oauthbearer.source import KeyReader, RefreshTimes
from logd.security.oauthbearer.token_rules import TokenRules
from logd.security.oauthbearer.validators import SignedTokens
from tests.support import java
from tests.support.token_issuer import (
    AUDIENCE,
    EC_ALGORITHMS,
    ISSUER,
    RSA_ALGORITHMS,
    TokenIssuer,
    private_key,
    unpadded,
    unsigned,
)

KEYS = TokenIssuer("first", "second", *EC_ALGORITHMS)
SKEW_S = 30
RULES = TokenRules(audiences=frozenset((AUDIENCE, "other")), issuer=ISSUER, skew_ms=SKEW_S * 1000)


def signed(payload: bytes, key: str = "first", algorithm: str = "RS256", **header: Any) -> str:
    return jwt.PyJWS().encode(payload, private_key(key), algorithm, headers={"kid": key, **header})


def changed(token: str, part: int, text: str) -> str:
    parts = token.split(".")
    parts[part] = text
    return ".".join(parts)


def claims() -> Iterator[dict[str, Any]]:
    """Yield the claims that differ from a valid token's; None for a claim that is left out."""
    now = int(time.time())
    yield from ({name: None} for name in ("sub", "iss", "aud", "iat", "exp", "scope"))
    yield from ({"aud": value} for value in ("other", "logs2", "", ["x", AUDIENCE], ["x"], [], 7, [7]))
    yield from ({"iss": value} for value in (f"{ISSUER}/", "", "other"))
    yield from ({"sub": value} for value in ("", "  ", " bob ", "größe", 7, ["alice"]))
    # A minute to each side, as the two answer at different times.
    yield from ({"exp": now + seconds} for seconds in (-90, 60, -1_000_000))
    yield {"exp": now + 60, "iat": now + 90}
    yield {"iat": now + 3600, "exp": now + 7200}
    yield from ({"nbf": now + seconds} for seconds in (-60, 90, 5000))
    yield from ({"exp": value} for value in ("soon", str(now + 60), True, -5, now + 60.5))
    yield from ({"iat": value} for value in ("soon", True, -5, now - 0.5))
    yield from (
        {"scope": value} for value in ("a", "a b", "", " ", ["a", "b"], ["a", "a"], ["a", " "], [], 7)
    )


def tokens() -> Iterator[str]:
    valid = KEYS.token()
    yield valid
    for algorithm in RSA_ALGORITHMS:
        yield KEYS.token(algorithm=algorithm)
    for algorithm in EC_ALGORITHMS:
        yield KEYS.token(key_id=algorithm, algorithm=algorithm)
    for each in claims():
        yield KEYS.token(**each)
    payload = json.dumps(KEYS.claims()).encode()
    yield signed(payload, "foreign")
    yield signed(payload, "foreign", kid="first")
    yield signed(payload, "second", kid="first")
    yield changed(valid, 0, unpadded(b'{"alg":"RS256","kid":"first","crit":["x"],"x":1}'))
    yield signed(payload, "ES256", "ES256", kid="ES384")
    yield signed(b"[]")
    yield signed(b"not json")
    yield signed(b"")
    yield jwt.PyJWS().encode(payload, "k" * 64, "HS256", headers={"kid": "first"})
    yield unsigned(KEYS.claims())
    yield unsigned(KEYS.claims(), {"alg": "none", "kid": "first"})
    yield changed(valid, 2, "")
    yield changed(valid, 2, unpadded(b"wrong"))
    yield changed(valid, 1, unpadded(json.dumps(KEYS.claims("root")).encode()))
    yield changed(valid, 0, unpadded(b'{"alg":"RS256","kid":"nobody"}'))
    yield changed(valid, 0, unpadded(b"[" * 1000))
    yield from (valid + ".x", valid[:-3], "x", "..", "a.b.c", valid.replace(".", " ."))


def messages() -> Iterator[bytes]:
    auth = b"auth=Bearer ab.c~d==\x01"
    yield from (b"n,,\x01" + auth + b"\x01", b"n,a=bob,\x01" + auth + b"\x01", b"n,,\x01" + auth)
    yield b"n,a=bob,\x01" + auth + b"tenant=x y\x01\x01"
    yield from (b"n,a=,\x01" + auth + b"\x01", b"n,a=b,b,\x01" + auth + b"\x01", b"y,,\x01" + auth + b"\x01")
    yield from (b"n,,\x01\x01", b"n,,\x01user=x\x01\x01", b"n,,\x01user=\x01" + auth + b"\x01", b"", b"\x01")
    for value in (
        b"bearer a",
        b"BEARER   a",
        b"Basic a",
        b"Bearer",
        b"Bearer a b",
        b"Bearer a\xe4",
        b"Bearer a=b",
    ):
        yield b"n,,\x01auth=" + value + b"\x01\x01"
    yield b"n,,\x01us3r=x\x01" + auth + b"\x01"
    yield b"n,,\x01" + auth + b"auth=Bearer other\x01\x01"


def our_answer(validator: SignedTokens, token: str) -> str:
    try:
        accepted = validator.validate(token, time.time() * 1000)
    except InvalidToken:
        return "invalid"
    return f"{accepted.user}\t{accepted.expires_ms}"


def our_parts(message: bytes) -> str:
    try:
        return "\t".join(first_message(message))
    except LoginFailed:
        return "invalid"


@java.needs_jar("kafka-metadata")
def test_the_same_decisions(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(KEYS.key_set())
    reader = KeyReader("keys", file.read_bytes, RefreshTimes())
    reader.load()
    validator = SignedTokens(RULES, reader)
    texts, sent = list(tokens()), list(messages())
    ours = [our_answer(validator, token) for token in texts] + [our_parts(message) for message in sent]
    lines = [
        f"new\t{file.as_uri()}\t{AUDIENCE},other\t{ISSUER}\t{SKEW_S}",
        *(f"token\t{each}" for each in texts),
    ]
    lines += [f"message\t{base64.b64encode(message).decode()}" for message in sent]
    javas = java.run_program("TokenRules", stdin="\n".join(lines)).splitlines()
    assert len(javas) == len(ours)
    named = [*(_header_and_claims(token) for token in texts), *map(str, sent)]
    assert [
        (name, our, kafkas) for name, our, kafkas in zip(named, ours, javas, strict=True) if our != kafkas
    ] == []
    assert 20 < ours.count("invalid") < len(ours) - 20


def _header_and_claims(token: str) -> str:
    """Return a token in a form that can be read, for the report of a failure."""
    try:
        return ".".join(base64.urlsafe_b64decode(part + "==").decode() for part in token.split(".")[:2])
    except ValueError:
        return token
