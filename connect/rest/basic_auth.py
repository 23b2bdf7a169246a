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

import re
from collections.abc import Mapping

from starlette.exceptions import HTTPException
from starlette.requests import Request

from connect.errors import ConfigError
from kafka_client.http.passwords import Passwords, read_passwords, read_text
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
        self._passwords = Passwords(passwords)

    @classmethod
    def configured(cls, path: str) -> BasicAuth:
        """Read the JAAS file and the file of users that it names. Raises ConfigError if it cannot be used."""
        text = read_text(path, KEY)
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
        return cls(read_passwords(users, KEY))

    def check(self, request: Request, path: str) -> None:
        """Raise HTTPException 401 unless the request has a user's name and password."""
        if any(request.method == method and form.fullmatch(path) for method, form in _INTERNAL):
            return
        if not self._passwords.accept(request.headers.get("authorization", "")):
            raise HTTPException(
                401, "User cannot access the resource.", {"www-authenticate": 'Basic realm="connect"'}
            )
