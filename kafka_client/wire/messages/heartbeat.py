"""Heartbeat: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String, V


class HeartbeatRequest(Message):
    """Heartbeat request, versions 0 to 4."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    group_id: String = ""
    generation_id: Int32 = 0
    member_id: String = ""
    group_instance_id: Annotated[String | None, V(3)] = None


class HeartbeatResponse(Message):
    """Heartbeat response, versions 0 to 4."""

    API_KEY: ClassVar[int] = 12
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: Annotated[Int32, V(1)] = 0
    error_code: Int16 = 0
