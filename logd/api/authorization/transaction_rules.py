"""Rules of the APIs about transactions and producers."""

from __future__ import annotations

from typing import Any

from kafka_client.acl import Operation, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from kafka_client.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from kafka_client.wire.messages.describe_transactions import (
    DescribeTransactionsResponse,
    TransactionState,
)
from kafka_client.wire.messages.end_txn import EndTxnResponse
from kafka_client.wire.messages.init_producer_id import InitProducerIdResponse
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersResponse,
)
from logd.api.authorization.access import Access, Need, on_cluster, on_group, on_topic, on_transactional_id
from logd.api.authorization.rule import Each, Shown, Verdict, Whole, in_turn
from logd.api.broker_requests import is_from_broker
from logd.groups.txn_offsets import txn_commit_refused

BROKERS_FROM = 4
"""The first version of AddPartitionsToTxn that only brokers send."""


def _to_write(request: Any) -> Need:
    return on_transactional_id(Operation.WRITE, request.transactional_id)


def _to_read_group(request: Any) -> Need:
    return on_group(Operation.READ, request.group_id)


def _add_offsets_refused(request: Any, code: ErrorCode) -> AddOffsetsToTxnResponse:
    return AddOffsetsToTxnResponse(error_code=code)


END_TXN = Whole(_to_write, lambda request, code: EndTxnResponse(error_code=code))
ADD_OFFSETS_TO_TXN = in_turn(
    Whole(_to_write, _add_offsets_refused), Whole(_to_read_group, _add_offsets_refused)
)
TXN_OFFSET_COMMIT = in_turn(
    Whole(_to_write, txn_commit_refused),
    Whole(_to_read_group, txn_commit_refused),
    Each(
        "topics",
        lambda topic, access: on_topic(Operation.READ, topic.name),
        lambda topic, code: TxnOffsetCommitResponseTopic(
            name=topic.name,
            partitions=[
                TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                for each in topic.partitions
            ],
        ),
        TxnOffsetCommitResponse,
        "topics",
    ),
)


def init_producer_id(request: Any, access: Access) -> Verdict:
    """Check the transactional id; any topic to write to is enough for a producer without one (KIP-679)."""
    if request.transactional_id is not None:
        need = on_transactional_id(Operation.WRITE, request.transactional_id)
        is_allowed = access.allows(need)
    else:
        need = on_cluster(Operation.IDEMPOTENT_WRITE)
        is_allowed = access.allows_some(Operation.WRITE, ResourceType.TOPIC) or access.allows(need)
    if is_allowed:
        return Verdict(request)
    return Verdict(None, InitProducerIdResponse(error_code=need.error, producer_id=-1, producer_epoch=-1))


def add_partitions_to_txn(request: Any, access: Access) -> Verdict:
    """Check a client's transactional id and topics. One refused topic fails the others, as in Kafka."""
    if access.context.version >= BROKERS_FROM:
        return Verdict(request)  # from brokers only, which the handler checks
    need = on_transactional_id(Operation.WRITE, request.v3_and_below_transactional_id)
    topics = request.v3_and_below_topics
    if not access.allows(need):
        return Verdict(None, _added(topics, dict.fromkeys((topic.name for topic in topics), need.error)))
    codes = {
        topic.name: ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for topic in topics
        if not access.allows(on_topic(Operation.WRITE, topic.name))
    }
    return Verdict(None, _added(topics, codes)) if codes else Verdict(request)


def _added(topics: list[Any], codes: dict[str, ErrorCode]) -> AddPartitionsToTxnResponse:
    return AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=index,
                        partition_error_code=codes.get(topic.name, ErrorCode.OPERATION_NOT_ATTEMPTED),
                    )
                    for index in topic.partitions
                ],
            )
            for topic in topics
        ]
    )


def write_txn_markers(request: Any, access: Access) -> Verdict:
    """Check an operator's abort: the cluster may be altered, or acted for."""
    if is_from_broker(access.context) or access.shows(on_cluster(Operation.ALTER)):
        return Verdict(request)
    need = on_cluster(Operation.CLUSTER_ACTION)
    return Verdict(request) if access.allows(need) else Verdict(None, _markers_refused(request, need.error))


def _markers_refused(request: Any, code: ErrorCode) -> WriteTxnMarkersResponse:
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index in topic.partition_indexes
                        ],
                    )
                    for topic in marker.topics
                ],
            )
            for marker in request.markers
        ]
    )


def _hide_topics(response: Any, request: Any, access: Access) -> None:
    for state in response.transaction_states:
        state.topics = [
            topic for topic in state.topics if access.shows(on_topic(Operation.DESCRIBE, topic.topic))
        ]


DESCRIBE_TRANSACTIONS = in_turn(
    Each(
        "transactional_ids",
        lambda name, access: on_transactional_id(Operation.DESCRIBE, name),
        lambda name, code: TransactionState(transactional_id=name, error_code=code),
        DescribeTransactionsResponse,
        "transaction_states",
    ),
    Shown(_hide_topics),
)


def _hide_transactions(response: Any, request: Any, access: Access) -> None:
    response.transaction_states = [
        state
        for state in response.transaction_states
        if access.shows(on_transactional_id(Operation.DESCRIBE, state.transactional_id))
    ]


LIST_TRANSACTIONS = Shown(_hide_transactions)
