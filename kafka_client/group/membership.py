"""The classic group protocol's requests for one member: join, sync, heartbeat, leave.

Sources: KIP-62, KIP-345, KIP-394. Each method is one exchange with the coordinator, and raises the error of
the response. `group` decides when to call them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafka_client.cluster.cluster import Client
from kafka_client.errors import ErrorCode
from kafka_client.group.coordinator import ask_coordinator, coordinator_error
from kafka_client.group.group_metrics import GroupMetrics
from kafka_client.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafka_client.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_client.wire.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)

NO_GENERATION = -1
_JOIN_SLACK_MS = 5_000
"""Extra time for the response to JoinGroup, which may come only when the rebalance timeout is over."""


@dataclass(frozen=True, slots=True)
class Joined:
    """The result of JoinGroup: generation, protocol and leader, and for the leader all members' metadata."""

    generation: int
    protocol: str
    leader_id: str
    members: Mapping[str, bytes]
    must_assign: bool


class Membership:
    """A member's id and generation in a group, and the requests that carry them.

    Joining has a connection of its own. The coordinator delays the response to JoinGroup until all members
    have joined, and heartbeats and commits must not wait behind it.
    """

    def __init__(
        self,
        client: Client,
        group_id: str,
        *,
        protocol_type: str,
        session_timeout_ms: int,
        rebalance_timeout_ms: int,
        group_instance_id: str | None,
    ) -> None:
        self.member_id = ""
        self.generation = NO_GENERATION
        self.metrics = GroupMetrics()
        self.lane = client.new_lane("group")
        self._join_lane = client.new_lane("join")
        self._client = client
        self._group_id = group_id
        self._protocol_type = protocol_type
        self._session_timeout_ms = session_timeout_ms
        self._rebalance_timeout_ms = rebalance_timeout_ms
        self._group_instance_id = group_instance_id
        self._join_timeout_ms = max(client.request_timeout_ms, rebalance_timeout_ms + _JOIN_SLACK_MS)

    def forget_generation(self) -> None:
        """Forget the generation, which has ended for this member."""
        self.generation = NO_GENERATION

    def forget_member(self) -> None:
        """Forget the member id and the generation, which the coordinator does not know any more."""
        self.generation, self.member_id = NO_GENERATION, ""

    async def join(self, protocols: Sequence[tuple[str, bytes]]) -> Joined:
        """Join the next generation; the coordinator answers when all members have joined.

        Raises RebalanceNeeded with MEMBER_ID_REQUIRED if the coordinator has only assigned a member id: call
        again.
        """
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=self._rebalance_timeout_ms,
            member_id=self.member_id,
            group_instance_id=self._group_instance_id,
            protocol_type=self._protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=data) for name, data in protocols],
        )
        with self.metrics.join.timed():
            response: JoinGroupResponse = await self._ask_to_join(request)
            if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
                self.member_id = response.member_id
            if response.error_code:
                raise coordinator_error(self._client, self._group_id, response.error_code, "joining")
        self.member_id = response.member_id
        leads = response.leader == response.member_id
        return Joined(
            response.generation_id,
            response.protocol_name or "",
            response.leader,
            {member.member_id: member.metadata for member in response.members},
            must_assign=leads and not response.skip_assignment,
        )

    async def sync(self, joined: Joined, assignments: Mapping[str, bytes]) -> bytes:
        """Begin the generation that was joined, and return this member's assignment.

        The leader sends the assignments of all members; the other members send none.
        """
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=joined.generation,
            member_id=self.member_id,
            group_instance_id=self._group_instance_id,
            protocol_type=self._protocol_type,
            protocol_name=joined.protocol,
            assignments=[
                SyncGroupRequestAssignment(member_id=member, assignment=data)
                for member, data in assignments.items()
            ],
        )
        with self.metrics.sync.timed():
            response: SyncGroupResponse = await self._ask_to_join(request)
            if response.error_code:
                raise coordinator_error(self._client, self._group_id, response.error_code, "syncing")
        self.generation = joined.generation
        return response.assignment

    async def _ask_to_join(self, request: JoinGroupRequest | SyncGroupRequest) -> Any:
        return await ask_coordinator(
            self._client, self._group_id, request, lane=self._join_lane, timeout_ms=self._join_timeout_ms
        )

    async def heartbeat(self) -> None:
        """Send a heartbeat. Raises RebalanceNeeded if the group is about to enter a new generation."""
        request = HeartbeatRequest(
            group_id=self._group_id,
            generation_id=self.generation,
            member_id=self.member_id,
            group_instance_id=self._group_instance_id,
        )
        self.metrics.beats()
        with self.metrics.heartbeat.timed():
            response: HeartbeatResponse = await ask_coordinator(
                self._client,
                self._group_id,
                request,
                lane=self.lane,
                timeout_ms=min(self._session_timeout_ms, self._client.request_timeout_ms),
            )
        if response.error_code:
            raise coordinator_error(self._client, self._group_id, response.error_code, "heartbeat")

    async def leave(self, reason: str = "the member is closing") -> None:
        """Leave the group, so that the other members need not wait for the session timeout."""
        request = LeaveGroupRequest(
            group_id=self._group_id,
            member_id=self.member_id,
            members=[
                MemberIdentity(
                    member_id=self.member_id, group_instance_id=self._group_instance_id, reason=reason
                )
            ],
        )
        await ask_coordinator(self._client, self._group_id, request, lane=self.lane)
        self.forget_member()

    async def close(self) -> None:
        """Close the connections; a pending join fails."""
        await self._client.close_lane(self._join_lane)
        await self._client.close_lane(self.lane)
