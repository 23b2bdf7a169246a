"""DescribeClientQuotas: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Float64, Int8, Int16, Int32, Message, String


class ComponentData(Message):
    """Part of DescribeClientQuotasRequest."""

    entity_type: String = ""
    match_type: Int8 = 0
    match: String | None = None


class DescribeClientQuotasRequest(Message):
    """DescribeClientQuotas request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    components: list[ComponentData] = []
    strict: Boolean = False


class EntityData(Message):
    """Part of DescribeClientQuotasResponse."""

    entity_type: String = ""
    entity_name: String | None = None


class ValueData(Message):
    """Part of DescribeClientQuotasResponse."""

    key: String = ""
    value: Float64 = 0.0


class EntryData(Message):
    """Part of DescribeClientQuotasResponse."""

    entity: list[EntityData] = []
    values: list[ValueData] = []


class DescribeClientQuotasResponse(Message):
    """DescribeClientQuotas response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 48
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    entries: list[EntryData] | None = []
