"""Payments, in euros by a service of exchange rates, and scored many at a time by a model.

    millstream streams run streams_payments:topology --bootstrap-server 127.0.0.1:9092 --application-id pay

The topics ``payments`` and ``scored-payments`` must exist. The service and the model are stand-ins: put a
session or a pool of database connections in the place of `Rates`, a real model in that of `scores`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from streams import StreamsBuilder, Topology

EUROS = {"EUR": 1.0, "USD": 0.9, "JPY": 0.006}


@dataclass(frozen=True)
class Payment:
    amount: float
    currency: str
    euros: float = 0.0
    score: float = 0.0


class Rates:
    """Answers after a while, as a service would."""

    async def of(self, currency: str) -> float:
        await asyncio.sleep(0.005)
        return EUROS[currency]


@asynccontextmanager
async def connected() -> AsyncGenerator[Rates, None]:
    """Yield the connection for all calls of an instance; code after the yield would close it."""
    yield Rates()


async def in_euros(payment: Payment, rates: Rates) -> Payment:
    return replace(payment, euros=payment.amount * await rates.of(payment.currency))


def scores(payments: list[Payment]) -> list[Payment]:
    """Score many payments in one call; a model's ``predict`` would be called here."""
    largest = max(payment.euros for payment in payments)
    return [replace(payment, score=payment.euros / max(largest, 1000.0)) for payment in payments]


def topology(payments: str = "payments", scored: str = "scored-payments") -> Topology:
    builder = StreamsBuilder(key_serde=str, value_serde=Payment)
    (
        builder.stream(payments)
        .map_values_async(
            in_euros, context=connected, max_in_flight=50, timeout=timedelta(seconds=2), retries=3
        )
        .map_values_batch(scores, max_records=500)
        .to(scored, value_serde=Payment)
    )
    return builder.build()
