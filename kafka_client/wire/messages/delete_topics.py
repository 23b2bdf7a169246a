"""DeleteTopics: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Int16, Int32, Message, String, Uuid, V


class DeleteTopicState(Message):
    """Part of DeleteTopicsRequest."""

    name: String | None = None
    topic_id: Uuid = NO_UUID


class DeleteTopicsRequest(Message):
    """DeleteTopics request, versions 1 to 6."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE: ClassVar[int] = 4

    topics: Annotated[list[DeleteTopicState], V(6)] = []
    topic_names: Annotated[list[String], V(1, 5)] = []
    timeout_ms: Int32 = 0


class DeletableTopicResult(Message):
    """Part of DeleteTopicsResponse."""

    name: Annotated[String | None, V(nullable=6)] = None
    topic_id: Annotated[Uuid, V(6)] = NO_UUID
    error_code: Int16 = 0
    error_message: Annotated[String | None, V(5)] = None


class DeleteTopicsResponse(Message):
    """DeleteTopics response, versions 1 to 6."""

    API_KEY: ClassVar[int] = 20
    VERSIONS: ClassVar[tuple[int, int]] = (1, 6)
    FLEXIBLE: ClassVar[int] = 4

    throttle_time_ms: Int32 = 0
    responses: list[DeletableTopicResult] = []
