"""UpdateFeatures: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int8, Int16, Int32, Message, String, V


class FeatureUpdateKey(Message):
    """Part of UpdateFeaturesRequest."""

    feature: String = ""
    max_version_level: Int16 = 0
    allow_downgrade: Annotated[Boolean, V(0, 0)] = False
    upgrade_type: Annotated[Int8, V(1)] = 1


class UpdateFeaturesRequest(Message):
    """UpdateFeatures request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    timeout_ms: Int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[Boolean, V(1)] = False


class UpdatableFeatureResult(Message):
    """Part of UpdateFeaturesResponse."""

    feature: String = ""
    error_code: Int16 = 0
    error_message: String | None = ""


class UpdateFeaturesResponse(Message):
    """UpdateFeatures response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 57
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = ""
    results: Annotated[list[UpdatableFeatureResult], V(0, 1)] = []
