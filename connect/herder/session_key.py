"""SessionKey: the key with which workers sign their requests to each other (KIP-507)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A secret key, as the leader distributes it in the config topic."""

    key: bytes = field(repr=False)
    algorithm: str
    """The name of the algorithm that the key is for, as Java's: HmacSHA256."""
    created_ms: int
    """Milliseconds since 1970."""

    @classmethod
    def of(cls, value: Mapping[str, Any] | None) -> SessionKey:
        """Return the key of a record's value. Raises ValueError if it cannot be read."""
        if not isinstance(value, Mapping):
            raise ValueError("a session key is no mapping")
        key, algorithm, created = value.get("key"), value.get("algorithm"), value.get("creation-timestamp")
        if not isinstance(key, str) or not isinstance(algorithm, str) or type(created) is not int:
            raise ValueError("key, algorithm or creation-timestamp of a session key has a wrong type")
        return cls(base64.b64decode(key, validate=True), algorithm, created)

    def value(self) -> dict[str, Any]:
        """Return the value of the config topic's record."""
        return {
            "key": base64.b64encode(self.key).decode(),
            "algorithm": self.algorithm,
            "creation-timestamp": self.created_ms,
        }
