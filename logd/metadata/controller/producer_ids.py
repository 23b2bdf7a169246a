"""Blocks of producer ids, which brokers give out one by one (KIP-730)."""

from __future__ import annotations

from typing import Final, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from logd.metadata.controller.brokers import registered
from logd.metadata.controller.decision import Decision
from logd.metadata.image import PRODUCER_ID_BLOCK, ClusterImage

LAST_PRODUCER_ID: Final = 2**63 - 1


class ProducerIdBlock(NamedTuple):
    """The ids from ``first`` to before ``end``; ``broker`` may give them out."""

    broker: int
    first: int
    end: int


def allocate_producer_ids(image: ClusterImage, broker: int, epoch: int) -> Decision[ProducerIdBlock]:
    """Return the next block of ids, which no broker had before.

    Raises KafkaError(STALE_BROKER_EPOCH), or KafkaError(UNKNOWN_SERVER_ERROR) if all ids are used up.
    """
    registered(image, broker, epoch)
    first = image.next_producer_id
    if first > LAST_PRODUCER_ID - PRODUCER_ID_BLOCK:
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"producer ids are used up: the next block starts at {first}, the last id is {LAST_PRODUCER_ID}",
        )
    block = ProducerIdBlock(broker, first, first + PRODUCER_ID_BLOCK)
    return Decision([{"type": "producer-ids", "next": block.end}], block)
