"""The reader of a Fetch request: a consumer or a follower, and what the broker may send to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.wire.fetch import RACKS, TOPIC_IDS
from logd.broker.fetching.cold_reads import ColdReadRounds

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_client.errors import KafkaError
    from kafka_client.wire.fetch import ReceivedFetch, Topic
    from logd.api.current_leaders import Find
    from logd.api.fetch.follower_fetch import Refused
    from logd.broker.broker import Broker
    from logd.broker.cluster.replica_selector import RackReplicas
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.broker.cluster.replication.replication_quota import ThrottledFetch
    from logd.broker.topics.topic import Topic as BrokerTopic
    from logd.config.listeners import Endpoint


class FetchReader:
    """A Fetch request with the facts that stay the same for all attempts to answer it."""

    __slots__ = (
        "any_replica",
        "find",
        "is_committed",
        "is_follower",
        "is_plain",
        "is_prompt",
        "leading",
        "refusal_of",
        "refused",
        "replica_selector",
        "request",
        "rounds",
        "throttle",
    )

    def __init__(self, broker: Broker, request: ReceivedFetch, version: int, asked_on: Endpoint) -> None:
        self.request = request
        self.is_committed = request.is_committed
        """True if the reader gets only records of committed transactions."""
        self.is_follower = is_follower = request.replica_id >= 0
        self.is_plain = not (self.is_committed or is_follower)
        """True if reading ends exactly at the high watermark."""
        self.any_replica = version >= RACKS and not is_follower
        """True if a follower may answer the reader (KIP-392)."""
        selector = broker.replica_selector
        self.is_prompt = selector is not None and is_follower
        """True if followers hear at once of a new high watermark, since consumers read from them."""
        self.replica_selector: RackReplicas | None = None
        """Chooses the replica that a consumer reads from instead of this leader."""
        if selector is not None and not is_follower:
            self.replica_selector = selector.to(request.rack_id, asked_on)
        self.leading: LedPartitions | None = broker.leading if is_follower else None
        """Checks a follower's fetch; None for a consumer."""
        self.throttle: ThrottledFetch | None = None
        if self.leading is not None:
            self.throttle = self.leading.throttle(request.replica_id)
        catalog = broker.catalog
        self.find: Find = catalog.topics.get if version < TOPIC_IDS else catalog.topics_by_id.get
        """Returns a topic by its name or id, as this version of the request has it."""
        self.refusal_of: Callable[[Topic, BrokerTopic | None], KafkaError | None] | None = None
        """Returns why a topic may not be read; None for a reader who may read everything."""
        self.rounds = ColdReadRounds()
        self.refused: Refused = {}
        """Error codes of partitions that are not read for this follower."""
