"""AddPartitionsToTxn, 0 to 5: partitions a transaction is about to write in.

Up to version 3 a producer asks, for one transaction. From version 4 on brokers ask (KIP-890), for several,
each to be added to or only to be looked at (``verify_only``). One partition that does not exist fails its
whole transaction: the others are OPERATION_NOT_ATTEMPTED. Before version 2 PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from logd.api.broker_requests import is_from_broker
from logd.api.request.context import RequestContext
from logd.api.transaction_codes import code_for
from logd.broker.topics.topic import INTERNAL_TOPICS
from logd.transactions import ProducerIdentity

REQUEST = AddPartitionsToTxnRequest

BATCHED_FROM = 4
FENCED_FROM = 2
BROKERS_TRANSACTION_VERSION = 2
"""Brokers add partitions only for producers of this transaction version."""

Codes = Mapping[TopicPartition, ErrorCode]


async def handle(request: AddPartitionsToTxnRequest, context: RequestContext) -> AddPartitionsToTxnResponse:
    """Answer partition by partition, from version 4 on only to brokers."""
    if context.version >= BATCHED_FROM:
        if not is_from_broker(context):
            return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        # At once: where records wait for replicas, all wait for the same.
        codes_of_all = await asyncio.gather(*(_codes(each, context) for each in request.transactions))
        results = [
            AddPartitionsToTxnResult(
                transactional_id=each.transactional_id, topic_results=_results(each.topics, codes)
            )
            for each, codes in zip(request.transactions, codes_of_all, strict=True)
        ]
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=request.v3_and_below_transactional_id,
        producer_id=request.v3_and_below_producer_id,
        producer_epoch=request.v3_and_below_producer_epoch,
        topics=request.v3_and_below_topics,
    )
    codes = await _codes(transaction, context)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=_results(transaction.topics, codes))


async def _codes(transaction: AddPartitionsToTxnTransaction, context: RequestContext) -> Codes:
    partitions = [
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    ]
    refused = {
        where: code for where in partitions if (code := _refusal(where, context)) is not ErrorCode.NONE
    }
    if refused:
        return dict.fromkeys(partitions, ErrorCode.OPERATION_NOT_ATTEMPTED) | refused
    identity = ProducerIdentity(transaction.producer_id, transaction.producer_epoch)
    transactions = context.broker.transactions
    try:
        if transaction.verify_only:
            return await transactions.verify_partitions(transaction.transactional_id, identity, partitions)
        await transactions.add_partitions(
            transaction.transactional_id,
            identity,
            partitions,
            client_version=BROKERS_TRANSACTION_VERSION if context.version >= BATCHED_FROM else 0,
        )
    except KafkaError as error:
        return dict.fromkeys(partitions, code_for(error, context.version, fenced_from=FENCED_FROM))
    return dict.fromkeys(partitions, ErrorCode.NONE)


def _refusal(where: TopicPartition, context: RequestContext) -> ErrorCode:
    if where.topic in INTERNAL_TOPICS and context.version < BATCHED_FROM:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = context.broker.catalog.topics.get(where.topic)
    if topic is None or not 0 <= where.partition < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE


def _results(topics: Sequence[AddPartitionsToTxnTopic], codes: Codes) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[TopicPartition(topic.name, index)]
                )
                for index in topic.partitions
            ],
        )
        for topic in topics
    ]
