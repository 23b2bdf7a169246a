"""DeleteAcls: the request and the response."""

from typing import ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Message, String


class DeleteAclsFilter(Message):
    """Part of DeleteAclsRequest."""

    resource_type_filter: Int8 = 0
    resource_name_filter: String | None = None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None = None
    host_filter: String | None = None
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsRequest(Message):
    """DeleteAcls request, versions 1 to 3."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    filters: list[DeleteAclsFilter] = []


class DeleteAclsMatchingAcl(Message):
    """Part of DeleteAclsResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""
    pattern_type: Int8 = 3
    principal: String = ""
    host: String = ""
    operation: Int8 = 0
    permission_type: Int8 = 0


class DeleteAclsFilterResult(Message):
    """Part of DeleteAclsResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    matching_acls: list[DeleteAclsMatchingAcl] = []


class DeleteAclsResponse(Message):
    """DeleteAcls response, versions 1 to 3."""

    API_KEY: ClassVar[int] = 31
    VERSIONS: ClassVar[tuple[int, int]] = (1, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    filter_results: list[DeleteAclsFilterResult] = []
