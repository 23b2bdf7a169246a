"""FindCoordinator: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Message, String, V


class FindCoordinatorRequest(Message):
    """FindCoordinator request, versions 0 to 6."""

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 3

    key: Annotated[String, V(0, 3)] = ""
    key_type: Annotated[Int8, V(1)] = 0
    coordinator_keys: Annotated[list[String], V(4)] = []


class Coordinator(Message):
    """Part of FindCoordinatorResponse."""

    key: String = ""
    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None


class FindCoordinatorResponse(Message):
    """FindCoordinator response, versions 0 to 6."""

    API_KEY: ClassVar[int] = 10
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: Annotated[Int32, V(1)] = 0
    coordinators: Annotated[list[Coordinator], V(4)] = []
    error_code: Annotated[Int16, V(0, 3)] = 0
    error_message: Annotated[String | None, V(1, 3)] = None
    node_id: Annotated[Int32, V(0, 3)] = 0
    host: Annotated[String, V(0, 3)] = ""
    port: Annotated[Int32, V(0, 3)] = 0
