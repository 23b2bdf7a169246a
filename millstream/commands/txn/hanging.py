"""Transactions that hang: open in a partition, but unknown to any coordinator, so that nobody will end them.

The last stable offset stays before them, and readers of committed records wait for ever. A bug or a lost
`__transaction_state` leaves such behind (KIP-664, whose search this is); only an operator can abort them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka_client import ActiveProducer, Admin, Client, DescribedTransaction, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from millstream.terminal.status import NotFound


class OpenTransaction(NamedTuple):
    """A transaction that a partition holds open, and who wrote it."""

    tp: TopicPartition
    producer: ActiveProducer


async def find_hanging(
    client: Client,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    idle_ms: int,
    now_ms: int,
) -> list[OpenTransaction]:
    """Transactions whose producer has not written for longer than `idle_ms` and whose coordinator does not
    have them under way; in one partition, in one topic, or in all partitions of a broker.
    """
    admin = Admin(client)
    searched = await _partitions(client, topic, partition, broker_id)
    producers = await admin.describe_producers(searched, node=broker_id)
    idle = [
        OpenTransaction(tp, producer)
        for tp in sorted(producers)
        for producer in producers[tp]
        if producer.transaction_start_offset >= 0 and now_ms - producer.last_timestamp_ms > idle_ms
    ]
    under_way = await _under_way(admin, {found.producer.producer_id for found in idle})
    return [found for found in idle if not _is_known(found, under_way.get(found.producer.producer_id))]


async def _partitions(
    client: Client, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    cluster = await client.metadata(None if topic is None else [topic], refresh=True)
    if broker_id is not None and broker_id not in cluster.brokers:
        raise NotFound(f"there is no broker {broker_id}")
    found = [
        TopicPartition(name, described.partition)
        for name, metadata in cluster.topics.items()
        for described in metadata.partitions.values()
        if (partition is None or described.partition == partition)
        and (broker_id is None or broker_id in described.replicas)
    ]
    if partition is not None and not found:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition}")
    return found


async def _under_way(admin: Admin, producer_ids: Iterable[int]) -> dict[int, DescribedTransaction]:
    """What coordinators know of these producers' transactions."""
    wanted = list(producer_ids)
    if not wanted:
        return {}
    found = {}
    for listed in await admin.list_transactions(producer_ids=wanted):
        try:
            described = await admin.describe_transactions([listed.transactional_id])
        except KafkaError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            continue  # It expired meanwhile, so it has nothing under way.
        found[listed.producer_id] = described[listed.transactional_id]
    return found


def _is_known(found: OpenTransaction, described: DescribedTransaction | None) -> bool:
    return described is not None and found.tp in described.partitions
