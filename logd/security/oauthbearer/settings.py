"""The settings of OAUTHBEARER on a listener, by Kafka's keys.

    listener.name.NAME.oauthbearer.KEY    KEY for one listener, which counts more than
    listener.name.NAME.KEY                the same without the mechanism, and this more than
    KEY                                   KEY for all listeners

Kafka takes unsigned tokens unless `sasl.server.callback.handler.class` names another handler. Here unsigned
tokens are taken only if that key names Kafka's handler for them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from kafka_client.errors import ConfigError
from kafka_client.security.allowed_urls import split_url
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import HIDDEN
from kafka_client.security.tls import parse_tls
from logd.config.security_keys import LISTENER_PREFIX, OAUTH_JAAS_KEY, OAUTH_PREFIX
from logd.security.broker_account import parsed_jaas
from logd.security.oauthbearer.errors import BadKeySet
from logd.security.oauthbearer.keys import check_installed
from logd.security.oauthbearer.source import (
    FILE_LOOK_MS,
    KeyReader,
    RefreshTimes,
    file_of,
    read_file,
    read_url,
)
from logd.security.oauthbearer.token_rules import TokenRules
from logd.security.oauthbearer.validators import SignedTokens, TokenValidator, UnsecuredTokens

_PACKAGE: Final = "org.apache.kafka.common.security.oauthbearer."
UNSECURED_HANDLER: Final = f"{_PACKAGE}internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
SIGNED_HANDLER: Final = f"{_PACKAGE}OAuthBearerValidatorCallbackHandler"
_SIGNED_HANDLERS: Final = (SIGNED_HANDLER, f"{_PACKAGE}secured.OAuthBearerValidatorCallbackHandler")
HANDLER_KEY: Final = "sasl.server.callback.handler.class"
_JWKS: Final = "sasl.oauthbearer.jwks.endpoint."
_URL: Final = f"{_JWKS}url"
_UNSECURED: Final = "unsecuredValidator"
_UNSECURED_OPTIONS: Final = frozenset(
    f"{_UNSECURED}{name}"
    for name in ("PrincipalClaimName", "ScopeClaimName", "RequiredScope", "AllowableClockSkewMs")
)

log = logging.getLogger("logd.security")


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """How a listener checks tokens."""

    validator: TokenValidator
    reader: KeyReader | None
    """The reader of the issuer's keys; None for unsecured tokens."""


def oauth_settings(values: Mapping[str, str], written: Mapping[str, str], listener: str) -> OAuthSettings:
    """Return a listener's settings. Reads the file of keys, if they are in a file. Raises ConfigError.

    `values` are the listener's settings without its prefix, `written` their whole keys.
    """
    settings = _Keys(values, written, listener)
    handler = settings.text(HANDLER_KEY)
    if handler == UNSECURED_HANDLER:
        return OAuthSettings(validator=_unsecured(settings), reader=None)
    if handler and handler not in _SIGNED_HANDLERS:
        raise settings.wrong(HANDLER_KEY, f"{SIGNED_HANDLER}, or leave it out")
    if not settings.text(_URL):
        raise settings.wrong(
            _URL,
            "is needed for OAUTHBEARER: the file: or https: URL of the keys that sign tokens. For "
            f"development without signatures set {settings.prefix}{HANDLER_KEY}={UNSECURED_HANDLER}",
        )
    rules = _rules(settings)
    check_installed()
    reader = _reader(settings)
    return OAuthSettings(validator=SignedTokens(rules, reader), reader=reader)


class _Keys:
    """The settings of one listener for OAUTHBEARER."""

    def __init__(self, values: Mapping[str, str], written: Mapping[str, str], listener: str) -> None:
        self.listener = listener
        self._values = values
        self._written = written
        self.prefix = f"{LISTENER_PREFIX}{listener.lower()}.{OAUTH_PREFIX}"
        self.jaas_key = f"{LISTENER_PREFIX}{listener.lower()}.{OAUTH_JAAS_KEY}"
        jaas = values.get(OAUTH_JAAS_KEY)
        self.options: Mapping[str, str] = (
            {} if jaas is None else parsed_jaas(jaas, self.jaas_key, "OAuthBearerLoginModule").options
        )

    def text(self, key: str, default: str = "") -> str:
        """Return a value, with the one for the mechanism first."""
        return self._values.get(OAUTH_PREFIX + key) or self._values.get(key) or default

    def number(self, key: str, default: int) -> int:
        """Return a whole number that is not negative. Raises ConfigError."""
        value = self.text(key)
        if not value:
            return default
        if not value.isdecimal() or len(value) > 15:
            raise self.wrong(key, "a whole number, 0 or more")
        return int(value)

    def switch(self, key: str) -> bool:
        """Return a value that is true or false; false if it is not set. Raises ConfigError."""
        value = self.text(key, "false").lower()
        if value not in ("true", "false"):
            raise self.wrong(key, "true or false")
        return value == "true"

    def wrong(self, key: str, allowed: str) -> ConfigError:
        """Return the error for a key's value."""
        name = next((self._written[each] for each in (OAUTH_PREFIX + key, key) if each in self._written), key)
        return ConfigError(name, self.text(key), allowed)


def _rules(settings: _Keys) -> TokenRules:
    audience_key, issuer_key = "sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"
    listed = (each.strip() for each in settings.text(audience_key).split(","))
    audiences, issuer = frozenset(each for each in listed if each), settings.text(issuer_key)
    for key, is_set, claim in ((audience_key, audiences, "aud"), (issuer_key, issuer, "iss")):
        switch = key.replace("expected", "allow.unverified")
        if not is_set and not settings.switch(switch):
            raise settings.wrong(
                key,
                f'is needed for OAUTHBEARER, to check the claim "{claim}" of tokens. {switch}=true accepts '
                "every token of the issuer's keys, which is not secure",
            )
        if not is_set:
            log.warning(
                '%s: OAUTHBEARER accepts tokens with any claim "%s" (%s)', settings.listener, claim, switch
            )
    return TokenRules(
        audiences=audiences,
        issuer=issuer or None,
        skew_ms=settings.number("sasl.oauthbearer.clock.skew.seconds", 30) * 1000,
        scope_claim=settings.text("sasl.oauthbearer.scope.claim.name", "scope"),
        user_claim=settings.text("sasl.oauthbearer.sub.claim.name", "sub"),
    )


def _reader(settings: _Keys) -> KeyReader:
    """Return the reader of the issuer's keys, with the keys of a file. Raises ConfigError."""
    url = settings.text(_URL)
    parts = split_url(url)
    usual = RefreshTimes()
    times = RefreshTimes(
        refresh_ms=settings.number(f"{_JWKS}refresh.ms", usual.refresh_ms) or 1,
        retry_backoff_ms=settings.number(f"{_JWKS}retry.backoff.ms", usual.retry_backoff_ms) or 1,
        retry_backoff_max_ms=settings.number(f"{_JWKS}retry.backoff.max.ms", usual.retry_backoff_max_ms),
    )
    if parts.scheme == "file" and parts.path and parts.netloc in ("", "localhost"):
        path = file_of(url)
        reader = KeyReader(url, partial(read_file, path), RefreshTimes(refresh_ms=FILE_LOOK_MS))
        try:
            reader.load()
        except OSError as error:
            raise settings.wrong(_URL, f"cannot be read: {error.strerror}") from None
        except BadKeySet as error:
            raise settings.wrong(_URL, str(error)) from None
        return reader
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise settings.wrong(_URL, "a file:, https: or http: URL, without a user's name")
    options = {name: value for name, value in settings.options.items() if name.startswith("ssl.")}
    tls = parse_tls(SecurityKeys(options, f"{settings.jaas_key}: ")) if options else None
    return KeyReader(url, partial(read_url, url, tls), times)


def _unsecured(settings: _Keys) -> UnsecuredTokens:
    options = {name: value for name, value in settings.options.items() if name.startswith(_UNSECURED)}
    unknown = sorted(options.keys() - _UNSECURED_OPTIONS)
    skew = options.get(f"{_UNSECURED}AllowableClockSkewMs") or "0"
    if unknown or not skew.isdecimal() or len(skew) > 15:
        wrong = unknown or [f"{_UNSECURED}AllowableClockSkewMs"]
        raise ConfigError(
            settings.jaas_key,
            HIDDEN,
            f"{wrong[0]}: takes the options {', '.join(sorted(_UNSECURED_OPTIONS))}, the last in ms",
        )
    return UnsecuredTokens(
        user_claim=options.get(f"{_UNSECURED}PrincipalClaimName") or "sub",
        scope_claim=options.get(f"{_UNSECURED}ScopeClaimName") or "scope",
        required_scopes=tuple(options.get(f"{_UNSECURED}RequiredScope", "").split()),
        skew_ms=int(skew),
    )
