"""A client's security: which protocol, whom to trust, who it is. By Kafka's keys."""

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
    """What `Client(security=...)` takes. No secret of it shows in `repr`."""

    protocol: SecurityProtocol = "PLAINTEXT"
    tls: TlsSettings = field(default_factory=TlsSettings)
    """Used where the protocol ends with SSL."""
    sasl: SaslSettings | None = None
    """Needed where the protocol begins with SASL."""

    def __post_init__(self) -> None:
        if self.uses_sasl and self.sasl is None:
            raise ConfigError("sasl.mechanism", "", f"is needed for security.protocol={self.protocol}")

    @property
    def uses_tls(self) -> bool:
        """Whether connections are TLS."""
        return self.protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """Whether connections log in by SASL."""
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
        """Read `security.protocol`, `ssl.*` and `sasl.*`; other keys are somebody else's.

        For errors: `written` has keys as the user wrote them, `prefix` is what stands before the others.
        `token`: where OAUTHBEARER has its tokens from, instead of a URL.
        ConfigError names key and remedy, and never a secret.
        """
        # Most clusters have no SASL, and its mechanisms are a third of what a client takes to import.
        from kafka_client.security.sasl import parse_sasl

        keys = SecurityKeys(properties, prefix, written)
        keys.check_names()
        protocol = cast(SecurityProtocol, keys.choice("security.protocol", PROTOCOLS, "PLAINTEXT"))
        return cls(
            protocol=protocol,
            tls=parse_tls(keys) if protocol.endswith("SSL") else TlsSettings(),
            sasl=parse_sasl(keys, token) if protocol.startswith("SASL") else None,
        )
