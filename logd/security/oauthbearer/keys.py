"""The public keys of a token issuer: a JSON Web Key Set (RFC 7517), and the keys in it that verify tokens.

    key                     algorithms
    RSA, 2048 bits or more  RS256 RS384 RS512 PS256 PS384 PS512
    EC P-256                ES256
    EC P-384                ES384
    EC P-521                ES512

Symmetric keys are never used: a broker that can verify a token with one could make tokens, too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kafka_client.errors import ConfigError
from logd.security.oauthbearer.errors import BadKeySet

_RSA: Final = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"))
_CURVES: Final[Mapping[str, str]] = {"P-256": "ES256", "P-384": "ES384", "P-521": "ES512"}
ALGORITHMS: Final = _RSA | frozenset(_CURVES.values())
"""The algorithms of signatures that are accepted."""
KEY_SET_BYTES_MAX: Final = 1_048_576
KEYS_MAX: Final = 200
"""Largest number of keys in a key set. Issuers publish less than ten."""
RSA_BITS_MIN: Final = 2048
RSA_BITS_MAX: Final = 16_384
CANDIDATES_MAX: Final = 4
"""Most keys that are tried for one token, as each one costs the time of a signature."""
_PUBLIC: Final = ("kty", "n", "e", "crv", "x", "y")
"""The members of public keys: private ones are not read, even if an issuer publishes them by mistake."""


@dataclass(frozen=True, slots=True)
class VerificationKey:
    """A public key, and the algorithms whose signatures it verifies."""

    key_id: str | None
    algorithms: frozenset[str]
    key: Any = field(repr=False)
    """The key as PyJWT's algorithms take it."""

    def verifies(self, algorithm: str, signed: bytes, signature: bytes) -> bool:
        """Return True if the signature of `signed` is right. `algorithm` is one of `algorithms`."""
        return bool(_algorithm(algorithm).verify(signed, self.key, signature))


class KeySet:
    """The usable keys of one key set."""

    def __init__(self, keys: Sequence[VerificationKey] = ()) -> None:
        self._keys = tuple(keys)

    def __len__(self) -> int:
        return len(self._keys)

    @classmethod
    def parse(cls, text: bytes) -> KeySet:
        """Return the keys of a JSON text. Keys for other purposes are left out. Raises BadKeySet."""
        if len(text) > KEY_SET_BYTES_MAX:
            raise BadKeySet(f"has more than {KEY_SET_BYTES_MAX} bytes")
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            raise BadKeySet("is not JSON") from None
        entries = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(entries, list):
            raise BadKeySet('has no list "keys", so it is no JSON Web Key Set')
        if len(entries) > KEYS_MAX:
            raise BadKeySet(f"has {len(entries)} keys; {KEYS_MAX} are allowed")
        keys = [key for entry in entries if (key := _usable(entry)) is not None]
        if not keys:
            raise BadKeySet(
                f"has no key that verifies signatures: RSA of {RSA_BITS_MIN} bits or more, or EC on one of "
                + ", ".join(_CURVES)
            )
        return cls(keys)

    def find(self, key_id: str | None, algorithm: str) -> Sequence[VerificationKey]:
        """Return the keys for a token with this key id, at most `CANDIDATES_MAX`. None matches every key."""
        matching = (
            key
            for key in self._keys
            if algorithm in key.algorithms and (key_id is None or key.key_id == key_id)
        )
        return [key for key, _ in zip(matching, range(CANDIDATES_MAX), strict=False)]


def check_installed() -> None:
    """Raise ConfigError if the package that verifies signatures is not installed."""
    try:
        _algorithm("RS256")
    except (ImportError, KeyError):
        raise ConfigError(
            "sasl.enabled.mechanisms", "OAUTHBEARER", "needs PyJWT: pip install 'millstream[security]'"
        ) from None


def _algorithm(name: str) -> Any:
    from jwt.algorithms import get_default_algorithms  # imported on use: most brokers verify no tokens

    return get_default_algorithms()[name]


def _usable(entry: object) -> VerificationKey | None:
    """Return a key of the set, or None if it does not verify signatures or cannot be read."""
    if not isinstance(entry, dict):
        return None
    operations = entry.get("key_ops")
    if entry.get("use", "sig") != "sig" or (isinstance(operations, list) and "verify" not in operations):
        return None
    algorithms = _RSA if entry.get("kty") == "RSA" else frozenset()
    if entry.get("kty") == "EC" and isinstance(curve := entry.get("crv"), str) and curve in _CURVES:
        algorithms = frozenset((_CURVES[curve],))
    if "alg" in entry:
        algorithms = frozenset(each for each in algorithms if each == entry["alg"])
    if not algorithms:
        return None
    key = _public_key(entry, next(iter(algorithms)))
    key_id = entry.get("kid")
    if key is None or not isinstance(key_id, str | None):
        return None
    return VerificationKey(key_id, algorithms, key)


def _public_key(entry: Mapping[str, Any], algorithm: str) -> Any:
    public = {name: entry[name] for name in _PUBLIC if name in entry}
    try:
        key = _algorithm(algorithm).from_jwk(public)
    except Exception:  # the library lets several of its own and of cryptography's through
        return None
    if public["kty"] == "RSA" and not RSA_BITS_MIN <= key.key_size <= RSA_BITS_MAX:
        return None
    return key
