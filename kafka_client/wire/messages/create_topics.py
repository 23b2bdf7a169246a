"""CreateTopics: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Boolean, Int8, Int16, Int32, Message, String, Uuid, V


class CreatableReplicaAssignment(Message):
    """Part of CreateTopicsRequest."""

    partition_index: Int32 = 0
    broker_ids: list[Int32] = []


class CreatableTopicConfig(Message):
    """Part of CreateTopicsRequest."""

    name: String = ""
    value: String | None = None


class CreatableTopic(Message):
    """Part of CreateTopicsRequest."""

    name: String = ""
    num_partitions: Int32 = 0
    replication_factor: Int16 = 0
    assignments: list[CreatableReplicaAssignment] = []
    configs: list[CreatableTopicConfig] = []


class CreateTopicsRequest(Message):
    """CreateTopics request, versions 2 to 7."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE: ClassVar[int] = 5

    topics: list[CreatableTopic] = []
    timeout_ms: Int32 = 60000
    validate_only: Boolean = False


class CreatableTopicConfigs(Message):
    """Part of CreateTopicsResponse."""

    name: String = ""
    value: String | None = None
    read_only: Boolean = False
    config_source: Int8 = -1
    is_sensitive: Boolean = False


class CreatableTopicResult(Message):
    """Part of CreateTopicsResponse."""

    name: String = ""
    topic_id: Annotated[Uuid, V(7)] = NO_UUID
    error_code: Int16 = 0
    error_message: String | None = None
    topic_config_error_code: Annotated[Int16, V(5, tag=0)] = 0
    num_partitions: Annotated[Int32, V(5)] = -1
    replication_factor: Annotated[Int16, V(5)] = -1
    configs: Annotated[list[CreatableTopicConfigs] | None, V(5)] = []


class CreateTopicsResponse(Message):
    """CreateTopics response, versions 2 to 7."""

    API_KEY: ClassVar[int] = 19
    VERSIONS: ClassVar[tuple[int, int]] = (2, 7)
    FLEXIBLE: ClassVar[int] = 5

    throttle_time_ms: Int32 = 0
    topics: list[CreatableTopicResult] = []
