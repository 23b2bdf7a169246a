"""Admin calls about consumer groups and their offsets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_client.admin.base import AdminBase
from kafka_client.admin.consumer_groups import as_classic, ask_consumer_group
from kafka_client.cluster.metadata import OffsetAndMetadata
from kafka_client.errors import ErrorCode, error_for
from kafka_client.fetcher.offsets import by_topic
from kafka_client.group.coordinator import ask_coordinator, commit_offsets, coordinator_error, fetch_offsets
from kafka_client.topic_partition import TopicPartition
from kafka_client.wire.messages.consumer_group_describe import DescribedGroup
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafka_client.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from kafka_client.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafka_client.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)

DEAD = "Dead"
"""The state of a group that is not there."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as ListGroups names it."""

    group_id: str
    protocol_type: str
    state: str = ""
    type: str = ""
    """ "classic", "consumer", "share", ... (KIP-848); empty where the broker does not say."""


@dataclass(frozen=True, slots=True)
class GroupMemberDescription:
    """A member of a described group, with its metadata and assignment as bytes."""

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None
    metadata: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """A described group; state is Kafka's ("Stable", "Empty", "Dead", ...)."""

    group_id: str
    state: str
    protocol_type: str
    protocol: str
    members: Sequence[GroupMemberDescription] = ()


class GroupAdmin(AdminBase):
    """Groups and their offsets; see `admin.Admin`."""

    async def list_groups(self) -> list[ListedGroup]:
        """Return the groups of every broker."""

        async def ask() -> list[ListedGroup]:
            groups: dict[str, ListedGroup] = {}
            for node in (await self._client.metadata((), refresh=True)).brokers:
                response: ListGroupsResponse = await self._client.request(ListGroupsRequest(), node=node)
                if response.error_code:
                    raise error_for(response.error_code, f"groups of broker {node}")
                for g in response.groups:
                    groups[g.group_id] = ListedGroup(g.group_id, g.protocol_type, g.group_state, g.group_type)
            return list(groups.values())

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def describe_groups(self, group_ids: Iterable[str]) -> dict[str, GroupDescription]:
        """Return state and members of groups; an unknown group is "Dead" and has no members.

        Members of groups of KIP-848's protocol have no metadata.
        """
        return {group_id: await self._describe(group_id) for group_id in group_ids}

    async def _describe(self, group_id: str) -> GroupDescription:
        async def ask() -> GroupDescription:
            request = DescribeGroupsRequest(groups=[group_id])
            response: DescribeGroupsResponse = await ask_coordinator(self._client, group_id, request)
            group = response.groups[0]
            if group.error_code == ErrorCode.GROUP_ID_NOT_FOUND or group.group_state == DEAD:
                described = await ask_consumer_group(self._client, group_id)
                if described is None:
                    return GroupDescription(group_id, DEAD, "", "")
                return _consumer_group(described)
            if group.error_code:
                raise coordinator_error(self._client, group_id, group.error_code)
            members = [
                GroupMemberDescription(
                    m.member_id,
                    m.client_id,
                    m.client_host,
                    m.group_instance_id,
                    m.member_metadata,
                    m.member_assignment,
                )
                for m in group.members
            ]
            return GroupDescription(
                group_id, group.group_state, group.protocol_type, group.protocol_data, members
            )

        return await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def remove_members(self, group_id: str, reason: str) -> None:
        """Remove all members of a group (KIP-345); members that still run join again."""
        members = (await self._describe(group_id)).members
        if not members:
            return
        request = LeaveGroupRequest(
            group_id=group_id,
            members=[
                MemberIdentity(
                    member_id="" if each.group_instance_id else each.member_id,
                    group_instance_id=each.group_instance_id,
                    reason=reason,
                )
                for each in members
            ],
        )
        response: LeaveGroupResponse = await ask_coordinator(self._client, group_id, request)
        codes = [response.error_code, *(each.error_code for each in response.members)]
        if failed := [code for code in codes if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID)]:
            raise coordinator_error(self._client, group_id, failed[0], "removing its members")

    async def delete_groups(self, group_ids: Iterable[str], *, missing_ok: bool = False) -> None:
        """Delete groups without members, with their offsets."""
        for group_id in group_ids:
            await self._delete(group_id, missing_ok)

    async def _delete(self, group_id: str, missing_ok: bool) -> None:
        async def ask() -> None:
            request = DeleteGroupsRequest(groups_names=[group_id])
            response: DeleteGroupsResponse = await ask_coordinator(self._client, group_id, request)
            code = response.results[0].error_code
            if code and not (missing_ok and code == ErrorCode.GROUP_ID_NOT_FOUND):
                raise coordinator_error(self._client, group_id, code, "deleting it")

        await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def delete_offsets(self, group_id: str, tps: Iterable[TopicPartition]) -> None:
        """Delete a group's committed offsets of partitions that no member subscribes to."""
        topics = [
            OffsetDeleteRequestTopic(
                name=name, partitions=[OffsetDeleteRequestPartition(partition_index=p) for p in partitions]
            )
            for name, partitions in by_topic(tps).items()
        ]

        async def ask() -> None:
            request = OffsetDeleteRequest(group_id=group_id, topics=topics)
            response: OffsetDeleteResponse = await ask_coordinator(self._client, group_id, request)
            if response.error_code:
                raise coordinator_error(self._client, group_id, response.error_code)
            for topic in response.topics:
                for p in topic.partitions:
                    if p.error_code:
                        tp = TopicPartition(topic.name, p.partition_index)
                        raise coordinator_error(
                            self._client, group_id, p.error_code, f"deleting the offset of {tp}"
                        )

        await self._client.retrying(ask, timeout_ms=self._timeout_ms)

    async def list_group_offsets(
        self, group_id: str, tps: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return a group's committed offsets (None: all of them), without partitions that have none."""
        return await fetch_offsets(self._client, group_id, tps)

    async def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        """Set the committed offsets of a group without members."""
        await commit_offsets(self._client, group_id, offsets)


def _consumer_group(group: DescribedGroup) -> GroupDescription:
    members = [
        GroupMemberDescription(
            m.member_id, m.client_id, m.client_host, m.instance_id, b"", as_classic(m.assignment)
        )
        for m in group.members
    ]
    return GroupDescription(group.group_id, group.group_state, "consumer", group.assignor_name, members)
