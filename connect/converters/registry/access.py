"""Settings of the way to a schema registry: TLS, the user, tokens, timeouts and retries."""

from __future__ import annotations

import base64
import ssl
from typing import Literal
from urllib.parse import unquote, urlsplit

from connect.config import Config, Password, setting
from connect.config.checks import at_least
from kafka_client.errors import ConfigError
from kafka_client.security.context import make_context
from kafka_client.security.jaas import JaasError, parse_jaas
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.tls import parse_tls

_TLS = "schema.registry."
"""The prefix of the `ssl.*` keys."""


def _tls(doc: str, default: str = "") -> str:
    value: str = setting(doc, default=default, importance="LOW")
    return value


def _tls_secret(doc: str) -> Password:
    value: Password = setting(doc, default=Password(""), importance="LOW")
    return value


class AccessConfig(Config):
    """Settings of requests to a schema registry."""

    schema_registry_url: list[str] = setting(
        "The registry's URLs; the next is used if one does not answer.", importance="HIGH"
    )
    basic_auth_credentials_source: Literal["URL", "USER_INFO", "SASL_INHERIT"] = setting(
        "Where user and password are: in the URL, in `basic.auth.user.info`, or in `sasl.jaas.config`.",
        default="URL",
    )
    basic_auth_user_info: Password = setting("`user:password`.", default=Password(""))
    sasl_jaas_config: Password = setting(
        "The login module whose user and password `SASL_INHERIT` takes.", default=Password("")
    )
    bearer_auth_credentials_source: Literal["", "STATIC_TOKEN"] = setting(
        "`STATIC_TOKEN`: requests have the token of `bearer.auth.token`.", default=""
    )
    bearer_auth_token: Password = setting("The bearer token.", default=Password(""))
    bearer_auth_logical_cluster: str = setting(
        "The logical cluster of the registry in Confluent's cloud.", default="", importance="LOW"
    )
    bearer_auth_identity_pool_id: str = setting(
        "The identity pool in Confluent's cloud.", default="", importance="LOW"
    )
    schema_registry_ssl_truststore_location: str = _tls("The file of certificates to trust.")
    schema_registry_ssl_truststore_type: str = _tls("PEM, PKCS12 or JKS.", "JKS")
    schema_registry_ssl_truststore_password: Password = _tls_secret("The truststore's password.")
    schema_registry_ssl_truststore_certificates: Password = _tls_secret("Certificates to trust, in PEM.")
    schema_registry_ssl_keystore_location: str = _tls("The file of the client's key and certificates.")
    schema_registry_ssl_keystore_type: str = _tls("PEM, PKCS12 or JKS.", "JKS")
    schema_registry_ssl_keystore_password: Password = _tls_secret("The keystore's password.")
    schema_registry_ssl_keystore_key: Password = _tls_secret("The client's key, in PEM.")
    schema_registry_ssl_keystore_certificate_chain: Password = _tls_secret("Its certificates, in PEM.")
    schema_registry_ssl_key_password: Password = _tls_secret("The password of the client's key.")
    schema_registry_ssl_endpoint_identification_algorithm: str = _tls(
        "`https`, or empty: the certificate need not name the host.", "https"
    )
    schema_registry_ssl_enabled_protocols: str = _tls("TLS versions.", "TLSv1.2,TLSv1.3")
    schema_registry_ssl_protocol: str = _tls("The highest TLS version, or TLS.", "TLS")
    http_read_timeout_ms: int = setting(
        "How long a registry may take to connect and for each part of its answer.",
        default=10_000,
        importance="LOW",
        check=at_least(1),
    )
    max_retries: int = setting(
        "How often all URLs are tried again, if none answers.", default=2, importance="LOW", check=at_least(0)
    )
    retries_wait_ms: int = setting(
        "The pause before the first retry; later ones take twice as long each.",
        default=200,
        importance="LOW",
        check=at_least(0),
    )
    retries_max_wait_ms: int = setting(
        "The longest pause before a retry.", default=20_000, importance="LOW", check=at_least(0)
    )

    def check(self) -> None:
        """Raise ConfigError for URLs that are none, and for credentials that cannot be used."""
        if not self.schema_registry_url:
            raise ConfigError("schema.registry.url", "", "must have a URL")
        for url in self.schema_registry_url:
            parts = urlsplit(url)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                shown = url.rpartition("@")[2]
                raise ConfigError("schema.registry.url", shown, "must begin with http:// or https://")
        parse_tls(self._tls_keys())
        self.authorization()

    def _tls_keys(self) -> SecurityKeys:
        """Return the `ssl.*` keys that are set, by Kafka's names."""
        keys = {key: value for key, value in self.raw.items() if key.startswith(f"{_TLS}ssl.")}
        return SecurityKeys({key.removeprefix(_TLS): value for key, value in keys.items()}, _TLS)

    def tls_context(self) -> ssl.SSLContext | None:
        """Return the TLS context, None if no URL is https. Reads the stores; raises ConfigError."""
        if not any(url.startswith("https:") for url in self.schema_registry_url):
            return None
        try:
            return make_context(parse_tls(self._tls_keys()))
        except ConfigError as e:
            key = e.key if e.key.startswith(_TLS) else _TLS + e.key
            raise ConfigError(key, e.value, e.allowed) from None

    def authorization(self) -> dict[str, str]:
        """Return the headers that say who asks. Raises ConfigError for credentials that are incomplete."""
        if self.bearer_auth_credentials_source:
            token = self.bearer_auth_token.secret
            if not token or not token.isascii() or not token.isprintable():
                raise ConfigError("bearer.auth.token", "[hidden]", "is needed: a token of printable ASCII")
            cluster = {"target-sr-cluster": self.bearer_auth_logical_cluster}
            pool = {"Confluent-Identity-Pool-Id": self.bearer_auth_identity_pool_id}
            named = {key: value for key, value in (cluster | pool).items() if value}
            return {"Authorization": f"Bearer {token}", **named}
        if credentials := self._credentials():
            return {"Authorization": "Basic " + base64.b64encode(credentials.encode()).decode()}
        return {}

    def _credentials(self) -> str:
        """Return `user:password`, or nothing."""
        if self.basic_auth_credentials_source == "SASL_INHERIT":
            return self._sasl_credentials()
        if self.basic_auth_credentials_source == "USER_INFO":
            if ":" not in self.basic_auth_user_info.secret:
                raise ConfigError("basic.auth.user.info", "[hidden]", "must be user:password")
            return self.basic_auth_user_info.secret
        parts = (urlsplit(url).netloc.rpartition("@")[0] for url in self.schema_registry_url)
        return unquote(next(filter(None, parts), ""))

    def _sasl_credentials(self) -> str:
        try:
            options = parse_jaas(self.sasl_jaas_config.secret).options
        except JaasError as e:
            raise ConfigError("sasl.jaas.config", "[hidden]", str(e)) from None
        if "username" not in options or "password" not in options:
            raise ConfigError("sasl.jaas.config", "[hidden]", "must have username and password")
        return f"{options['username']}:{options['password']}"
