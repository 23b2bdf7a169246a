"""AlterClientQuotas: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Float64, Int16, Int32, Message, String


class EntityData(Message):
    """Part of AlterClientQuotasRequest and of its response."""

    entity_type: String = ""
    entity_name: String | None = None


class OpData(Message):
    """Part of AlterClientQuotasRequest."""

    key: String = ""
    value: Float64 = 0.0
    remove: Boolean = False


class EntryData(Message):
    """Part of AlterClientQuotasRequest."""

    entity: list[EntityData] = []
    ops: list[OpData] = []


class AlterClientQuotasRequest(Message):
    """AlterClientQuotas request, versions 0 to 1."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    entries: list[EntryData] = []
    validate_only: Boolean = False


class AlteredEntryData(Message):
    """Part of AlterClientQuotasResponse."""

    error_code: Int16 = 0
    error_message: String | None = None
    entity: list[EntityData] = []


class AlterClientQuotasResponse(Message):
    """AlterClientQuotas response, versions 0 to 1."""

    API_KEY: ClassVar[int] = 49
    VERSIONS: ClassVar[tuple[int, int]] = (0, 1)
    FLEXIBLE: ClassVar[int] = 1

    throttle_time_ms: Int32 = 0
    entries: list[AlteredEntryData] = []
