"""Hanging transactions: open in a partition, but unknown to any coordinator, so that nobody will end them.

The last stable offset stays before them, and readers of committed records wait for ever. A bug or a lost
`__transaction_state` leaves such transactions (KIP-664). Only an operator can abort them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Self

from kafka_client import ActiveProducer, Admin, Client, DescribedTransaction, TopicPartition
from kafka_client.errors import ErrorCode, KafkaError
from millstream.terminal.status import NotFound


class OpenTransaction(NamedTuple):
    """An open transaction of a partition, and its producer."""

    tp: TopicPartition
    producer: ActiveProducer


class Writer(NamedTuple):
    """The producer of a transaction that is to be aborted, as a transaction marker names it."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    @classmethod
    def create(cls, producer_id: int, producer_epoch: int, coordinator_epoch: int) -> Self:
        """Return the writer with a coordinator epoch that every coordinator accepts."""
        # A producer's first transaction has no coordinator epoch yet; 0 is not above any coordinator's epoch.
        return cls(producer_id, producer_epoch, max(coordinator_epoch, 0))


async def find_writer(admin: Admin, tp: TopicPartition, start_offset: int) -> Writer | None:
    """Return the producer of the open transaction that starts at the offset, or None."""
    for producer in (await admin.describe_producers([tp]))[tp]:
        if producer.transaction_start_offset == start_offset:
            return Writer.create(producer.producer_id, producer.producer_epoch, producer.coordinator_epoch)
    return None


async def find_hanging(
    client: Client,
    *,
    topic: str | None,
    partition: int | None,
    broker_id: int | None,
    idle_ms: int,
    now_ms: int,
) -> list[OpenTransaction]:
    """Return the hanging transactions of one partition, one topic, or all partitions of a broker.

    A transaction hangs if its producer has not written for longer than `idle_ms` and its coordinator does not
    have it under way.
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
    under_way = await _under_way(admin, {each.producer.producer_id for each in idle})
    return [each for each in idle if not _is_known(each, under_way.get(each.producer.producer_id))]


async def _partitions(
    client: Client, topic: str | None, partition: int | None, broker_id: int | None
) -> list[TopicPartition]:
    cluster = await client.metadata(None if topic is None else [topic], refresh=True)
    if broker_id is not None and broker_id not in cluster.brokers:
        raise NotFound(f"there is no broker {broker_id}")
    tps = [
        TopicPartition(name, described.partition)
        for name, metadata in cluster.topics.items()
        for described in metadata.partitions.values()
        if (partition is None or described.partition == partition)
        and (broker_id is None or broker_id in described.replicas)
    ]
    if partition is not None and not tps:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"{topic}-{partition}")
    return tps


async def _under_way(admin: Admin, producer_ids: Iterable[int]) -> dict[int, DescribedTransaction]:
    """Return these producers' transactions by producer id, as coordinators describe them."""
    requested = list(producer_ids)
    if not requested:
        return {}
    transactions = {}
    for listed in await admin.list_transactions(producer_ids=requested):
        try:
            described = await admin.describe_transactions([listed.transactional_id])
        except KafkaError as error:
            if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
                raise
            continue  # It expired meanwhile, so it has nothing under way.
        transactions[listed.producer_id] = described[listed.transactional_id]
    return transactions


def _is_known(transaction: OpenTransaction, described: DescribedTransaction | None) -> bool:
    return described is not None and transaction.tp in described.partitions
