"""A user's SCRAM credential, which the broker stores instead of a password (RFC 5802, KIP-84).

    salt=BASE64,stored_key=BASE64,server_key=BASE64,iterations=N

is the text that Kafka keeps in ZooKeeper, below `/config/users/NAME`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from dataclasses import dataclass, field
from enum import Enum

MIN_ITERATIONS = 4096
MAX_ITERATIONS = 16384
"""Bounds of new credentials, as in Kafka."""
SALT_BITS = 130
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_FIELDS = ("salt", "stored_key", "server_key", "iterations")


class ScramMechanism(Enum):
    """The SCRAM mechanisms: the name, the number in requests (KIP-554) and the hash."""

    SHA_256 = ("SCRAM-SHA-256", 1, "sha256")
    SHA_512 = ("SCRAM-SHA-512", 2, "sha512")

    def __init__(self, label: str, number: int, hash_name: str) -> None:
        self.label = label
        self.number = number
        self.hash_name = hash_name


def salt_of(number: int) -> bytes:
    """Return the last `SALT_BITS` bits of a number as text of base 36, the form of Kafka's salts."""
    number &= (1 << SALT_BITS) - 1
    digits = ""
    while number or not digits:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
    return digits.encode()


BY_LABEL = {mechanism.label: mechanism for mechanism in ScramMechanism}
BY_NUMBER = {mechanism.number: mechanism for mechanism in ScramMechanism}


class BadCredential(ValueError):
    """A stored text that is no credential. The message quotes no part of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScramCredential:
    """Keys that verify a client's proof, and that prove to the client that the broker knows the user."""

    salt: bytes = field(repr=False)
    stored_key: bytes = field(repr=False)
    """H(ClientKey)."""
    server_key: bytes = field(repr=False)
    iterations: int

    @classmethod
    def of_salted_password(
        cls, mechanism: ScramMechanism, salted_password: bytes, salt: bytes, iterations: int
    ) -> ScramCredential:
        """Return the credential of a salted password, the form in which clients send it (KIP-554)."""
        hash_name = mechanism.hash_name
        client_key = hmac.digest(salted_password, b"Client Key", hash_name)
        return cls(
            salt=salt,
            stored_key=hashlib.new(hash_name, client_key).digest(),
            server_key=hmac.digest(salted_password, b"Server Key", hash_name),
            iterations=iterations,
        )

    @classmethod
    def of_password(
        cls,
        mechanism: ScramMechanism,
        password: str,
        *,
        iterations: int = MIN_ITERATIONS,
        salt: bytes | None = None,
    ) -> ScramCredential:
        """Return a new credential; blocks for the hashing, some milliseconds. Without `salt` it is random."""
        salt = salt_of(secrets.randbits(SALT_BITS)) if salt is None else salt
        salted = hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)
        return cls.of_salted_password(mechanism, salted, salt, iterations)

    @classmethod
    def from_text(cls, text: str) -> ScramCredential:
        """Return the credential in a stored text; raises BadCredential."""
        fields = dict(part.strip().partition("=")[::2] for part in text.split(","))
        if sorted(fields) != sorted(_FIELDS):
            raise BadCredential("a SCRAM credential has " + ", ".join(_FIELDS))
        try:
            salt, stored_key, server_key = (
                base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
            )
            iterations = int(fields["iterations"])
        except (binascii.Error, ValueError):
            raise BadCredential("a SCRAM credential has keys in Base64 and a number of iterations") from None
        return cls(salt=salt, stored_key=stored_key, server_key=server_key, iterations=iterations)

    def to_text(self) -> str:
        """Return the text to store."""
        salt, stored_key, server_key = (
            base64.b64encode(part).decode() for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"salt={salt},stored_key={stored_key},server_key={server_key},iterations={self.iterations}"
