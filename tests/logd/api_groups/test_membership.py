"""Membership and the administrators' APIs, in every version, over a raw connection."""

from __future__ import annotations

from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_client.wire.messages.describe_groups import DescribedGroup, DescribeGroupsRequest
from kafka_client.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_client.wire.messages.heartbeat import HeartbeatRequest
from kafka_client.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_client.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafka_client.wire.messages.list_groups import ListedGroup, ListGroupsRequest
from kafka_client.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

EMPTY_CONSUMER_ASSIGNMENT = bytes.fromhex("000000000000ffffffff")

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def join(client: RawClient, group: str, version: int = 9, **facts: Any) -> Any:
    """Send JoinGroup, twice where the first response only gives a member id."""
    request = JoinGroupRequest(
        group_id=group,
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type=facts.pop("protocol_type", "test"),
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"mine")],
        **facts,
    )
    response = client.request(request, version)
    if response.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        request.member_id = response.member_id
        response = client.request(request, version)
    return response


def sync(
    client: RawClient, group: str, joined: Any, version: int = 5, assignment: bytes | None = b"yours"
) -> Any:
    assignments = []
    if assignment is not None:
        assignments = [SyncGroupRequestAssignment(member_id=joined.member_id, assignment=assignment)]
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="test" if version >= 5 else None,
        protocol_name="range" if version >= 5 else None,
        assignments=assignments,
    )
    return client.request(request, version)


def heartbeat(client: RawClient, group: str, joined: Any, version: int = 4) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
    code: int = client.request(request, version).error_code
    return code


def leave(client: RawClient, group: str, member_id: str, version: int = 5) -> Any:
    request = LeaveGroupRequest(group_id=group)
    if version >= 3:
        request.members = [MemberIdentity(member_id=member_id)]
    else:
        request.member_id = member_id
    return client.request(request, version)


def describe(client: RawClient, group: str, version: int = 6) -> DescribedGroup:
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=version >= 3)
    described: DescribedGroup = client.request(request, version).groups[0]
    return described


def listed(client: RawClient, group: str, version: int = 5, **filters: list[str]) -> ListedGroup | None:
    """Return the group's row of ListGroups, or None. Waits until all coordinators have loaded their
    partitions.
    """
    while (answer := client.request(ListGroupsRequest(**filters), version)).error_code == LOADING:
        pass
    assert answer.error_code == 0
    return next((row for row in answer.groups if row.group_id == group), None)


@pytest.mark.parametrize("version", range(7))
def test_find_coordinator(logd: LogdProcess, client: RawClient, version: int) -> None:
    request = FindCoordinatorRequest(key="g", coordinator_keys=["g", "h"] if version >= 4 else [])
    response = client.request(request, version)
    for coordinator in response.coordinators if version >= 4 else [response]:
        assert (coordinator.error_code, coordinator.node_id, coordinator.host, coordinator.port) == (
            0,
            1,
            "127.0.0.1",
            logd.port,
        )
    if version >= 4:
        assert [coordinator.key for coordinator in response.coordinators] == ["g", "h"]


def test_find_coordinator_of_something_unheard_of(client: RawClient) -> None:
    coordinator = client.request(FindCoordinatorRequest(key_type=9, coordinator_keys=["k"]), 6).coordinators[
        0
    ]
    assert coordinator.error_code == ErrorCode.INVALID_REQUEST
    assert (coordinator.node_id, coordinator.port) == (-1, -1)


@pytest.mark.parametrize("version", range(10))
def test_join_sync_heartbeat_leave(client: RawClient, group: str, version: int) -> None:
    joined = join(client, group, version)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 1, joined.member_id)
    assert joined.protocol_name == "range"
    assert joined.protocol_type == ("test" if version >= 7 else None)
    assert [(member.member_id, member.metadata) for member in joined.members] == [(joined.member_id, b"mine")]
    assert joined.member_id.startswith("raw-")

    sync_version = min(version, 5)
    synced = sync(client, group, joined, sync_version)
    assert (synced.error_code, synced.assignment) == (0, b"yours")
    assert synced.protocol_name == ("range" if sync_version >= 5 else None)

    assert heartbeat(client, group, joined, min(version, 4)) == 0
    left = leave(client, group, joined.member_id, min(version, 5))
    assert left.error_code == 0
    assert heartbeat(client, group, joined, min(version, 4)) == ErrorCode.UNKNOWN_MEMBER_ID

    again = leave(client, group, joined.member_id, min(version, 5))
    code = again.members[0].error_code if version >= 3 else again.error_code
    assert code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", range(10))
def test_a_refused_join(client: RawClient, group: str, version: int) -> None:
    refused = join(client, group, version, member_id="nobody")
    assert refused.error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert refused.protocol_name == (None if version >= 7 else "")


def test_sync_5_requires_the_protocol(client: RawClient, group: str) -> None:
    joined = join(client, group)
    request = SyncGroupRequest(group_id=group, generation_id=joined.generation_id, member_id=joined.member_id)
    assert client.request(request, 5).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_consumers_get_a_valid_assignment_even_of_nothing(client: RawClient, group: str) -> None:
    joined = join(client, group, protocol_type="consumer")
    request = SyncGroupRequest(
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )
    assert client.request(request, 5).assignment == EMPTY_CONSUMER_ASSIGNMENT


@pytest.mark.parametrize("version", range(7))
def test_describe(client: RawClient, group: str, version: int) -> None:
    unknown = describe(client, group, version)
    assert unknown.group_state == "Dead"
    assert unknown.error_code == (ErrorCode.GROUP_ID_NOT_FOUND if version >= 6 else 0)

    joined = join(client, group)
    assert describe(client, group, version).group_state == "CompletingRebalance"
    sync(client, group, joined)
    description = describe(client, group, version)
    assert (description.group_state, description.protocol_type, description.protocol_data) == (
        "Stable",
        "test",
        "range",
    )
    member = description.members[0]
    assert (member.member_id, member.client_id, member.client_host) == (joined.member_id, "raw", "/127.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (b"mine", b"yours")
    if version >= 3:  # read, delete, describe, describe and alter configs, as Apache Kafka answers
        assert description.authorized_operations == 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11


@pytest.mark.parametrize("version", range(6))
def test_list(client: RawClient, group: str, version: int) -> None:
    sync(client, group, join(client, group))
    row = listed(client, group, version)
    assert row is not None
    assert row.protocol_type == "test"
    assert row.group_state == ("Stable" if version >= 4 else "")
    assert row.group_type == ("Classic" if version >= 5 else "")
    if version >= 4:
        assert listed(client, group, version, states_filter=["stable", "Dead"]) is not None
        assert listed(client, group, version, states_filter=["Empty"]) is None
    if version >= 5:
        assert listed(client, group, version, types_filter=["classic"]) is not None
        assert listed(client, group, version, types_filter=["consumer"]) is None


@pytest.mark.parametrize("version", range(3))
def test_delete(client: RawClient, group: str, version: int) -> None:
    def delete() -> int:
        code: int = client.request(DeleteGroupsRequest(groups_names=[group]), version).results[0].error_code
        return code

    assert delete() == ErrorCode.GROUP_ID_NOT_FOUND
    joined = join(client, group)
    assert delete() == ErrorCode.NON_EMPTY_GROUP
    leave(client, group, joined.member_id)
    assert listed(client, group) is not None
    assert delete() == 0
    assert listed(client, group) is None


def test_a_group_too_large_to_store_is_an_error(client: RawClient, group: str) -> None:
    joined = join(client, group)
    too_much = sync(client, group, joined, assignment=bytes(2_000_000))
    assert too_much.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert heartbeat(client, group, joined) == ErrorCode.REBALANCE_IN_PROGRESS
    again = join(client, group, member_id=joined.member_id)
    assert sync(client, group, again).assignment == b"yours"


def test_a_client_that_hangs_up_while_it_waits_disturbs_nobody(
    logd: LogdProcess, client: RawClient, group: str
) -> None:
    first = join(client, group, version=3)
    sync(client, group, first)
    with RawClient(logd.port) as other:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=30_000,
            protocol_type="test",
            protocols=[JoinGroupRequestProtocol(name="range")],
        )
        other.send(raw_frame(request, 3))
        while heartbeat(client, group, first) != ErrorCode.REBALANCE_IN_PROGRESS:
            pass
    again = join(client, group, version=3, member_id=first.member_id)
    assert (again.error_code, len(again.members)) == (0, 2)
    assert sync(client, group, again).error_code == 0


def raw_frame(request: JoinGroupRequest, version: int) -> bytes:
    from kafka_client.wire import encode_request

    return encode_request(request, version, 1, "raw")
