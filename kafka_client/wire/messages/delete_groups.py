"""DeleteGroups: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String


class DeleteGroupsRequest(Message):
    """DeleteGroups request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    groups_names: list[String] = []


class DeletableGroupResult(Message):
    """Part of DeleteGroupsResponse."""

    group_id: String = ""
    error_code: Int16 = 0


class DeleteGroupsResponse(Message):
    """DeleteGroups response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 42
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[DeletableGroupResult] = []
