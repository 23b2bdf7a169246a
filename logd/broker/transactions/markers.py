"""Markers: what tells the readers of a partition that a transaction in it was committed or aborted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.futures import retrieve_failure
from logd.broker.partition.fencing import check_leader_epoch
from logd.broker.topics.topic import GROUP_OFFSETS
from logd.broker.transactions.marker_outcome import OVERTAKEN, Outcome

if TYPE_CHECKING:
    from kafka_client.records.control import SealedMarker
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.coordinators.peers import Cluster
    from logd.broker.groups.groups import Groups
    from logd.broker.topics.catalog import TopicCatalog
    from logd.broker.transactions.marker_queues import MarkerQueues
    from logd.transactions import ProducerIdentity

ANY_TOPIC = bytes(16)
"""The id of a topic whose coordinator says none."""

log = logging.getLogger("logd.broker")


class Markers:
    """The writer of transaction markers: into partitions led here, and with a `cluster` by way of the other
    leaders.

    `marked` is called with the partition and producer id of each marker that is written here.
    """

    def __init__(
        self,
        catalog: TopicCatalog,
        groups: Groups,
        now_ms: Callable[[], int],
        cluster: Cluster | None = None,
        marked: Callable[[TopicPartition, int], None] | None = None,
    ) -> None:
        self._catalog = catalog
        self._groups = groups
        self._now_ms = now_ms
        self._facts: tuple[object, ...] = ()
        self._sealed: SealedMarker
        """The marker written last, and what it says: the next partition mostly gets the same."""
        self._leaders = None if cluster is None else cluster.leaders
        self._marked = marked
        self._queues: MarkerQueues | None = None
        if cluster is not None:
            from logd.broker.transactions.marker_queues import MarkerQueues

            self._queues = MarkerQueues(cluster.peers)

    def statistics(self) -> dict[str, int]:
        """See `MarkerQueues.statistics`."""
        from logd.broker.transactions.marker_queues import MarkerQueues

        return MarkerQueues.NONE if self._queues is None else self._queues.statistics()

    def leaders_changed(self) -> None:
        """See `MarkerQueues.leaders_changed`."""
        if self._queues is not None and self._leaders is not None:
            self._queues.leaders_changed(self._leaders)

    async def stop(self) -> None:
        """Send nothing any more; call it once the coordinators have ended."""
        if self._queues is not None:
            await self._queues.stop()

    def check_led(self, where: TopicPartition, leader_epoch: int = -1, topic_id: bytes = ANY_TOPIC) -> None:
        """Raise KafkaError where this broker does not lead the partition, or not in this leader epoch.

        A marker that was on its way while others led the partition has been written by one of them, and the
        producer may have begun its next transaction. -1 and `ANY_TOPIC`: the coordinator does not say. Raises
        NOT_LEADER_OR_FOLLOWER, UNKNOWN_TOPIC_ID, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH.
        """
        if self._leaders is not None and self._leaders.leader_of(where) != self._leaders.broker_id:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"another broker leads {where}")
        if leader_epoch < 0 and topic_id == ANY_TOPIC:
            return
        partition = self._catalog.find(where.topic).partition(where.partition)
        if topic_id not in (ANY_TOPIC, partition.topic_id):
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_ID,
                f"{where} is of topic {partition.topic_id.hex()}, not of {topic_id.hex()}: "
                "it was deleted and made again",
            )
        check_leader_epoch(partition, leader_epoch)

    def write(self, where: TopicPartition, outcome: Outcome) -> Awaitable[None] | None:
        """End a transaction in one partition; what to await until that is on the disk, by flush.messages.

        Where it was ended before, and the marker has come again, that is waited for and nothing written.
        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, NOT_LEADER_OR_FOLLOWER, and what
        `Partition.append_marker` says.
        """
        partition = self._catalog.find(where.topic).partition(where.partition)
        partition.check_leased()
        now_ms = self._now_ms()
        identity, commit, coordinator_epoch, version, number = outcome
        marker = self._marker(identity, commit, coordinator_epoch, now_ms)
        appended = partition.append_sealed(marker, now_ms, version, number)
        if appended.duplicate:
            log.info("%s: transaction %d of producer %d has its marker", where, number, identity.producer_id)
            return partition.flushed(appended)
        if self._marked is not None:
            self._marked(where, identity.producer_id)
        if where.topic == GROUP_OFFSETS:
            self._groups.transaction_ended(where.partition, *identity, commit, appended)
        return partition.flushed(appended)

    def _marker(
        self, identity: ProducerIdentity, commit: bool, coordinator_epoch: int, now_ms: int
    ) -> SealedMarker:
        facts = identity, commit, coordinator_epoch, now_ms
        if facts != self._facts:
            from kafka_client.records.control import (
                seal_marker,  # a broker is ready before there is a transaction
            )

            self._sealed = seal_marker(
                commit,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp_ms=now_ms,
            )
            self._facts = facts
        return self._sealed

    def write_where_needed(self, where: TopicPartition, outcome: Outcome) -> Awaitable[None] | None:
        """Write a partition's marker as `write` does, unless the partition needs none any more.

        The awaitable of a partition that another broker leads is done when its leader has answered; cancel it
        if the marker is not needed any more. Raises KafkaError if the marker cannot be written now, and
        MarkerDelayed if another broker is the reason.
        """
        if self._leaders is not None and self._queues is not None:
            leadership = self._leaders.leadership_of(where)
            if leadership is None:
                return None
            if leadership.leader != self._leaders.broker_id:
                return self._queues.send(leadership, where, outcome)
        try:
            flushing = self.write(where, outcome)
            return None if flushing is None else _shared(flushing)
        except KafkaError as error:
            if error.code in OVERTAKEN:
                log.warning("%s: transaction marker no longer needed, skipped: %s", where, error)
            elif error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None


def _shared(flushing: Awaitable[None]) -> asyncio.Future[None]:
    """Return what a caller may cancel alone: others wait for the same."""
    inner = asyncio.ensure_future(flushing)
    # Its failure after the cancellation is nobody's: the partition is led elsewhere then.
    inner.add_done_callback(retrieve_failure)
    return asyncio.shield(inner)
