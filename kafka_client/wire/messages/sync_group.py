"""SyncGroup: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Bytes, Int16, Int32, Message, String, V


class SyncGroupRequestAssignment(Message):
    """Part of SyncGroupRequest."""

    member_id: String = ""
    assignment: Bytes = b""


class SyncGroupRequest(Message):
    """SyncGroup request, versions 0 to 5."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, V(3)] = None
    protocol_type: Annotated[String | None, V(5)] = None
    protocol_name: Annotated[String | None, V(5)] = None
    assignments: list[SyncGroupRequestAssignment] = []


class SyncGroupResponse(Message):
    """SyncGroup response, versions 0 to 5."""

    API_KEY: ClassVar[int] = 14
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: Annotated[Int32, V(1)] = 0
    error_code: Int16 = 0
    protocol_type: Annotated[String | None, V(5)] = None
    protocol_name: Annotated[String | None, V(5)] = None
    assignment: Bytes = b""
