"""Requests that only brokers may send, forged by somebody who knows the protocol."""

from __future__ import annotations

import struct

from kafka_client.wire import encode_request
from kafka_client.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from kafka_client.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest
from kafka_client.wire.messages.alter_partition import AlterPartitionRequest
from kafka_client.wire.messages.envelope import EnvelopeRequest
from kafka_client.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_client.wire.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from kafka_client.wire.private.broker_report import BrokerReportRequest
from kafka_client.wire.private.cluster_update import ClusterUpdateRequest
from logd.api.broker_requests import BrokerRequest

TOPIC = "t"
CONTROLLER_EPOCH = 1_000_000

_MARKED = WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[0])
_FETCHED = FetchTopic(topic=TOPIC, partitions=[FetchPartition(partition=0, partition_max_bytes=1 << 20)])
_FORGED = {
    message.API_KEY: (message, version)
    for message, version in (
        (FetchRequest(replica_id=2, max_wait_ms=0, min_bytes=0, max_bytes=1 << 20, topics=[_FETCHED]), 12),
        (AddPartitionsToTxnRequest(transactions=[]), 5),
        (
            WriteTxnMarkersRequest(
                markers=[
                    WritableTxnMarker(
                        producer_id=1, producer_epoch=0, transaction_result=True, topics=[_MARKED]
                    )
                ]
            ),
            1,
        ),
        (AlterPartitionRequest(broker_id=2, broker_epoch=1, topics=[]), 3),
        (EnvelopeRequest(request_data=b"", request_principal=b"", client_host_address=b""), 0),
        (AllocateProducerIdsRequest(broker_id=2, broker_epoch=1), 0),
        (
            ClusterUpdateRequest(
                controller_id=99,
                controller_epoch=CONTROLLER_EPOCH,
                broker_epoch=0,
                number=0,
                begins=True,
                is_complete=True,
                changes=b"[]",
            ),
            0,
        ),
        (BrokerReportRequest(broker_id=2, broker_epoch=1, is_shutting_down=True), 0),
    )
}


def forged(row: BrokerRequest) -> bytes:
    """Return a whole request frame for a row of the table."""
    if row.key in _FORGED:
        return encode_request(*_FORGED[row.key], 7, "forger")
    head = struct.pack(">hhihB", row.key, 0, 7, -1, 0)  # of an API that is not served yet
    return struct.pack(">i", len(head)) + head
