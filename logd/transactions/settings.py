"""The settings the transaction coordinator's core acts on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionSettings:
    """Named as Kafka's keys, with `_` for `.`."""

    transaction_max_timeout_ms: int = 900_000
    """A producer that asks for a longer timeout is refused."""
    transactional_id_expiration_ms: int = 604_800_000
    """A transactional id without a transaction for so long is forgotten."""
