"""The identity of a transactional producer: its producer id and epoch."""

from __future__ import annotations

from typing import NamedTuple


class ProducerIdentity(NamedTuple):
    """The producer id and epoch in a producer's batches."""

    producer_id: int
    epoch: int
