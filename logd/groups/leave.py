"""LeaveGroup, versions 0 to 5: members go, one or many, by member id or by instance id.

Version notes: many at once and by instance id from 3 on (KIP-345), with a reason from 5 on (KIP-800).
"""

from __future__ import annotations

import logging

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
    MemberResponse,
)
from logd.groups.group import Group
from logd.groups.member import Waiter
from logd.groups.rebalance import Rebalancer

log = logging.getLogger(__name__)


class LeaveHandler:
    """Decides on LeaveGroup requests of one coordinator partition."""

    def __init__(self, rebalancer: Rebalancer) -> None:
        self._rebalancer = rebalancer

    def leave(self, request: LeaveGroupRequest, waiter: Waiter, now_ms: int) -> None:
        """Let `request.members` go, each with its own error, and rebalance the rest once."""
        if not request.group_id:
            response = LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
            return self._rebalancer.answer(waiter, response)
        group = self._rebalancer.store.groups.get(request.group_id)
        size = len(group.members) if group is not None else 0
        answers = [self._leave(group, identity) for identity in request.members]
        self._rebalancer.answer(waiter, LeaveGroupResponse(members=answers))
        if group is None:
            return
        if len(group.members) < size:
            self._rebalancer.rebalance_or_complete(group, "members left", now_ms)
        else:
            self._rebalancer.maybe_complete(group, now_ms)

    def _leave(self, group: Group | None, identity: MemberIdentity) -> MemberResponse:
        answer = MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id)
        member_id: str | None = identity.member_id
        if group is None:
            answer.error_code = ErrorCode.UNKNOWN_MEMBER_ID
            return answer
        if not member_id:
            # An administrator removes an instance without knowing its member id.
            member_id = group.static_members.get(identity.group_instance_id or "")
        if member_id is None:
            answer.error_code = ErrorCode.UNKNOWN_MEMBER_ID
        elif member_id not in group.pending_joins:
            answer.error_code = group.check_member(member_id, identity.group_instance_id)
        if not answer.error_code and member_id is not None:
            log.info(
                "group %s: %s leaves: %s",
                group.group_id,
                member_id,
                identity.reason or "no reason given",
                extra=group.log_fields,
            )
            self._rebalancer.forget(group, member_id)
        return answer
