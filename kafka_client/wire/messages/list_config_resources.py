"""ListConfigResources: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int8, Int16, Int32, Message, String, V


class ListConfigResourcesRequest(Message):
    """ListConfigResources request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    resource_types: Annotated[list[Int8], V(1)] = []


class ConfigResource(Message):
    """Part of ListConfigResourcesResponse."""

    resource_name: String = ""
    resource_type: Annotated[Int8, V(1)] = 16


class ListConfigResourcesResponse(Message):
    """ListConfigResources response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 74
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    config_resources: list[ConfigResource] = []
