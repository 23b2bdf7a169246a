"""CreateAcls: the request and the response."""

from typing import ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Message, String


class AclCreation(Message):
    """Part of CreateAclsRequest."""

    resource_type: Int8 = 0
    resource_name: String = ""
    resource_pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class CreateAclsRequest(Message):
    """CreateAcls request, versions 1 to 3."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    creations: list[AclCreation] = []


class AclCreationResult(Message):
    """Part of CreateAclsResponse."""

    error_code: Int16 = 0
    error_message: String | None = None


class CreateAclsResponse(Message):
    """CreateAcls response, versions 1 to 3."""

    API_KEY: ClassVar[int] = 30
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[AclCreationResult] = []
