"""JoinGroup: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Bytes, Int16, Int32, Message, String, V


class JoinGroupRequestProtocol(Message):
    """Part of JoinGroupRequest."""

    name: String = ""
    metadata: Bytes = b""


class JoinGroupRequest(Message):
    """JoinGroup request, versions 0 to 9."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE: ClassVar[int] = 6

    group_id: String = ""
    session_timeout_ms: Int32 = 0
    rebalance_timeout_ms: Annotated[Int32, V(1)] = -1
    member_id: String = ""
    group_instance_id: Annotated[String | None, V(5)] = None
    protocol_type: String = ""
    protocols: list[JoinGroupRequestProtocol] = []
    reason: Annotated[String | None, V(8)] = None


class JoinGroupResponseMember(Message):
    """Part of JoinGroupResponse."""

    member_id: String = ""
    group_instance_id: Annotated[String | None, V(5)] = None
    metadata: Bytes = b""


class JoinGroupResponse(Message):
    """JoinGroup response, versions 0 to 9."""

    API_KEY: ClassVar[int] = 11
    VERSIONS: ClassVar[tuple[int, int]] = (0, 9)
    FLEXIBLE: ClassVar[int] = 6

    throttle_time_ms: Annotated[Int32, V(2)] = 0
    error_code: Int16 = 0
    generation_id: Int32 = -1
    protocol_type: Annotated[String | None, V(7)] = None
    protocol_name: Annotated[String | None, V(nullable=7)] = None
    leader: String = ""
    skip_assignment: Annotated[Boolean, V(9)] = False
    member_id: String = ""
    members: list[JoinGroupResponseMember] = []
