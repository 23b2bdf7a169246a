"""DescribeGroups: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Bytes, Int16, Int32, Message, String, V


class DescribeGroupsRequest(Message):
    """DescribeGroups request, versions 0 to 6."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 5

    groups: list[String] = []
    include_authorized_operations: Annotated[Boolean, V(3)] = False


class DescribedGroupMember(Message):
    """Part of DescribeGroupsResponse."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, V(4)] = None
    client_id: String = ""
    client_host: String = ""
    member_metadata: Bytes = b""
    member_assignment: Bytes = b""


class DescribedGroup(Message):
    """Part of DescribeGroupsResponse."""

    error_code: Int16 = 0
    error_message: Annotated[String | None, V(6)] = None
    group_id: String = ""
    group_state: String = ""
    protocol_type: String = ""
    protocol_data: String = ""
    members: list[DescribedGroupMember] = []
    authorized_operations: Annotated[Int32, V(3)] = -2147483648


class DescribeGroupsResponse(Message):
    """DescribeGroups response, versions 0 to 6."""

    API_KEY: ClassVar[int] = 15
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 5

    throttle_time_ms: Annotated[Int32, V(1)] = 0
    groups: list[DescribedGroup] = []
