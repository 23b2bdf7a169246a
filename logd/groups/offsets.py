"""OffsetCommit, OffsetFetch and OffsetDelete. Offsets committed in transactions are handled in `txn_offsets`.

Version notes, OffsetCommit (2 to 10): a retention time of its own in 2 to 4 only; static members from 7 on;
topic ids instead of names in 10. OffsetFetch (1 to 10): several groups in one request from 8 on, topic ids in
10. `logd.api` matches names and ids; here topics have names.
"""

from __future__ import annotations

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from logd.groups.group import Group
from logd.groups.pending import StoredOffset, TopicIndex
from logd.groups.rebalance import Rebalancer
from logd.groups.records import OffsetCommitKey, OffsetCommitValue, OffsetRecord
from logd.groups.states import GroupState
from logd.groups.store import tombstone


class OffsetHandler:
    """The handler of requests about offsets, for one coordinator partition."""

    def __init__(self, rebalancer: Rebalancer) -> None:
        self._rebalancer = rebalancer
        self._store = rebalancer.store
        self._settings = rebalancer.settings

    # Commit

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> OffsetCommitResponse:
        """Store the offsets that have no error of their own, in one batch."""
        error = self._check_commit(request, version)
        if error:
            return commit_refused(request, error)
        group = self._store.groups.get(request.group_id)
        if group is not None and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            self._rebalancer.renew_session(group, group.members[request.member_id], now_ms)
        records: list[OffsetRecord] = []
        response = OffsetCommitResponse()
        for topic in request.topics:
            answer = OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id)
            response.topics.append(answer)
            for partition in topic.partitions:
                partition_error = ErrorCode.NONE
                if len(partition.committed_metadata or "") > self._settings.offset_metadata_max_bytes:
                    partition_error = ErrorCode.OFFSET_METADATA_TOO_LARGE
                else:
                    records.append(_offset_record(request, topic.name, partition, now_ms))
                answer.partitions.append(_committed(partition.partition_index, partition_error))
        try:
            self._store.write(records, now_ms)
        except KafkaError as failure:
            return commit_refused(request, commit_error(failure))
        return response

    def _check_commit(self, request: OffsetCommitRequest, version: int) -> ErrorCode:
        """Return NONE if this member, or a client without membership, may commit now.

        If the group has no members, any client may commit (generation -1: an admin client, or a consumer that
        assigns itself). A group with members only accepts commits of its members in the current generation.
        """
        group = self._store.groups.get(request.group_id)
        member_id, instance_id = request.member_id, request.group_instance_id
        generation = request.generation_id_or_member_epoch
        if group is None:
            if generation < 0:
                return ErrorCode.NONE
            return ErrorCode.GROUP_ID_NOT_FOUND if version >= 9 else ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.EMPTY and generation < 0:
            return ErrorCode.NONE
        error = group.check_member(member_id, instance_id)
        if error:
            return error
        if generation != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if group.state is GroupState.COMPLETING_REBALANCE:
            # A valid member, but its assignment is being decided: it has to finish the rebalance first.
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    # Fetch

    def fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool = False
    ) -> OffsetFetchResponseGroup:
        """Return the requested committed offsets, -1 where there is none; all offsets of the group if
        `topics` is null.

        An unknown group is answered like one without offsets. With `require_stable` (KIP-447) an offset that
        an open transaction is about to change is answered UNSTABLE_OFFSET_COMMIT, and the client retries.
        """
        offsets = self._store.offsets(request.group_id)
        unstable = self._store.pending(request.group_id) if require_stable else ()
        topics = request.topics
        if topics is None:
            by_topic: dict[str, list[int]] = {}
            for where in offsets:
                by_topic.setdefault(where.topic, []).append(where.partition)
            topics = [
                OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                for name, indexes in by_topic.items()
            ]
        answers = [
            OffsetFetchResponseTopics(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    _unstable(where.partition) if where in unstable else _fetched(where, offsets.get(where))
                    for where in (TopicIndex(topic.name, index) for index in topic.partition_indexes)
                ],
            )
            for topic in topics
        ]
        return OffsetFetchResponseGroup(group_id=request.group_id, topics=answers)

    # Delete

    def delete(self, request: OffsetDeleteRequest, now_ms: int) -> OffsetDeleteResponse:
        """Remove offsets, except those of topics that the group consumes now (KIP-496)."""
        group = self._store.groups.get(request.group_id)
        error = _check_delete(group, request)
        if error or group is None:
            return OffsetDeleteResponse(error_code=error)
        offsets = frozenset(self._store.known_offsets(request.group_id))
        records: list[OffsetRecord] = []
        response = OffsetDeleteResponse()
        for topic in request.topics:
            subscribed = group.subscribes_to(topic.name)
            error = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            answer = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answer)
            for partition in topic.partitions:
                index = partition.partition_index
                answer.partitions.append(
                    OffsetDeleteResponsePartition(partition_index=index, error_code=error)
                )
                where = TopicIndex(topic.name, index)
                if not subscribed and where in offsets:
                    records.append(tombstone(request.group_id, where))
        try:
            self._store.write(records, now_ms)
        except KafkaError as failure:
            return OffsetDeleteResponse(error_code=commit_error(failure))
        return response


def commit_refused(request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """Return a response with the same error for every partition: OffsetCommit has no top-level error."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[_committed(partition.partition_index, error) for partition in topic.partitions],
            )
            for topic in request.topics
        ]
    )


def _check_delete(group: Group | None, request: OffsetDeleteRequest) -> ErrorCode:
    if not request.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if group is None:
        return ErrorCode.GROUP_ID_NOT_FOUND
    if group.state is not GroupState.EMPTY and not group.is_consumer_group:
        return ErrorCode.NON_EMPTY_GROUP
    return ErrorCode.NONE


def _offset_record(
    request: OffsetCommitRequest, topic: str, partition: OffsetCommitRequestPartition, now_ms: int
) -> OffsetRecord:
    retention_ms = request.retention_time_ms
    value = OffsetCommitValue(
        offset=partition.committed_offset,
        leader_epoch=partition.committed_leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_timestamp=now_ms,
        expire_timestamp=-1 if retention_ms == -1 else now_ms + retention_ms,
    )
    key = OffsetCommitKey(group=request.group_id, topic=topic, partition=partition.partition_index)
    return OffsetRecord(key, value)


def _committed(index: int, error: ErrorCode) -> OffsetCommitResponsePartition:
    return OffsetCommitResponsePartition(partition_index=index, error_code=error)


def _fetched(where: TopicIndex, offset: StoredOffset | None) -> OffsetFetchResponsePartitions:
    if offset is None:
        return OffsetFetchResponsePartitions(
            partition_index=where.partition, committed_offset=-1, metadata=""
        )
    return OffsetFetchResponsePartitions(
        partition_index=where.partition,
        committed_offset=offset.value.offset,
        committed_leader_epoch=offset.value.leader_epoch,
        metadata=offset.value.metadata,
    )


def _unstable(index: int) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=-1,
        metadata="",
        error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
    )


def commit_error(failure: KafkaError) -> ErrorCode:
    """Return the error for clients when the coordinator's log did not accept their offsets."""
    return _COMMIT_ERRORS.get(failure.code, failure.code)


_COMMIT_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.INVALID_COMMIT_OFFSET_SIZE,
}
