"""IncrementalAlterConfigs: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Int8, Int16, Int32, Message, String


class AlterableConfig(Message):
    """Part of IncrementalAlterConfigsRequest."""

    name: String = ""
    config_operation: Int8 = 0
    value: String | None = None


class AlterConfigsResource(Message):
    """Part of IncrementalAlterConfigsRequest."""

    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = []


class IncrementalAlterConfigsRequest(Message):
    """IncrementalAlterConfigs request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    resources: list[AlterConfigsResource] = []
    validate_only: Boolean = False


class AlterConfigsResourceResponse(Message):
    """Part of IncrementalAlterConfigsResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""


class IncrementalAlterConfigsResponse(Message):
    """IncrementalAlterConfigs response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 44
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
