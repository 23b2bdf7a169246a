"""The source of OAUTHBEARER's tokens, by Kafka's keys: a URL, a file, or unsecured tokens."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from kafka_client.errors import ConfigError
from kafka_client.security.allowed_urls import refusal, split_url
from kafka_client.security.client_credentials import ClientCredentials
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.secret import Secret
from kafka_client.security.tls import parse_tls
from kafka_client.security.token import TokenSource
from kafka_client.security.token_file import TokenFile
from kafka_client.security.unsecured_token import PREFIX, BadOption, unsecured_tokens

URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"
_HANDLER: Final = "sasl.login.callback.handler.class"
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS: Final = {
    "DefaultJwtRetriever": ("http", "https", "file"),
    "ClientCredentialsJwtRetriever": ("http", "https"),
    "FileJwtRetriever": ("file",),
}
"""Kafka's classes that get tokens, without their package, and the schemes of their URLs."""
_EXTENSION: Final = re.compile(r"extension_([A-Za-z]+)")


def token_source(keys: SecurityKeys, options: Mapping[str, str]) -> TokenSource:
    """Return the source of tokens; `options` are those of the login module. Raises ConfigError."""
    url = keys.text(URL_KEY)
    is_unsecured = any(option.startswith(PREFIX) for option in options)
    if is_unsecured and not url:
        return _unsecured(keys, options)
    if is_unsecured:
        raise keys.wrong("sasl.jaas.config", f"has options {PREFIX}*: leave them out, or leave out {URL_KEY}")
    handler = keys.text(_HANDLER)
    if handler and handler.rpartition(".")[2] != "OAuthBearerLoginCallbackHandler":
        raise keys.wrong(_HANDLER, "OAuthBearerLoginCallbackHandler, or leave it out")
    parts = split_url(url)
    is_file = parts.scheme == "file" and parts.netloc in ("", "localhost") and len(parts.path) > 1
    if not is_file and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise keys.wrong(URL_KEY, "the http or https URL that gives out tokens, or a file URL")
    retriever = keys.text(_RETRIEVER, "DefaultJwtRetriever").rpartition(".")[2]
    if parts.scheme not in _RETRIEVERS.get(retriever, ()):
        raise keys.wrong(_RETRIEVER, f"one of {', '.join(_RETRIEVERS)} that suits {URL_KEY}")
    if remedy := refusal(url, is_own=True):
        raise keys.wrong(URL_KEY, remedy)
    extensions = tuple(
        (match.group(1), value) for name, value in options.items() if (match := _EXTENSION.fullmatch(name))
    )
    if is_file:
        return TokenFile(Path(urllib.parse.unquote(parts.path)), extensions)
    return _client_credentials(keys, options, extensions)


def _client_credentials(
    keys: SecurityKeys, options: Mapping[str, str], extensions: tuple[tuple[str, str], ...]
) -> ClientCredentials:
    client_id = options.get("clientId") or _first(keys, "client.credentials.client.id", "client.id")
    secret = options.get("clientSecret") or _first(keys, "client.credentials.client.secret", "client.secret")
    for value, what, option in ((client_id, "id", "clientId"), (secret, "secret", "clientSecret")):
        if not value:
            key = f"sasl.oauthbearer.client.credentials.client.{what}"
            raise keys.wrong(key, f"is needed, here or as {option} in sasl.jaas.config")
    ssl_options = {name: value for name, value in options.items() if name.startswith("ssl.")}
    return ClientCredentials(
        url=keys.text(URL_KEY),
        client_id=client_id,
        client_secret=Secret(secret),
        scope=options.get("scope") or keys.text("sasl.oauthbearer.scope"),
        extensions=extensions,
        tls=parse_tls(SecurityKeys(ssl_options, "sasl.jaas.config: ")) if ssl_options else None,
        encodes_names=keys.choice("sasl.oauthbearer.header.urlencode", ("true", "false"), "true") == "true",
    )


def _unsecured(keys: SecurityKeys, options: Mapping[str, str]) -> TokenSource:
    try:
        return unsecured_tokens(options)
    except BadOption as error:
        raise keys.wrong("sasl.jaas.config", str(error)) from None


def _first(keys: SecurityKeys, *names: str) -> str:
    return next(
        (keys.text(f"sasl.oauthbearer.{name}") for name in names if keys.has(f"sasl.oauthbearer.{name}")), ""
    )


def check_override(key: str, url: str) -> None:
    """Raise ConfigError if settings that others hand in may not name the URL of `key`."""
    if remedy := refusal(url, is_own=False):
        raise ConfigError(key, url, remedy)
