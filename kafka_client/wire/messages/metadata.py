"""Metadata: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Boolean, Int16, Int32, Message, String, Uuid, V


class MetadataRequestTopic(Message):
    """Part of MetadataRequest."""

    topic_id: Annotated[Uuid, V(10)] = NO_UUID
    name: Annotated[String | None, V(nullable=10)] = None


class MetadataRequest(Message):
    """Metadata request, versions 0 to 13."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE: ClassVar[int] = 9

    topics: Annotated[list[MetadataRequestTopic] | None, V(nullable=1)] = []
    allow_auto_topic_creation: Annotated[Boolean, V(4)] = True
    include_cluster_authorized_operations: Annotated[Boolean, V(8, 10)] = False
    include_topic_authorized_operations: Annotated[Boolean, V(8)] = False


class MetadataResponseBroker(Message):
    """Part of MetadataResponse."""

    node_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: Annotated[String | None, V(1)] = None


class MetadataResponsePartition(Message):
    """Part of MetadataResponse."""

    error_code: Int16 = 0
    partition_index: Int32 = 0
    leader_id: Int32 = 0
    leader_epoch: Annotated[Int32, V(7)] = -1
    replica_nodes: list[Int32] = []
    isr_nodes: list[Int32] = []
    offline_replicas: Annotated[list[Int32], V(5)] = []


class MetadataResponseTopic(Message):
    """Part of MetadataResponse."""

    error_code: Int16 = 0
    name: Annotated[String | None, V(nullable=12)] = None
    topic_id: Annotated[Uuid, V(10)] = NO_UUID
    is_internal: Annotated[Boolean, V(1)] = False
    partitions: list[MetadataResponsePartition] = []
    topic_authorized_operations: Annotated[Int32, V(8)] = -2147483648


class MetadataResponse(Message):
    """Metadata response, versions 0 to 13."""

    API_KEY: ClassVar[int] = 3
    VERSIONS: ClassVar[tuple[int, int]] = (0, 13)
    FLEXIBLE: ClassVar[int] = 9

    throttle_time_ms: Annotated[Int32, V(3)] = 0
    brokers: list[MetadataResponseBroker] = []
    cluster_id: Annotated[String | None, V(2)] = None
    controller_id: Annotated[Int32, V(1)] = -1
    topics: list[MetadataResponseTopic] = []
    error_code: Annotated[Int16, V(13)] = 0
    cluster_authorized_operations: Annotated[Int32, V(8, 10)] = -2147483648
