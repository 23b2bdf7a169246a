"""JoinGroup, versions 0 to 9: which members may join, and when that starts a rebalance.

Version notes: from 1 on members have a rebalance timeout of their own. From 4 on a new dynamic member gets a
member id first and joins again with it (KIP-394). From 5 on members may be static (KIP-345). From 8 on they
may send a reason. From 9 on a returning static leader may be told to skip the assignment (KIP-814).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.join_group import JoinGroupRequest
from logd.groups.group import Group
from logd.groups.member import Member, Protocols, Waiter
from logd.groups.rebalance import Rebalancer, joined, refused_join, response_code
from logd.groups.states import GroupState

MEMBER_ID_REQUIRED_FROM: Final = 4
SKIP_ASSIGNMENT_FROM: Final = 9


@dataclass(frozen=True, slots=True, kw_only=True)
class Joining:
    """A JoinGroup request with its sender and version, and the member id for a member that needs a new
    one.
    """

    request: JoinGroupRequest
    version: int
    client_id: str
    client_host: str
    new_member_id: str
    waiter: Waiter

    @property
    def protocols(self) -> Protocols:
        """The protocols that the member supports."""
        return [(protocol.name, protocol.metadata) for protocol in self.request.protocols]

    @property
    def rebalance_timeout_ms(self) -> int:
        """The member's rebalance timeout; before version 1, its session timeout."""
        return self.request.session_timeout_ms if self.version == 0 else self.request.rebalance_timeout_ms

    def because(self, reason: str) -> str:
        """Return a reason for the log, followed by the client's own reason."""
        return f"{reason}; client reason: {self.request.reason or 'not provided'}"


class JoinHandler:
    """The handler of JoinGroup requests of one coordinator partition."""

    def __init__(self, rebalancer: Rebalancer) -> None:
        self._rebalancer = rebalancer
        self._store = rebalancer.store
        self._settings = rebalancer.settings

    def join(self, joining: Joining, now_ms: int) -> None:
        """Accept the member, let it wait, or refuse it; the response is put into `Rebalancer.answers`."""
        request = joining.request
        error = self._check_request(request)
        if error:
            return self._refuse(joining, error)
        group = self._store.groups.get(request.group_id)
        if group is not None:
            return self._join(group, joining, now_ms)
        if request.member_id:
            return self._refuse(joining, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        self._join_new_group(joining, now_ms)

    def _check_request(self, request: JoinGroupRequest) -> ErrorCode:
        shortest = self._settings.group_min_session_timeout_ms
        longest = self._settings.group_max_session_timeout_ms
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        if not shortest <= request.session_timeout_ms <= longest:
            return ErrorCode.INVALID_SESSION_TIMEOUT
        return ErrorCode.NONE

    def _refuse(self, joining: Joining, error: ErrorCode, member_id: str = "") -> None:
        self._rebalancer.answer(joining.waiter, refused_join(error, member_id))

    def _join_new_group(self, joining: Joining, now_ms: int) -> None:
        request = joining.request
        group = Group(request.group_id, now_ms)
        if not group.supports(request.protocol_type, joining.protocols):
            return self._refuse(joining, ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        try:
            self._store.write([group.empty_record()], now_ms)
        except KafkaError as failure:
            return self._refuse(joining, response_code(failure))
        self._join(self._store.groups[request.group_id], joining, now_ms)

    def _join(self, group: Group, joining: Joining, now_ms: int) -> None:
        request = joining.request
        if not self._has_room(group, request.member_id):
            self._rebalancer.forget(group, request.member_id)
            self._rebalancer.maybe_complete(group, now_ms)
            self._refuse(joining, ErrorCode.GROUP_MAX_SIZE_REACHED)
        elif not group.supports(request.protocol_type, joining.protocols):
            self._refuse(joining, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        elif request.member_id:
            self._join_again(group, joining, now_ms)
        elif request.group_instance_id is not None:
            self._join_static(group, joining, now_ms)
        elif joining.version >= MEMBER_ID_REQUIRED_FROM:
            self._give_member_id(group, joining, now_ms)
        else:
            self._add(group, joining, joining.new_member_id, now_ms)

    def _has_room(self, group: Group, member_id: str) -> bool:
        """Return True if group.max.size allows the member (KIP-389).

        During a rebalance only members whose JoinGroup waits count. So if the limit was lowered, the last
        members to come back are refused.
        """
        limit = self._settings.group_max_size
        member = group.members.get(member_id)
        if group.state is GroupState.EMPTY:
            return True
        if group.state is GroupState.PREPARING_REBALANCE:
            return (member is not None and member.joining is not None) or group.joining_count < limit
        return member is not None or len(group.members) < limit

    def _give_member_id(self, group: Group, joining: Joining, now_ms: int) -> None:
        if len(group.pending_joins) >= self._settings.pending_joins_max:
            return self._refuse(joining, ErrorCode.GROUP_MAX_SIZE_REACHED)
        group.pending_joins.add(joining.new_member_id)
        timeout_ms = joining.request.session_timeout_ms
        self._rebalancer.expect_pending(group, joining.new_member_id, timeout_ms, now_ms)
        self._refuse(joining, ErrorCode.MEMBER_ID_REQUIRED, joining.new_member_id)

    def _add(self, group: Group, joining: Joining, member_id: str, now_ms: int) -> None:
        request = joining.request
        member = Member(
            member_id=member_id,
            instance_id=request.group_instance_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=joining.protocols,
            is_new=True,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        if not group.members:
            group.protocol_type = request.protocol_type
        group.add(member, joining.waiter)
        self._rebalancer.expect_new_member(group, member, now_ms)
        self._rebalance_or_complete(group, joining, f"member {member_id} is new", now_ms)

    # A member that has an id

    def _join_again(self, group: Group, joining: Joining, now_ms: int) -> None:
        request = joining.request
        if request.member_id in group.pending_joins:
            if request.group_instance_id is not None:
                return self._refuse(joining, ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
            return self._add(group, joining, request.member_id, now_ms)
        error = group.check_member(request.member_id, request.group_instance_id)
        if error:
            return self._refuse(joining, error, request.member_id)
        member = group.members[request.member_id]
        if self._knows_all(group, member, joining):
            # The response to its JoinGroup may have been lost: repeat that of the current generation.
            members = group.member_list() if self._assigns(group, member) else None
            self._rebalancer.answer(joining.waiter, joined(group, member.member_id, members=members))
        else:
            reason = f"member {member.member_id} joins again in {group.state.value}"
            self._update(group, member, joining)
            self._rebalance_or_complete(group, joining, reason, now_ms)

    def _knows_all(self, group: Group, member: Member, joining: Joining) -> bool:
        """Return True if the member may go on with the current generation.

        A leader that joins a stable group requests a rebalance: something has changed that its metadata does
        not show, such as the number of a topic's partitions.
        """
        if group.state is GroupState.COMPLETING_REBALANCE:
            return member.matches(joining.protocols)
        if group.state is GroupState.STABLE:
            return member.member_id != group.leader and member.matches(joining.protocols)
        return False

    def _assigns(self, group: Group, member: Member) -> bool:
        return group.state is GroupState.COMPLETING_REBALANCE and member.member_id == group.leader

    def _update(self, group: Group, member: Member, joining: Joining) -> None:
        timeout_ms = joining.request.session_timeout_ms
        group.update(member, joining.protocols, joining.rebalance_timeout_ms, timeout_ms)
        self._rebalancer.wait_for_join(group, member, joining.waiter)

    def _rebalance_or_complete(self, group: Group, joining: Joining, reason: str, now_ms: int) -> None:
        self._rebalancer.rebalance_or_complete(group, joining.because(reason), now_ms)

    # Static members (KIP-345)

    def _join_static(self, group: Group, joining: Joining, now_ms: int) -> None:
        instance_id = joining.request.group_instance_id
        assert instance_id is not None
        old_member_id = group.static_members.get(instance_id)
        if old_member_id is None:
            return self._add(group, joining, joining.new_member_id, now_ms)
        member = group.members[old_member_id]
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        old_leader = group.leader
        self._replace(group, member, joining, now_ms)
        if group.state is GroupState.STABLE and group.choose_protocol() == group.protocol:
            try:
                self._store.write([group.to_record(_assignments(group))], now_ms)
            except KafkaError as failure:
                group.replace_static(member, old_member_id)
                group.update(member, *before)
                self._rebalancer.answer_join(group, member, refused_join(response_code(failure)))
                return self._rebalancer.renew_session(group, member, now_ms)
            self._return_to_stable(group, member, joining, old_leader)
        else:
            # The leader may be making an assignment for the old id: the new id only gets one by another
            # rebalance.
            reason = f"static member {instance_id} is back as {member.member_id}"
            self._rebalance_or_complete(group, joining, reason, now_ms)

    def _replace(self, group: Group, member: Member, joining: Joining, now_ms: int) -> None:
        """Move the static member to its new id, and fence requests that still wait under the old one."""
        self._rebalancer.fence(group, member)
        group.replace_static(member, joining.new_member_id)
        member.client_id, member.client_host = joining.client_id, joining.client_host
        self._update(group, member, joining)
        self._rebalancer.renew_session(group, member, now_ms)

    def _return_to_stable(
        self, group: Group, member: Member, joining: Joining, old_leader: str | None
    ) -> None:
        """Answer without a rebalance: the static member keeps its assignment.

        A leader must not assign again. From version 9 on the response says so (KIP-814). Before, it names the
        old member id as leader, so that the member acts as a follower.
        """
        is_leader = member.member_id == group.leader
        if joining.version >= SKIP_ASSIGNMENT_FROM:
            members = group.member_list() if is_leader else None
            response = joined(group, member.member_id, members=members, skip_assignment=is_leader)
        else:
            response = joined(group, member.member_id, leader=old_leader)
        self._rebalancer.answer_join(group, member, response)


def _assignments(group: Group) -> dict[str, bytes]:
    return {member.member_id: member.assignment for member in group.members.values()}
