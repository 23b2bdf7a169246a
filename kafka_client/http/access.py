"""Who may use an HTTP listener: its TLS and its users, by keys with the listener's prefix.

    PREFIXssl.keystore.location=/etc/logd/http.pem      and other keys of `ssl.*`: then it is HTTPS
    PREFIXssl.client.auth=required                      clients show a certificate
    PREFIXbasic.auth.users.file=/etc/logd/http.users    name=password lines: then requests need one of them

Certificates and users may change while the daemon runs: `refresh` reads their files again.
"""

from __future__ import annotations

import difflib
import logging
import os
import ssl
from collections.abc import Mapping
from typing import Final

from kafka_client.errors import ConfigError
from kafka_client.http.passwords import Passwords
from kafka_client.security.context import make_context, make_server_context, show_certificate
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import HIDDEN
from kafka_client.security.tls import TlsSettings, parse_tls

USERS_KEY: Final = "basic.auth.users.file"
_SSL: Final = """
    ssl.keystore.location ssl.keystore.type ssl.keystore.password ssl.keystore.key
    ssl.keystore.certificate.chain ssl.key.password ssl.truststore.location ssl.truststore.type
    ssl.truststore.password ssl.truststore.certificates ssl.client.auth ssl.enabled.protocols ssl.protocol
"""
KEYS: Final = frozenset((*_SSL.split(), USERS_KEY))
"""The keys, without a prefix."""
_CLIENT_AUTH: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}

_log = logging.getLogger(__name__)
_Facts = tuple[tuple[int, int, int] | None, ...]
"""The inode, the size in bytes and the time of the last change in ns of each file; None without a file."""


class HttpAccess:
    """The TLS context and the users of a listener; without settings it has neither."""

    def __init__(self, properties: Mapping[str, str] | None = None, prefix: str = "") -> None:
        """Read the settings and their files. Raises ConfigError for those that cannot be used."""
        values = values_of(properties or {}, prefix)
        self._prefix = prefix
        self._keys = SecurityKeys(values, prefix)
        self._users_file = values.get(USERS_KEY, "")
        self._files = [each for each in (values.get("ssl.keystore.location"), self._users_file) if each]
        self._facts = self._look()
        self._settings = _tls_settings(values, self._keys)
        self.tls: ssl.SSLContext | None = None
        """The context of HTTPS; None for plain HTTP."""
        self.passwords: Passwords | None = None
        """The users; None if requests need none."""
        if self._settings is not None:
            self.tls = make_server_context(self._settings, self._client_auth())
        if self._users_file:
            self.passwords = self._read_users()

    @property
    def scheme(self) -> str:
        """The scheme of the listener's URLs."""
        return "http" if self.tls is None else "https"

    @property
    def is_open(self) -> bool:
        """True if requests are served to everybody who reaches the listener."""
        shows_certificate = self.tls is not None and self.tls.verify_mode is ssl.CERT_REQUIRED
        return self.passwords is None and not shows_certificate

    @property
    def changes(self) -> bool:
        """True if there are files that may change."""
        return bool(self._files)

    def refresh(self) -> None:
        """Use files that have changed. Blocks. An error is logged, and what was read last stays in force."""
        facts = self._look()
        if facts == self._facts:
            return
        self._facts = facts
        try:
            if self._settings is not None and self.tls is not None:
                make_server_context(self._settings, self._client_auth())  # fails before anything is changed
                show_certificate(self.tls, self._settings)
            if self._users_file:
                self.passwords = self._read_users()
        except ConfigError as error:
            _log.error(
                "HTTP listener: the changed files are not used, the last ones stay in force: %s", error
            )
        else:
            _log.info("HTTP listener: changed certificates and users are in force")

    def _read_users(self) -> Passwords:
        return Passwords.read(self._users_file, self._prefix + USERS_KEY)

    def _client_auth(self) -> ssl.VerifyMode:
        return _CLIENT_AUTH[self._keys.choice("ssl.client.auth", tuple(_CLIENT_AUTH), "none")]

    def _look(self) -> _Facts:
        return tuple(_facts(each) for each in self._files)


def values_of(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the values by key without the prefix. Raises ConfigError for an unknown key of TLS or users."""
    values: dict[str, str] = {}
    for key in properties:
        plain = key.removeprefix(prefix)
        if plain == key or not plain.startswith(("ssl.", "basic.auth.")):
            continue
        if plain not in KEYS:
            near = difflib.get_close_matches(plain, KEYS, 1, 0.8)
            raise ConfigError(
                key, HIDDEN, f"is not supported; {prefix}{near[0]}?" if near else "is not supported"
            )
        values[plain] = properties[key]
    return values


def client_tls(properties: Mapping[str, str], prefix: str) -> ssl.SSLContext | None:
    """Return the TLS of requests to the listener, by the same trust and key; None if it is plain HTTP.

    Raises ConfigError for settings that cannot be used.
    """
    values = values_of(properties, prefix)
    settings = _tls_settings(values, SecurityKeys(values, prefix))
    return None if settings is None else make_context(settings)


def _tls_settings(values: Mapping[str, str], keys: SecurityKeys) -> TlsSettings | None:
    """Return the settings of TLS, or None without a key store. Raises ConfigError."""
    if "ssl.keystore.location" in values or "ssl.keystore.key" in values:
        return parse_tls(keys)
    alone = sorted(key for key in values if key.startswith("ssl."))
    if alone:
        raise keys.wrong("ssl.keystore.location", f"is needed, as {alone[0]} is set")
    return None


def _facts(location: str) -> tuple[int, int, int] | None:
    try:
        facts = os.stat(location)
    except OSError:
        return None
    return facts.st_ino, facts.st_size, facts.st_mtime_ns
