"""AlterPartition: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NO_UUID, Int8, Int16, Int32, Int64, Message, Uuid, V


class BrokerState(Message):
    """Part of AlterPartitionRequest."""

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1


class AlterPartitionRequestPartition(Message):
    """Part of AlterPartitionRequest."""

    partition_index: Int32 = 0
    leader_epoch: Int32 = 0
    new_isr: Annotated[list[Int32], V(0, 2)] = []
    new_isr_with_epochs: Annotated[list[BrokerState], V(3)] = []
    leader_recovery_state: Annotated[Int8, V(1)] = 0
    partition_epoch: Int32 = 0


class AlterPartitionRequestTopic(Message):
    """Part of AlterPartitionRequest."""

    topic_id: Annotated[Uuid, V(2)] = NO_UUID
    partitions: list[AlterPartitionRequestPartition] = []


class AlterPartitionRequest(Message):
    """AlterPartition request, versions 2 to 3."""

    API_KEY: ClassVar[int] = 56
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE: ClassVar[int] = 0

    broker_id: Int32 = 0
    broker_epoch: Int64 = -1
    topics: list[AlterPartitionRequestTopic] = []


class AlterPartitionResponsePartition(Message):
    """Part of AlterPartitionResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0
    leader_id: Int32 = 0
    leader_epoch: Int32 = 0
    isr: list[Int32] = []
    leader_recovery_state: Annotated[Int8, V(1)] = 0
    partition_epoch: Int32 = 0


class AlterPartitionResponseTopic(Message):
    """Part of AlterPartitionResponse."""

    topic_id: Annotated[Uuid, V(2)] = NO_UUID
    partitions: list[AlterPartitionResponsePartition] = []


class AlterPartitionResponse(Message):
    """AlterPartition response, versions 2 to 3."""

    API_KEY: ClassVar[int] = 56
    VERSIONS: ClassVar[tuple[int, int]] = (2, 3)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    topics: list[AlterPartitionResponseTopic] = []
