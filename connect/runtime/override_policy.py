"""Policies of which client settings a connector may override (KIP-458, KIP-1188)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from connect.errors import ConfigError

POLICIES = ("All", "None", "Principal", "Allowlist")
PRINCIPAL = frozenset(("security.protocol", "sasl.jaas.config", "sasl.mechanism"))
"""Client settings that connectors may override under the policy Principal."""
_SUFFIX = "ConnectorClientConfigOverridePolicy"
_PREFIXES = ("producer.override.", "consumer.override.", "admin.override.")


def policy_named(name: str) -> str:
    """Return the policy of a name, which may be Kafka's class name. Raises ValueError if there is none."""
    short = name.rpartition(".")[2].removesuffix(_SUFFIX)
    if short not in POLICIES:
        raise ValueError(f"must be one of {', '.join(POLICIES)}")
    return short


def check_policy(name: str) -> None:
    """Raise ValueError if there is no policy of this name."""
    policy_named(name)


def refused_overrides(
    policy: str, allowlist: Collection[str], config: Mapping[str, Any]
) -> list[ConfigError]:
    """Return an error for each client setting in a connector's config that the policy refuses."""
    name = policy_named(policy)
    if name == "All":
        return []
    allowed: Collection[str] = {"None": (), "Principal": PRINCIPAL, "Allowlist": allowlist}[name]
    errors = []
    for key in config:
        prefix = next((each for each in _PREFIXES if key.startswith(each)), None)
        if prefix is not None and (own := key.removeprefix(prefix)) not in allowed:
            text = (
                f"The '{name}' policy does not allow '{own}' to be overridden in the connector configuration."
            )
            errors.append(ConfigError(key, "[hidden]", text))
    return errors
