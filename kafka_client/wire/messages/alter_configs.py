"""AlterConfigs: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Int8, Int16, Int32, Message, String


class AlterableConfig(Message):
    """Part of AlterConfigsRequest."""

    name: String = ""
    value: String | None = None


class AlterConfigsResource(Message):
    """Part of AlterConfigsRequest."""

    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[AlterableConfig] = []


class AlterConfigsRequest(Message):
    """AlterConfigs request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    resources: list[AlterConfigsResource] = []
    validate_only: Boolean = False


class AlterConfigsResourceResponse(Message):
    """Part of AlterConfigsResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""


class AlterConfigsResponse(Message):
    """AlterConfigs response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 33
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    responses: list[AlterConfigsResourceResponse] = []
