"""`Outcome`: what a transaction marker says."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import ErrorCode

if TYPE_CHECKING:
    from logd.transactions import ProducerIdentity

OVERTAKEN = frozenset((ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED))
"""A later instance of the producer, or of the coordinator, has ended this transaction there."""


class Outcome(NamedTuple):
    """The content of a marker: how a transaction ended, and which one.

    Up to transaction version 1 a producer's transactions end under one epoch: `transaction_number` tells them
    apart. It grows from one to the next within a coordinator epoch; -1 where the coordinator says none.
    """

    identity: ProducerIdentity
    commit: bool
    coordinator_epoch: int
    transaction_version: int
    transaction_number: int = -1
