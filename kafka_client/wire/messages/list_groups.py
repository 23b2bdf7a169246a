"""ListGroups: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String, V


class ListGroupsRequest(Message):
    """ListGroups request, versions 0 to 5."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    states_filter: Annotated[list[String], V(4)] = []
    types_filter: Annotated[list[String], V(5)] = []


class ListedGroup(Message):
    """Part of ListGroupsResponse."""

    group_id: String = ""
    protocol_type: String = ""
    group_state: Annotated[String, V(4)] = ""
    group_type: Annotated[String, V(5)] = ""


class ListGroupsResponse(Message):
    """ListGroups response, versions 0 to 5."""

    API_KEY: ClassVar[int] = 16
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: Annotated[Int32, V(1)] = 0
    error_code: Int16 = 0
    groups: list[ListedGroup] = []
