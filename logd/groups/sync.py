"""SyncGroup, versions 0 to 5, and Heartbeat, versions 0 to 4.

Version notes: SyncGroup names protocol type and protocol from 5 on (KIP-559); both carry the instance id from
3 on.
"""

from __future__ import annotations

import logging

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_client.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from logd.groups.group import Group
from logd.groups.member import Member, Waiter
from logd.groups.rebalance import Rebalancer, response_code
from logd.groups.states import GroupState
from logd.groups.subscription import missing_assignment

log = logging.getLogger(__name__)


class SyncHandler:
    """The handler of SyncGroup and Heartbeat requests of one coordinator partition."""

    def __init__(self, rebalancer: Rebalancer) -> None:
        self._rebalancer = rebalancer
        self._store = rebalancer.store

    def sync(self, request: SyncGroupRequest, waiter: Waiter, now_ms: int) -> None:
        """Let the member wait for its assignment, or answer with it; the leader's request has the assignments
        of all.
        """
        group = self._store.groups.get(request.group_id)
        error = self._check_sync(group, request)
        if error or group is None:
            return self._rebalancer.answer(waiter, SyncGroupResponse(error_code=error))
        member = group.members[request.member_id]
        self._rebalancer.synced(group, member.member_id)
        if group.state is GroupState.STABLE:
            return self._rebalancer.answer(waiter, _assigned(group, member))
        self._rebalancer.wait_for_sync(member, waiter)
        if member.member_id == group.leader:
            self._store_assignments(group, request, now_ms)

    def _check_sync(self, group: Group | None, request: SyncGroupRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None or group.state is GroupState.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if _differ(request.protocol_type, group.protocol_type) or _differ(
            request.protocol_name, group.protocol
        ):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE

    def _store_assignments(self, group: Group, request: SyncGroupRequest, now_ms: int) -> None:
        assigned = {assignment.member_id: assignment.assignment for assignment in request.assignments}
        nothing = missing_assignment(group.protocol_type)
        assignments = {member_id: assigned.get(member_id) or nothing for member_id in group.members}
        try:
            self._store.write([group.to_record(assignments)], now_ms)
        except KafkaError as failure:
            error = response_code(failure)
            log.warning(
                "group %s: cannot store generation %d: %s",
                group.group_id,
                group.generation,
                failure,
                extra=group.log_fields,
            )
            self._rebalancer.end_syncs(group, error, now_ms)
            return self._rebalancer.prepare(group, "the assignment could not be stored", now_ms)
        for member in group.members.values():
            if self._rebalancer.answer_sync(member, _assigned(group, member)):
                self._rebalancer.renew_session(group, member, now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> HeartbeatResponse:
        """Renew the member's session; the response says whether it has to join again."""
        group = self._store.groups.get(request.group_id)
        return HeartbeatResponse(error_code=self._heartbeat(group, request, now_ms))

    def _heartbeat(self, group: Group | None, request: HeartbeatRequest, now_ms: int) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return error
        if request.generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self._rebalancer.renew_session(group, group.members[request.member_id], now_ms)
        if group.state is GroupState.PREPARING_REBALANCE:
            return ErrorCode.REBALANCE_IN_PROGRESS
        return ErrorCode.NONE


def _assigned(group: Group, member: Member) -> SyncGroupResponse:
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )


def _differ(requested: str | None, current: str | None) -> bool:
    return requested is not None and current is not None and requested != current
