"""DescribeConfigs: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int8, Int16, Int32, Message, String, V


class DescribeConfigsResource(Message):
    """Part of DescribeConfigsRequest."""

    resource_type: Int8 = 0
    resource_name: String = ""
    configuration_keys: list[String] | None = []


class DescribeConfigsRequest(Message):
    """DescribeConfigs request, versions 1 to 4."""

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE: ClassVar[int] = 4

    resources: list[DescribeConfigsResource] = []
    include_synonyms: Boolean = False
    include_documentation: Annotated[Boolean, V(3)] = False


class DescribeConfigsSynonym(Message):
    """Part of DescribeConfigsResponse."""

    name: String = ""
    value: String | None = None
    source: Int8 = 0


class DescribeConfigsResourceResult(Message):
    """Part of DescribeConfigsResponse."""

    name: String = ""
    value: String | None = None
    read_only: Boolean = False
    config_source: Int8 = -1
    is_sensitive: Boolean = False
    synonyms: list[DescribeConfigsSynonym] = []
    config_type: Annotated[Int8, V(3)] = 0
    documentation: Annotated[String | None, V(3)] = None


class DescribeConfigsResult(Message):
    """Part of DescribeConfigsResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    resource_type: Int8 = 0
    resource_name: String = ""
    configs: list[DescribeConfigsResourceResult] = []


class DescribeConfigsResponse(Message):
    """DescribeConfigs response, versions 1 to 4."""

    API_KEY: ClassVar[int] = 32
    VERSIONS: ClassVar[tuple[int, int]] = (1, 4)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: Int32 = 0
    results: list[DescribeConfigsResult] = []
