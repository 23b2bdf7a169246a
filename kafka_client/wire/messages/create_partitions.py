"""CreatePartitions: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Message, String


class CreatePartitionsAssignment(Message):
    """Part of CreatePartitionsRequest."""

    broker_ids: list[Int32] = []


class CreatePartitionsTopic(Message):
    """Part of CreatePartitionsRequest."""

    name: String = ""
    count: Int32 = 0
    assignments: list[CreatePartitionsAssignment] | None = []


class CreatePartitionsRequest(Message):
    """CreatePartitions request, versions 0 to 3."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    topics: list[CreatePartitionsTopic] = []
    timeout_ms: Int32 = 0
    validate_only: Boolean = False


class CreatePartitionsTopicResult(Message):
    """Part of CreatePartitionsResponse."""

    name: String = ""
    error_code: Int16 = 0
    error_message: String | None = None


class CreatePartitionsResponse(Message):
    """CreatePartitions response, versions 0 to 3."""

    API_KEY: ClassVar[int] = 37
    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[CreatePartitionsTopicResult] = []
