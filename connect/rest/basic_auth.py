"""Basic auth: names and passwords of the REST interface's users, as Kafka's BasicAuthSecurityRestExtension.

`java.security.auth.login.config` is the path of a JAAS file:

    KafkaConnect {
        org.apache.kafka.connect.rest.basic.auth.extension.PropertyFileLoginModule required
        file="/etc/connect/users.properties";
    };

`users.properties` has a line `name=password` for each user. Java lets everybody in if that file is empty;
this worker refuses to start.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Mapping
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request

from connect.errors import ConfigError
from kafka_client.java_properties import parse_properties
from kafka_client.security.jaas import JaasError, parse_jaas

KEY = "java.security.auth.login.config"
_ENTRY = re.compile(r"\bKafkaConnect\s*\{(?P<content>.*?)\}\s*;", re.DOTALL)
_INTERNAL = (
    ("POST", re.compile(r"/?connectors/[^/]+/tasks/?")),
    ("PUT", re.compile(r"/?connectors/[^/]+/fence/?")),
)
"""Requests between workers: they have a signature instead (KIP-507)."""


class BasicAuth:
    """The check of a request's name and password."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self._passwords = {name.encode(): password.encode() for name, password in passwords.items()}

    @classmethod
    def configured(cls, path: str) -> BasicAuth:
        """Read the JAAS file and the file of users that it names. Raises ConfigError if it cannot be used."""
        text = _read(path, KEY)
        entry = _ENTRY.search(text)
        if entry is None:
            raise ConfigError(KEY, path, "has no entry KafkaConnect { ... };")
        try:
            module = parse_jaas(entry["content"].strip())
        except JaasError as e:
            raise ConfigError(KEY, path, f"cannot be read: the entry KafkaConnect {e}") from None
        if module.module.rpartition(".")[2] != "PropertyFileLoginModule":
            raise ConfigError(KEY, path, f"names {module.module}; allowed is only PropertyFileLoginModule")
        users = module.options.get("file")
        if not users:
            raise ConfigError(KEY, path, "has no file= of users and passwords")
        passwords = parse_properties(_read(users, KEY))
        if not passwords:
            raise ConfigError(KEY, users, "has no user: write a line name=password for each")
        return cls(passwords)

    def check(self, request: Request, path: str) -> None:
        """Raise HTTPException 401 unless the request has a user's name and password."""
        if any(request.method == method and form.fullmatch(path) for method, form in _INTERNAL):
            return
        name, password = _credentials(request.headers.get("authorization", ""))
        expected = self._passwords.get(name)
        # An unknown name takes as long as a wrong password.
        matches = hmac.compare_digest(password, b"" if expected is None else expected)
        if expected is None or not matches:
            raise HTTPException(
                401, "User cannot access the resource.", {"www-authenticate": 'Basic realm="connect"'}
            )


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


def _read(path: str, key: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as e:
        raise ConfigError(key, path, f"cannot be read: {getattr(e, 'strerror', None) or e}") from e
