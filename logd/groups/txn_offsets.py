"""TxnOffsetCommit, versions 0 to 5: offsets that count once their transaction is committed (KIP-98, KIP-447).

Version notes: from 3 on members send their member id and generation. So a member that lost its partitions is
fenced by its generation, instead of by a transactional id per partition (KIP-447). From 4 on clients
understand TRANSACTION_ABORTABLE. From 5 on the commit itself adds the partition of `__consumer_offsets` to
the transaction (KIP-890); before, AddOffsetsToTxn did.
"""

from __future__ import annotations

from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from logd.groups.group import Group
from logd.groups.offsets import commit_error
from logd.groups.records import OffsetCommitKey, OffsetCommitValue, OffsetRecord
from logd.groups.settings import GroupSettings
from logd.groups.states import GroupState
from logd.groups.store import GroupStore, Producing

ABORTABLE_FROM: Final = 4
IMPLICIT_FROM: Final = 5


class TxnOffsetHandler:
    """The handler of offsets that producers commit in transactions, for one coordinator partition."""

    def __init__(self, store: GroupStore, settings: GroupSettings) -> None:
        self._store = store
        self._settings = settings

    def commit(self, request: TxnOffsetCommitRequest, version: int, now_ms: int) -> TxnOffsetCommitResponse:
        """Write the offsets that have no error of their own, as part of the producer's transaction, in one
        batch.
        """
        error = _check(self._store.groups.get(request.group_id), request)
        if error:
            return txn_commit_refused(request, error)
        records: list[OffsetRecord] = []
        response = TxnOffsetCommitResponse()
        for topic in request.topics:
            answer = TxnOffsetCommitResponseTopic(name=topic.name)
            response.topics.append(answer)
            for partition in topic.partitions:
                partition_error = ErrorCode.NONE
                if len(partition.committed_metadata or "") > self._settings.offset_metadata_max_bytes:
                    partition_error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    records.append(_offset_record(request.group_id, topic.name, partition, now_ms))
                answer.partitions.append(_committed(partition.partition_index, partition_error))
        producing = Producing(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            implicit=version >= IMPLICIT_FROM,
        )
        try:
            self._store.write_in_transaction(records, producing, now_ms)
        except KafkaError as failure:
            return txn_commit_refused(request, _client_error(failure, version))
        return response


def txn_commit_refused(request: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """Return a response with the same error for every partition: TxnOffsetCommit has no top-level error."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[_committed(partition.partition_index, error) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _check(group: Group | None, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Return NONE if this member, or a client without membership, may commit now.

    A request without member and generation always may: clients before version 3 send neither. Unlike with
    OffsetCommit, a rebalance does not stop a member of the current generation.
    """
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if request.producer_id < 0 or request.producer_epoch < 0:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    member_id, instance_id = request.member_id, request.group_instance_id
    generation = request.generation_id
    if group is None:
        return ErrorCode.NONE if generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if generation < 0 and group.state is GroupState.EMPTY:
        return ErrorCode.NONE
    if generation < 0 and not member_id and instance_id is None:
        return ErrorCode.NONE
    error = group.check_member(member_id, instance_id)
    if not error and generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def _client_error(failure: KafkaError, version: int) -> ErrorCode:
    """Return an error that clients of the version understand, and retry if that helps."""
    if failure.code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if failure.code is ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_FROM:
        return ErrorCode.INVALID_TXN_STATE
    if failure.code is ErrorCode.CONCURRENT_TRANSACTIONS:
        # The last transaction's markers are being written: after this error every client retries here.
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return commit_error(failure)


def _offset_record(
    group_id: str, topic: str, partition: TxnOffsetCommitRequestPartition, now_ms: int
) -> OffsetRecord:
    value = OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
    )
    return OffsetRecord(
        OffsetCommitKey(group=group_id, topic=topic, partition=partition.partition_index), value
    )


def _committed(index: int, error: ErrorCode) -> TxnOffsetCommitResponsePartition:
    return TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)
