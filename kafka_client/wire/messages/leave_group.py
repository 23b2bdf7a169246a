"""LeaveGroup: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String, V


class MemberIdentity(Message):
    """Part of LeaveGroupRequest."""

    member_id: String = ""
    group_instance_id: String | None = None
    reason: Annotated[String | None, V(5)] = None


class LeaveGroupRequest(Message):
    """LeaveGroup request, versions 0 to 5."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    group_id: String = ""
    members: Annotated[list[MemberIdentity], V(3)] = []
    member_id: Annotated[String, V(0, 2)] = ""


class MemberResponse(Message):
    """Part of LeaveGroupResponse."""

    member_id: String = ""
    group_instance_id: String | None = None
    error_code: Int16 = 0


class LeaveGroupResponse(Message):
    """LeaveGroup response, versions 0 to 5."""

    API_KEY: ClassVar[int] = 13
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: Annotated[Int32, V(1)] = 0
    error_code: Int16 = 0
    members: Annotated[list[MemberResponse], V(3)] = []
