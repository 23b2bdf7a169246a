"""The brokers and replicas that are alive, by an image and by the changes that are about to be made to it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kafka_client.topic_partition import TopicPartition
from logd.metadata.image import BrokerImage, ClusterImage


class Liveness:
    """The liveness of brokers and replicas; ``brokers`` and ``offline`` by broker override the image.

    A broker of None is no longer alive.
    """

    def __init__(
        self,
        image: ClusterImage,
        *,
        brokers: Mapping[int, BrokerImage | None] | None = None,
        offline: Mapping[int, Collection[TopicPartition]] | None = None,
    ) -> None:
        self._image = image
        self._brokers = {} if brokers is None else brokers
        self._offline = {} if offline is None else offline

    def broker(self, broker: int) -> BrokerImage | None:
        """Return the broker if it is alive, else None."""
        if broker in self._brokers:
            return self._brokers[broker]
        return self._image.brokers.get(broker)

    def is_online(self, tp: TopicPartition, broker: int) -> bool:
        """Return True if the broker is alive and the log directory of this replica serves."""
        if self.broker(broker) is None:
            return False
        return tp not in self._offline_of(broker)

    def _offline_of(self, broker: int) -> Collection[TopicPartition]:
        if broker in self._offline:
            return self._offline[broker]
        before, now = self._image.brokers.get(broker), self.broker(broker)
        if before is None or now is None or before.epoch != now.epoch:
            return ()  # the broker has restarted, and will report its offline replicas again
        return self._image.offline_of(broker)

    def is_shutting_down(self, broker: int) -> bool:
        """Return True if the broker is alive and is shutting down."""
        current = self.broker(broker)
        return current is not None and current.is_shutting_down

    def can_lead(self, tp: TopicPartition, broker: int) -> bool:
        """Return True if the replica is online on a broker that is not shutting down."""
        return self.is_online(tp, broker) and not self.is_shutting_down(broker)
