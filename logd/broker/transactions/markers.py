"""Markers: what tells the readers of a partition that a transaction in it was committed or aborted."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from logd.broker.catalog import TopicCatalog
from logd.broker.groups.groups import Groups
from logd.broker.topic import GROUP_OFFSETS
from logd.errors import ErrorCode, KafkaError
from logd.records.control import SealedMarker, seal_marker
from logd.topic_partition import TopicPartition
from logd.transactions import ProducerIdentity

log = logging.getLogger("logd.broker")

_OVERTAKEN = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
"""A later instance of the producer, or of the coordinator, has ended this transaction there."""


class Markers:
    """Writes them into the partitions of this node."""

    def __init__(self, catalog: TopicCatalog, groups: Groups, now_ms: Callable[[], int]) -> None:
        self._catalog = catalog
        self._groups = groups
        self._now_ms = now_ms
        self._facts: tuple[object, ...] = ()
        self._sealed: SealedMarker
        """The marker written last, and what it says: the next partition mostly gets the same."""

    def write(
        self,
        where: TopicPartition,
        identity: ProducerIdentity,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> Awaitable[None] | None:
        """End a transaction in one partition; what to await until that is on the disk, by flush.messages.

        KafkaError: UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, and what `Partition.append_marker` says.
        """
        partition = self._catalog.find(where.topic).partition(where.partition)
        now_ms = self._now_ms()
        marker = self._marker(identity, commit, coordinator_epoch, now_ms)
        appended = partition.append_sealed(marker, now_ms, transaction_version)
        if where.topic == GROUP_OFFSETS:
            self._groups.transaction_ended(where.partition, *identity, commit, appended)
        return partition.flushed(appended)

    def _marker(
        self, identity: ProducerIdentity, commit: bool, coordinator_epoch: int, now_ms: int
    ) -> SealedMarker:
        facts = identity, commit, coordinator_epoch, now_ms
        if facts != self._facts:
            self._sealed = seal_marker(
                commit,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp_ms=now_ms,
            )
            self._facts = facts
        return self._sealed

    def write_where_needed(
        self,
        where: TopicPartition,
        identity: ProducerIdentity,
        *,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
    ) -> Awaitable[None] | None:
        """`write` for a transaction that has to end: a partition that needs no marker any more is done.

        KafkaError where it still needs one and cannot have it now.
        """
        try:
            return self.write(
                where,
                identity,
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                transaction_version=transaction_version,
            )
        except KafkaError as error:
            if error.code in _OVERTAKEN:
                log.warning("%s-%d has no use for a marker: %s", *where, error)
            elif error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise
            return None
