"""The abort of a hanging transaction by an operator (KIP-664), told from the marker of a coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from kafka_client.topic_partition import TopicPartition
    from logd.broker.topics.catalog import TopicCatalog
    from logd.broker.transactions.marker_outcome import Outcome

FIRST_COORDINATOR_EPOCH = 0
"""The epoch that Kafka's tools send where the partition knows of no coordinator."""


def check_operators_abort(catalog: TopicCatalog, where: TopicPartition, outcome: Outcome) -> None:
    """Raise KafkaError(CLUSTER_AUTHORIZATION_FAILED) for a marker that only a broker may send.

    An operator aborts a transaction that is open in the partition, with the epochs that DescribeProducers
    shows. A commit would make records visible. A later coordinator epoch would fence the coordinator, and a
    much later producer epoch the producer. Raises the errors of partitions that are not led here.
    """
    partition = catalog.find(where.topic).partition(where.partition)
    producer = partition.log.producers.producers.get(outcome.identity.producer_id)
    reason = ""
    if outcome.commit:
        reason = "a commit"
    elif producer is None or producer.txn_first_offset < 0:
        reason = "no transaction is open"
    elif outcome.coordinator_epoch > max(producer.coordinator_epoch, FIRST_COORDINATOR_EPOCH):
        reason = "a later coordinator epoch than the partition has"
    elif outcome.identity.epoch > producer.epoch + 1:
        reason = "a later producer epoch than the partition has"
    if reason:
        raise KafkaError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{partition}: producer {outcome.identity.producer_id}: {reason}; only a broker may write that",
        )
