"""ApiVersions: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Int64, Message, String, V


class ApiVersionsRequest(Message):
    """ApiVersions request, versions 0 to 4."""

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 3

    client_software_name: Annotated[String, V(3)] = ""
    client_software_version: Annotated[String, V(3)] = ""


class ApiVersion(Message):
    """Part of ApiVersionsResponse."""

    api_key: Int16 = 0
    min_version: Int16 = 0
    max_version: Int16 = 0


class FinalizedFeatureKey(Message):
    """Part of ApiVersionsResponse."""

    name: String = ""
    max_version_level: Int16 = 0
    min_version_level: Int16 = 0


class SupportedFeatureKey(Message):
    """Part of ApiVersionsResponse."""

    name: String = ""
    min_version: Int16 = 0
    max_version: Int16 = 0


class ApiVersionsResponse(Message):
    """ApiVersions response, versions 0 to 4."""

    API_KEY: ClassVar[int] = 18
    VERSIONS: ClassVar[tuple[int, int]] = (0, 4)
    FLEXIBLE: ClassVar[int] = 3

    error_code: Int16 = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[Int32, V(1)] = 0
    supported_features: Annotated[list[SupportedFeatureKey], V(3, tag=0)] = []
    finalized_features_epoch: Annotated[Int64, V(3, tag=1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], V(3, tag=2)] = []
    zk_migration_ready: Annotated[Boolean, V(3, tag=3)] = False
