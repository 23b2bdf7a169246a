"""A follower's Fetch as an acknowledgement: the follower has every record before the offsets it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.fetch import TOPIC_IDS

if TYPE_CHECKING:
    from kafka_client.wire.fetch import ReceivedFetch, Topic
    from logd.broker.broker import Broker
    from logd.broker.cluster.replication.led_partitions import LedPartitions
    from logd.broker.fetching.fetch_session import FetchSession

Refused: TypeAlias = "dict[tuple[Topic, int], int]"
"""Error codes, by the topic as the request calls it and the partition."""


_UNKNOWN_NAME = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def note_follower_offsets(
    broker: Broker, leading: LedPartitions, request: ReceivedFetch, version: int
) -> Refused:
    """Tell the leaders of what the request says, each partition once; those whose leader has none of it.

    In a session (KIP-227) it names what has changed: who is silent about a partition is where it was.
    """
    leading.fetches(request.replica_id)
    catalog = broker.catalog
    find = catalog.topics.get if version < TOPIC_IDS else catalog.topics_by_id.get
    refused: Refused = {}
    for name, partitions in request.topics:
        topic = find(name)  # type: ignore[arg-type]
        if topic is None:
            # Said where it is read. Should the topic be known by then, the follower has to hear so all the
            # same: what it said was not counted, and in its session it says it once.
            code = ErrorCode.UNKNOWN_TOPIC_ID if isinstance(name, bytes) else _UNKNOWN_NAME
            refused.update({(name, requested.partition): code for requested in partitions})
            continue
        for requested in partitions:
            try:
                partition = topic.partition(requested.partition)
                leading.fetched(partition, requested, request.replica_id, request.replica_epoch)
            except KafkaError as error:
                refused[name, requested.partition] = error.code
    return refused


def refuse(request: ReceivedFetch, session: FetchSession | None) -> Refused:
    """Refuse all partitions: a standalone broker has no followers, and consumers must not pass for one."""
    requested = [(name, each.partition) for name, partitions in request.topics for each in partitions]
    if session is not None:
        requested += session.partitions
    return dict.fromkeys(requested, ErrorCode.NOT_LEADER_OR_FOLLOWER)
