"""The change from one generation to the next: members to wait for, timeouts, and responses to waiting
requests.

`join`, `sync` and `leave` add and remove members. They then ask a `Rebalancer` whether to start a rebalance,
or whether the join phase is complete. Deadlines that pass are handled here too.
"""

from __future__ import annotations

import logging
from typing import Final, NamedTuple

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.message import Message
from kafka_client.wire.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from kafka_client.wire.messages.sync_group import SyncGroupResponse
from logd.groups.deadlines import DeadlineKey, Deadlines
from logd.groups.group import Group
from logd.groups.member import Member, Waiter
from logd.groups.settings import GroupSettings
from logd.groups.states import GroupState
from logd.groups.store import GroupStore

log = logging.getLogger(__name__)

JOIN_WAIT_MS_MIN: Final = 100
"""Shortest join phase: a group of absent static members with a rebalance timeout of 0 must not cause a busy
loop.
"""


class Answer(NamedTuple):
    """The response to a waiting request."""

    waiter: Waiter
    response: Message


class Rebalancer:
    """Starts and completes rebalances of the groups of one coordinator partition.

    Responses to waiting requests are collected in `answers` until the shard returns them.
    """

    def __init__(self, store: GroupStore, settings: GroupSettings) -> None:
        self.store = store
        self.settings = settings
        self.deadlines = Deadlines()
        self.answers: list[Answer] = []

    # Answers

    def answer(self, waiter: Waiter, response: Message) -> None:
        """Add a response to `answers`."""
        self.answers.append(Answer(waiter, response))

    def answer_join(self, group: Group, member: Member, response: JoinGroupResponse) -> None:
        """Answer the member's JoinGroup if one waits."""
        if member.joining is not None:
            self.answer(member.joining, response)
            group.set_joining(member, None)

    def answer_sync(self, member: Member, response: SyncGroupResponse) -> bool:
        """Answer the member's SyncGroup if one waits; return True if so."""
        if member.syncing is None:
            return False
        self.answer(member.syncing, response)
        member.syncing = None
        return True

    def wait_for_join(self, group: Group, member: Member, waiter: Waiter) -> None:
        """Let the member's JoinGroup wait. An earlier one that still waits was abandoned by its client, and
        is answered.
        """
        self.answer_join(
            group, member, refused_join(ErrorCode.REBALANCE_IN_PROGRESS, member_id=member.member_id)
        )
        group.set_joining(member, waiter)

    def wait_for_sync(self, member: Member, waiter: Waiter) -> None:
        """Let the member's SyncGroup wait. An earlier one that still waits is answered."""
        self.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        member.syncing = waiter

    # Sessions

    def renew_session(self, group: Group, member: Member, now_ms: int) -> None:
        """Restart the member's session: it is alive."""
        self._expect_within(group, member.member_id, member.session_timeout_ms, now_ms)

    def expect_new_member(self, group: Group, member: Member, now_ms: int) -> None:
        """Let a new member wait in JoinGroup for a limited time: clients that time out there join again as
        new members.
        """
        self._expect_within(group, member.member_id, self.settings.new_member_join_timeout_ms, now_ms)

    def expect_pending(self, group: Group, member_id: str, session_timeout_ms: int, now_ms: int) -> None:
        """Require a newly assigned member id to be used within the session timeout."""
        self._expect_within(group, member_id, session_timeout_ms, now_ms)

    def forget(self, group: Group, member_id: str) -> None:
        """Remove a member, or a pending member id, from the group, with its session."""
        self.deadlines.cancel(DeadlineKey("heartbeat", group.group_id, member_id))
        member = group.members.get(member_id)
        if member is not None:
            # A new member's JoinGroup may still be waiting: its client, if it still exists, joins again.
            self.answer_join(group, member, refused_join(ErrorCode.UNKNOWN_MEMBER_ID))
            self.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member_id)

    def fence(self, group: Group, member: Member) -> None:
        """Fence a static member's old id: requests that wait under it are of an older process (KIP-345)."""
        self.deadlines.cancel(DeadlineKey("heartbeat", group.group_id, member.member_id))
        self.answer_join(group, member, refused_join(ErrorCode.FENCED_INSTANCE_ID, member.member_id))
        self.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))

    def _expect_within(self, group: Group, member_id: str, timeout_ms: int, now_ms: int) -> None:
        self.deadlines.set(DeadlineKey("heartbeat", group.group_id, member_id), now_ms + timeout_ms)

    # Rebalances

    def rebalance_or_complete(self, group: Group, reason: str, now_ms: int) -> None:
        """Start a rebalance after a change of members or metadata, or complete the current one if all have
        joined.
        """
        if group.can_rebalance:
            self.prepare(group, reason, now_ms)
        else:
            self.maybe_complete(group, now_ms)

    def prepare(self, group: Group, reason: str, now_ms: int) -> None:
        """Start a rebalance: all members have to join again, within the longest rebalance timeout."""
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.end_syncs(group, ErrorCode.REBALANCE_IN_PROGRESS, now_ms)
        self._stop_waiting_for_syncs(group)
        initial = group.state is GroupState.EMPTY
        group.become(GroupState.PREPARING_REBALANCE, now_ms)
        log.info(
            "group %s, generation %d: rebalancing, %s",
            group.group_id,
            group.generation,
            reason,
            extra=group.log_fields,
        )
        if initial:
            delay_ms = self.settings.group_initial_rebalance_delay_ms
            left_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
            group.new_member_added = False
            self._wait_for_first_members(group, delay_ms, left_ms, now_ms)
        elif group.all_joined:
            self.complete(group, now_ms)
        else:
            self._wait_for_joins(group, now_ms)

    def maybe_complete(self, group: Group, now_ms: int) -> None:
        """Complete the join phase if all members have joined; the first generation still waits for its
        delay.
        """
        preparing = group.state is GroupState.PREPARING_REBALANCE
        if preparing and group.previous_state is not GroupState.EMPTY and group.all_joined:
            self.complete(group, now_ms)

    def complete(self, group: Group, now_ms: int) -> None:
        """End the join phase: remove members that did not join, except static ones, and start the next
        generation.
        """
        self.deadlines.cancel(DeadlineKey("join", group.group_id))
        for member in list(group.members.values()):
            if member.joining is None and not member.is_static:
                self.forget(group, member.member_id)
        if group.members and not group.elect_joined_leader():
            # Only absent static members are left: they stay members until their sessions end.
            self._wait_for_joins(group, now_ms)
            return
        group.begin_generation(now_ms)
        if group.state is GroupState.EMPTY:
            self._store_empty(group, now_ms)
            return
        log.info(
            "group %s, generation %d: %d members",
            group.group_id,
            group.generation,
            len(group.members),
            extra=group.log_fields,
        )
        for member in group.members.values():
            members = group.member_list() if member.member_id == group.leader else []
            self.answer_join(group, member, joined(group, member.member_id, members=members))
            self.renew_session(group, member, now_ms)
            member.is_new = False
            group.pending_syncs.add(member.member_id)
        self.deadlines.set(DeadlineKey("sync", group.group_id), now_ms + group.rebalance_timeout_ms)

    def end_syncs(self, group: Group, error: ErrorCode, now_ms: int) -> None:
        """Answer waiting SyncGroups with an error: there will be no assignment in this generation."""
        for member in group.members.values():
            member.assignment = b""
            if self.answer_sync(member, SyncGroupResponse(error_code=error)):
                # Its session may have timed out while it waited, which was ignored.
                self.renew_session(group, member, now_ms)

    def synced(self, group: Group, member_id: str) -> None:
        """Record that the member has requested its assignment."""
        group.pending_syncs.discard(member_id)
        if not group.pending_syncs:
            self.deadlines.cancel(DeadlineKey("sync", group.group_id))

    # Deadlines

    def deadline_passed(self, key: DeadlineKey, now_ms: int) -> None:
        """Handle a deadline that has passed: the expected request has not arrived."""
        group = self.store.groups.get(key.group_id)
        if group is None:
            return
        if key.kind == "heartbeat":
            self._session_ended(group, key.member_id, now_ms)
        elif key.kind == "sync":
            self._syncs_missing(group, now_ms)
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._joins_ended(group, now_ms)

    def _session_ended(self, group: Group, member_id: str, now_ms: int) -> None:
        member = group.members.get(member_id)
        if member is not None and member.excused_from_heartbeat:
            return
        if member is None and member_id not in group.pending_joins:
            return
        log.info(
            "group %s: member %s has not been heard from, removing it",
            group.group_id,
            member_id,
            extra=group.log_fields,
        )
        self.forget(group, member_id)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            if member is not None:
                self.prepare(group, f"member {member_id} failed", now_ms)
        elif group.state is GroupState.PREPARING_REBALANCE and group.all_joined:
            self._complete_early(group, now_ms)

    def _complete_early(self, group: Group, now_ms: int) -> None:
        # During the initial delay the deadline stays, unless no member is left.
        if group.previous_state is not GroupState.EMPTY or not group.members:
            self.complete(group, now_ms)

    def _syncs_missing(self, group: Group, now_ms: int) -> None:
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE) or not group.pending_syncs:
            return
        missing = sorted(group.pending_syncs)
        for member_id in missing:
            self.forget(group, member_id)
        self.prepare(group, f"no SyncGroup from {', '.join(missing)}", now_ms)

    def _joins_ended(self, group: Group, now_ms: int) -> None:
        delay_ms, left_ms = group.initial_delay_ms, group.initial_delay_left_ms
        if group.previous_state is GroupState.EMPTY and group.new_member_added and left_ms:
            group.new_member_added = False
            next_ms = min(self.settings.group_initial_rebalance_delay_ms, left_ms)
            self._wait_for_first_members(group, next_ms, max(left_ms - delay_ms, 0), now_ms)
        else:
            self.complete(group, now_ms)

    def _wait_for_first_members(self, group: Group, delay_ms: int, left_ms: int, now_ms: int) -> None:
        group.initial_delay_ms, group.initial_delay_left_ms = delay_ms, left_ms
        self.deadlines.set(DeadlineKey("join", group.group_id), now_ms + delay_ms)

    def _wait_for_joins(self, group: Group, now_ms: int) -> None:
        timeout_ms = max(group.rebalance_timeout_ms, JOIN_WAIT_MS_MIN)
        self.deadlines.set(DeadlineKey("join", group.group_id), now_ms + timeout_ms)

    def _stop_waiting_for_syncs(self, group: Group) -> None:
        group.pending_syncs.clear()
        self.deadlines.cancel(DeadlineKey("sync", group.group_id))

    def _store_empty(self, group: Group, now_ms: int) -> None:
        log.info("group %s, generation %d: empty", group.group_id, group.generation, extra=group.log_fields)
        try:
            self.store.write([group.to_record({})], now_ms)
        except KafkaError as error:
            # Harmless: after a restart the last stored generation would be taken for alive until its
            # sessions end.
            log.warning(
                "group %s: cannot store that it is empty: %s", group.group_id, error, extra=group.log_fields
            )


def joined(
    group: Group,
    member_id: str,
    *,
    members: list[JoinGroupResponseMember] | None = None,
    leader: str | None = None,
    skip_assignment: bool = False,
) -> JoinGroupResponse:
    """Return the response to a member of the current generation; `members` only for the one that assigns."""
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=leader or group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member_id,
        members=members or [],
    )


def refused_join(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
    """Return the response to a JoinGroup that was refused, or whose rebalance was given up."""
    return JoinGroupResponse(error_code=error, member_id=member_id)


def response_code(error: KafkaError) -> ErrorCode:
    """Return the error for members after a failed append: retry, find the coordinator again, or fail."""
    return _APPEND_ERRORS.get(error.code, error.code)


_APPEND_ERRORS = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.MESSAGE_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.RECORD_LIST_TOO_LARGE: ErrorCode.UNKNOWN_SERVER_ERROR,
    ErrorCode.INVALID_FETCH_SIZE: ErrorCode.UNKNOWN_SERVER_ERROR,
}
