"""SASL SCRAM-SHA-256 and -512 (RFC 5802, RFC 7677), without SASLprep, as in Kafka.

    client-first   n,,n=USER,r=NONCE
    server-first   r=NONCE+MORE,s=SALT,i=ITERATIONS
    client-final   c=biws,r=NONCE+MORE,p=PROOF
    server-final   v=SIGNATURE   or   e=ERROR

The broker's signature proves that it knows the password too; otherwise the login fails.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field

from kafka_client.errors import AuthenticationFailed
from kafka_client.security.mechanism import Exchange
from kafka_client.security.secret import Secret

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
MIN_ITERATIONS = 4096
"""Fewer iterations would make the password easy to guess for an eavesdropper; Kafka's minimum."""
MAX_ITERATIONS = 10_000_000
"""A bound against a broker that keeps the client computing; no real setting is higher."""

_GS2_HEADER = "n,,"


def new_nonce() -> str:
    """Return a nonce of 192 bits, printable and without commas."""
    return secrets.token_urlsafe(24)


@dataclass(frozen=True, slots=True)
class Scram:
    """The mechanism; `name` is one of `HASHES`, `nonce` makes the client's part of it."""

    name: str
    user: str
    password: Secret
    token_auth: bool = False
    """True if the user is a delegation token's id, and the password its HMAC (KIP-48)."""
    nonce: Callable[[], str] = field(default=new_nonce, repr=False)

    async def begin(self) -> Exchange:
        """Start an exchange of two messages from each side."""
        return ScramExchange(self)


class ScramExchange:
    """A login by SCRAM."""

    def __init__(self, mechanism: Scram) -> None:
        self._mechanism = mechanism
        self._hash = HASHES[mechanism.name]
        self._nonce = mechanism.nonce()
        user = mechanism.user.replace("=", "=3D").replace(",", "=2C")
        self._first = f"n={user},r={self._nonce}" + (",tokenauth=true" if mechanism.token_auth else "")
        self._signature = b""

    def first(self) -> bytes:
        """Return the client-first-message."""
        return (_GS2_HEADER + self._first).encode()

    async def respond(self, challenge: bytes) -> bytes | None:
        """Return the client-final-message; None once the server's signature is verified."""
        if self._signature:
            self._check_signature(challenge)
            return None
        return await self._final(challenge)

    async def _final(self, challenge: bytes) -> bytes:
        try:
            server_first = challenge.decode()
            fields = _fields(server_first)
            nonce, salt, iterations = (
                fields["r"],
                base64.b64decode(fields["s"], validate=True),
                int(fields["i"]),
            )
        except (UnicodeDecodeError, KeyError, ValueError, binascii.Error):
            raise self._distrusted("its SCRAM challenge cannot be read") from None
        if "m" in fields:
            raise self._distrusted("it asks for a SCRAM extension that is not known here")
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise self._distrusted("its nonce does not begin with ours")
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise self._distrusted(
                f"it asks for {iterations} iterations, not {MIN_ITERATIONS} to {MAX_ITERATIONS}"
            )
        password = self._mechanism.password.reveal().encode()
        salted = await asyncio.to_thread(hashlib.pbkdf2_hmac, self._hash, password, salt, iterations)
        without_proof = f"c={_base64(_GS2_HEADER.encode())},r={nonce}"
        message = f"{self._first},{server_first},{without_proof}".encode()
        client_key = self._hmac(salted, b"Client Key")
        proof = _xor(client_key, self._hmac(hashlib.new(self._hash, client_key).digest(), message))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), message)
        return f"{without_proof},p={_base64(proof)}".encode()

    def _check_signature(self, challenge: bytes) -> None:
        fields = _fields(challenge.decode("utf-8", "replace"))
        if "e" in fields:
            raise AuthenticationFailed(fields["e"], mechanism=self._mechanism.name, user=self._mechanism.user)
        try:
            signature = base64.b64decode(fields.get("v", ""), validate=True)
        except (binascii.Error, ValueError):
            signature = b""
        if not hmac.compare_digest(signature, self._signature):
            raise self._distrusted("its signature is not that of one who knows the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)

    def _distrusted(self, why: str) -> AuthenticationFailed:
        return AuthenticationFailed(
            f"the broker is not to be trusted: {why}",
            mechanism=self._mechanism.name,
            user=self._mechanism.user,
        )


def _fields(message: str) -> dict[str, str]:
    """Return the fields of `a=1,b=2` by name."""
    return {name: value for name, _, value in (part.partition("=") for part in message.split(","))}


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _xor(a: bytes, b: bytes) -> bytes:
    return bytes(x ^ y for x, y in zip(a, b, strict=True))
