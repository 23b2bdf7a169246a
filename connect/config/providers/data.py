"""ConfigData: values of a config provider that may expire."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ConfigData:
    """The values of a provider at a path; Kafka's ConfigData (KIP-297)."""

    data: Mapping[str, str]
    """The values by their keys."""
    ttl: int | None = None
    """Milliseconds until the values expire; None if they do not."""

    def __post_init__(self) -> None:
        if self.ttl is not None and self.ttl < 0:
            raise ValueError(f"ttl={self.ttl}: must be 0 or more milliseconds")


@dataclass(frozen=True, slots=True)
class ResolvedConfig:
    """A config with the values of its variables."""

    config: dict[str, Any]
    ttl: int | None
    """Milliseconds until the first of the values expires; None if none does."""
