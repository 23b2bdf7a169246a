"""SASL settings by Kafka's `sasl.*` keys, and the mechanism that they choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kafka_client.security.client_credentials import ClientCredentials
from kafka_client.security.jaas import JaasEntry, JaasError, parse_jaas
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.mechanism import Mechanism
from kafka_client.security.oauthbearer import OAuthBearer
from kafka_client.security.plain import Plain
from kafka_client.security.scram import HASHES, Scram
from kafka_client.security.secret import Secret
from kafka_client.security.token import TokenCache, TokenSource
from kafka_client.security.token_settings import token_source

MECHANISMS = ("PLAIN", *HASHES, "OAUTHBEARER")
_MODULES = {
    "PLAIN": "PlainLoginModule",
    **dict.fromkeys(HASHES, "ScramLoginModule"),
    "OAUTHBEARER": "OAuthBearerLoginModule",
}
_PASSWORD_OPTIONS = frozenset(("username", "password", "tokenauth", "serviceName"))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The mechanism, user and credentials of a SASL login."""

    mechanism: str
    """PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER."""
    username: str = ""
    password: Secret = field(default_factory=lambda: Secret(""))
    token_auth: bool = False
    """SCRAM: the user is a delegation token's id, the password its HMAC."""
    token: TokenSource | None = field(default=None, repr=False)
    """OAUTHBEARER: the source of tokens."""

    def new_mechanism(self) -> Mechanism:
        """Return the mechanism for one client; its connections share a token."""
        if self.mechanism == "PLAIN":
            return Plain(self.username, self.password)
        if self.mechanism in HASHES:
            return Scram(self.mechanism, self.username, self.password, self.token_auth)
        assert self.token is not None
        user = self.token.client_id if isinstance(self.token, ClientCredentials) else ""
        return OAuthBearer(TokenCache(self.token), user=user)


def parse_sasl(keys: SecurityKeys, token: TokenSource | None = None) -> SaslSettings:
    """Return the settings of the `sasl.*` keys. `token` replaces a URL's tokens.

    Raises ConfigError for the first key that cannot be used.
    """
    name = (
        "sasl.mechanisms"
        if keys.has("sasl.mechanisms") and not keys.has("sasl.mechanism")
        else "sasl.mechanism"
    )
    mechanism = keys.choice(name, MECHANISMS, "none")
    options = _jaas_options(keys, mechanism)
    if mechanism == "OAUTHBEARER":
        return SaslSettings(mechanism=mechanism, token=token or token_source(keys, options))
    username = options.get("username") or keys.text("sasl.username")
    password = options.get("password") or keys.text("sasl.password")
    if not username or not password:
        missing = "username" if not username else "password"
        raise keys.wrong(
            f"sasl.{missing}", f"is needed for {mechanism}, here or as {missing} in sasl.jaas.config"
        )
    unknown = sorted(options.keys() - _PASSWORD_OPTIONS)
    if unknown:
        raise keys.wrong(
            "sasl.jaas.config", f"has options that {mechanism} does not take: {', '.join(unknown)}"
        )
    return SaslSettings(
        mechanism=mechanism,
        username=username,
        password=Secret(password),
        token_auth=options.get("tokenauth", "").lower() == "true",
    )


def _jaas_options(keys: SecurityKeys, mechanism: str) -> Mapping[str, str]:
    text = keys.secret("sasl.jaas.config")
    if text is None:
        return {}
    try:
        entry: JaasEntry = parse_jaas(text.reveal())
    except JaasError as error:
        raise keys.wrong("sasl.jaas.config", str(error)) from None
    if entry.module != _MODULES[mechanism]:
        raise keys.wrong(
            "sasl.jaas.config", f"must name {_MODULES[mechanism]}, as sasl.mechanism is {mechanism}"
        )
    return entry.options
