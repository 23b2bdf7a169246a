"""A producer's identity."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    """A producer's id and epoch; -1, -1 without idempotence."""

    producer_id: int = -1
    epoch: int = -1

    @property
    def idempotent(self) -> bool:
        """True if brokers recognise duplicates of this producer."""
        return self.producer_id >= 0
