"""A client's security settings by Kafka's keys: protocol, trust and credentials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self, cast

from kafka_client.errors import ConfigError
from kafka_client.security.keys import SecurityKeys
from kafka_client.security.tls import TlsSettings, parse_tls

if TYPE_CHECKING:
    from kafka_client.security.sasl import SaslSettings
    from kafka_client.security.token import TokenSource

SecurityProtocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True, kw_only=True)
class SecuritySettings:
    """The security settings of `Client(security=...)`. `repr` shows no secret."""

    protocol: SecurityProtocol = "PLAINTEXT"
    tls: TlsSettings = field(default_factory=TlsSettings)
    """The TLS settings, used if the protocol ends with SSL."""
    sasl: SaslSettings | None = None
    """The SASL settings, needed if the protocol begins with SASL."""

    def __post_init__(self) -> None:
        if self.uses_sasl and self.sasl is None:
            raise ConfigError("sasl.mechanism", "", f"is needed for security.protocol={self.protocol}")

    @property
    def uses_tls(self) -> bool:
        """True if connections use TLS."""
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """True if connections log in by SASL."""
        return self.protocol.startswith("SASL")

    @classmethod
    def from_properties(
        cls,
        properties: Mapping[str, object],
        *,
        prefix: str = "",
        written: Mapping[str, str] | None = None,
        token: TokenSource | None = None,
    ) -> Self:
        """Read `security.protocol`, `ssl.*` and `sasl.*`; other keys are ignored.

        Errors name keys as in `written`, or with `prefix`. `token`: the source of OAUTHBEARER's tokens,
        instead of a URL. Raises ConfigError with key and remedy, never with a secret.
        """
        # Imported on use: its mechanisms are a third of a client's import time, and most clusters have no
        # SASL.
        from kafka_client.security.sasl import parse_sasl

        keys = SecurityKeys(properties, prefix, written)
        keys.check_names()
        protocol = cast(SecurityProtocol, keys.choice("security.protocol", PROTOCOLS, "PLAINTEXT"))
        return cls(
            protocol=protocol,
            tls=parse_tls(keys) if protocol.endswith("SSL") else TlsSettings(),
            sasl=parse_sasl(keys, token) if protocol.startswith("SASL") else None,
        )
