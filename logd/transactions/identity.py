"""Who writes a transaction's batches: a producer id and its epoch."""

from __future__ import annotations

from typing import NamedTuple


class ProducerIdentity(NamedTuple):
    """What a producer stamps its batches with."""

    producer_id: int
    epoch: int
