"""Signatures of requests between workers, by a key that the leader distributes (KIP-507)."""

from __future__ import annotations

import base64
import hmac
import secrets
from collections.abc import Collection, Mapping

from connect.errors import BadRequest, Forbidden, Rebalancing
from connect.herder.session_key import SessionKey

SIGNATURE, ALGORITHM = "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"
_DIGESTS = {"hmacsha1": "sha1", "hmacsha256": "sha256", "hmacsha384": "sha384", "hmacsha512": "sha512"}
"""Java's names, in lower case."""
_KEY_BYTES = {"sha1": 20, "sha256": 32, "sha384": 48, "sha512": 64}


def sign(key: SessionKey, algorithm: str, body: bytes) -> dict[str, str]:
    """Return the headers that sign a body. Raises BadRequest for an unknown algorithm."""
    signature = hmac.digest(key.key, body, _digest(algorithm))
    return {SIGNATURE: base64.b64encode(signature).decode(), ALGORITHM: algorithm}


def verify(key: SessionKey | None, allowed: Collection[str], headers: Mapping[str, str], body: bytes) -> None:
    """Return if a body is signed with the key.

    Raises BadRequest if the signature is missing or unreadable or its algorithm not allowed, Forbidden if it
    is wrong, and Rebalancing if this worker has not read a key yet.
    """
    named = {name.lower(): value for name, value in headers.items()}
    signature, algorithm = named.get(SIGNATURE.lower()), named.get(ALGORITHM.lower())
    if signature is None or algorithm is None:
        raise BadRequest("Request was not signed: this endpoint is for requests between workers")
    if algorithm.lower() not in {each.lower() for each in allowed}:
        raise BadRequest(f"This worker does not support the '{algorithm}' key signing algorithm")
    if key is None:
        raise Rebalancing("This worker has not read a session key from the config topic yet")
    try:
        decoded = base64.b64decode(signature, validate=True)
    except ValueError as e:
        raise BadRequest(f"{SIGNATURE} is not base64: {e}") from e
    if not hmac.compare_digest(hmac.digest(key.key, body, _digest(algorithm)), decoded):
        raise Forbidden("Request's signature is not that of the session key")


def new_key(algorithm: str, size: int | None, now_ms: int) -> SessionKey:
    """Return a random key of `size` bytes, by default as many as the algorithm's digests have."""
    return SessionKey(secrets.token_bytes(size or _KEY_BYTES[_digest(algorithm)]), algorithm, now_ms)


def _digest(algorithm: str) -> str:
    digest = _DIGESTS.get(algorithm.lower())
    if digest is None:
        raise BadRequest(
            f"{algorithm!r} is no known algorithm of signatures; known are {', '.join(_DIGESTS)}"
        )
    return digest
