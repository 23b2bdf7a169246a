"""DescribeGroups, ListGroups and DeleteGroups, and removals without a request: expired offsets, deleted
topics.

Version notes: DescribeGroups 6 answers GROUP_ID_NOT_FOUND for an unknown group, earlier versions report a
dead one (KIP-1043). ListGroups filters by state from version 4 on (KIP-518) and by type from 5 on (KIP-848).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.delete_groups import DeletableGroupResult
from kafka_client.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from kafka_client.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from logd.groups.group import Group
from logd.groups.records import CoordinatorRecord, GroupMetadataKey, GroupRecord, OffsetCommitValue
from logd.groups.settings import GroupSettings
from logd.groups.states import GroupState
from logd.groups.store import GroupStore, tombstone

log = logging.getLogger(__name__)

NOT_FOUND_FROM: Final = 6
CLASSIC: Final = "Classic"
RECORDS_PER_BATCH: Final = 500
"""Most tombstones in one batch, so that the batch stays far below the largest allowed one."""


class AdminHandler:
    """The handler of administrators' requests for one coordinator partition, and of its housekeeping."""

    def __init__(self, store: GroupStore, settings: GroupSettings) -> None:
        self._store = store
        self._settings = settings

    def describe(self, group_id: str, version: int) -> DescribedGroup:
        """Describe one group; subscriptions and assignments are included only while it is stable."""
        group = self._store.groups.get(group_id)
        if group is None:
            return _not_found(group_id, version)
        stable = group.state is GroupState.STABLE
        protocol = group.protocol if stable else None
        members = [
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(protocol) if protocol is not None else b"",
                member_assignment=member.assignment if protocol is not None else b"",
            )
            for member in group.members.values()
        ]
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state.value,
            protocol_type=group.protocol_type or "",
            protocol_data=protocol or "",
            members=members,
        )

    def matching(self, request: ListGroupsRequest) -> Iterator[ListedGroup]:
        """Yield the groups that match the request's filters, ignoring case; an empty filter matches all."""
        states = {state.lower() for state in request.states_filter}
        types = {kind.lower() for kind in request.types_filter}
        if types and CLASSIC.lower() not in types:
            return
        for group in self._store.groups.values():
            if not states or group.state.value.lower() in states:
                yield ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state.value,
                    group_type=CLASSIC,
                )

    def delete(self, group_id: str, now_ms: int) -> DeletableGroupResult:
        """Remove a group without members, and its offsets, including those of open transactions."""
        group = self._store.groups.get(group_id)
        error = ErrorCode.NONE
        if group is None:
            error = ErrorCode.GROUP_ID_NOT_FOUND
        elif group.state is not GroupState.EMPTY:
            error = ErrorCode.NON_EMPTY_GROUP
        else:
            offsets = [tombstone(group_id, where) for where in self._store.known_offsets(group_id)]
            error = self._write([*offsets, _group_tombstone(group_id)], now_ms)
        return DeletableGroupResult(group_id=group_id, error_code=error)

    def topics_deleted(self, topics: Iterable[str], now_ms: int) -> ErrorCode:
        """Remove the offsets of deleted topics."""
        doomed = self._store.offsets_of_topics(frozenset(topics))
        return self._write([tombstone(group_id, where) for group_id, where in doomed], now_ms)

    def expire(self, now_ms: int) -> ErrorCode:
        """Remove expired offsets (KIP-211), and groups with neither members nor offsets left.

        Offsets that an open transaction is about to change stay.
        """
        records: list[CoordinatorRecord] = []
        for group in self._store.groups.values():
            expired = list(self._expired(group, now_ms))
            records.extend(expired)
            all_expired = len(expired) == len(self._store.offsets(group.group_id))
            in_use = group.pending_joins or self._store.pending(group.group_id)
            if group.state is GroupState.EMPTY and not in_use and all_expired:
                records.append(_group_tombstone(group.group_id))
        if records:
            log.info("forgetting %d expired offsets and groups", len(records))
        return self._write(records, now_ms)

    def _expired(self, group: Group, now_ms: int) -> Iterator[CoordinatorRecord]:
        pending = self._store.pending(group.group_id)
        for where, offset in self._store.offsets(group.group_id).items():
            in_use = where in pending or group.subscribes_to(where.topic)
            if not in_use and self._is_expired(group, offset.value, now_ms):
                yield tombstone(group.group_id, where)

    def _is_expired(self, group: Group, value: OffsetCommitValue, now_ms: int) -> bool:
        """Return True if the offset's retention is over.

        Retention starts when the group became empty. It starts at the commit if the group has no protocol
        type, or has members that do not subscribe to the topic.
        """
        since_ms = value.commit_timestamp
        if group.protocol_type is not None:
            if group.state is GroupState.EMPTY:
                since_ms = since_ms if group.state_since_ms == -1 else group.state_since_ms
            elif group.state is not GroupState.STABLE or group.subscribed is None:
                return False
        if value.expire_timestamp != -1:
            return now_ms >= value.expire_timestamp
        return now_ms - since_ms >= self._settings.offsets_retention_ms

    def _write(self, records: Iterable[CoordinatorRecord], now_ms: int) -> ErrorCode:
        iterator = iter(records)
        while batch := list(islice(iterator, RECORDS_PER_BATCH)):
            try:
                self._store.write(batch, now_ms)
            except KafkaError as failure:
                log.warning("cannot store tombstones: %s", failure)
                return failure.code
        return ErrorCode.NONE


def _group_tombstone(group_id: str) -> GroupRecord:
    return GroupRecord(GroupMetadataKey(group=group_id), None)


def _not_found(group_id: str, version: int) -> DescribedGroup:
    described = DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
    if version >= NOT_FOUND_FROM:
        described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        described.error_message = f"Group {group_id} not found."
    return described
