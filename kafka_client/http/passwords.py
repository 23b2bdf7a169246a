"""The users of an HTTP server: a file of names and passwords, and the check of basic auth (RFC 7617).

alice=her password      a line of Java properties for each user
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Mapping
from pathlib import Path

from kafka_client.errors import ConfigError
from kafka_client.java_properties import parse_properties


class Passwords:
    """The passwords of users, by name."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {name.encode(): password.encode() for name, password in passwords.items()}

    @classmethod
    def read(cls, path: str, key: str) -> Passwords:
        """Read a file of users, which the setting `key` names. Raises ConfigError if it cannot be used."""
        return cls(read_passwords(path, key))

    def accept(self, header: str) -> bool:
        """Return True if the value of an Authorization header has the name and password of a user."""
        name, password = _credentials(header)
        expected = self._passwords.get(name)
        # An unknown name takes as long as a wrong password.
        matches = hmac.compare_digest(password, b"" if expected is None else expected)
        return expected is not None and matches


def read_passwords(path: str, key: str) -> Mapping[str, str]:
    """Return the passwords in a file by user, at least one. Raises ConfigError if it cannot be used."""
    passwords = parse_properties(read_text(path, key))
    if not passwords or not all(passwords.values()):
        raise ConfigError(key, path, "has no user: write a line name=password for each")
    return passwords


def read_text(path: str, key: str) -> str:
    """Return the text of a file that the setting `key` names. Raises ConfigError if it cannot be read."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(key, path, f"cannot be read: {getattr(e, 'strerror', None) or e}") from e


def authorization(user: str, password: str) -> str:
    """Return the value of the Authorization header for a user."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


def _credentials(header: str) -> tuple[bytes, bytes]:
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return b"", b""
    try:
        decoded = base64.b64decode(encoded.strip(), validate=True)
    except (binascii.Error, ValueError):
        return b"", b""
    name, _, password = decoded.partition(b":")
    return name, password
