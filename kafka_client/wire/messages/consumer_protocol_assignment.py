"""ConsumerProtocolAssignment: what a consumer tells its group, over all versions."""

from typing import ClassVar

from kafka_client.wire.message import NEVER, Bytes, Int32, Message, String


class TopicPartition(Message):
    """Part of ConsumerProtocolAssignment."""

    topic: String = ""
    partitions: list[Int32] = []


class ConsumerProtocolAssignment(Message):
    """ConsumerProtocolAssignment, versions 0 to 3."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = NEVER

    assigned_partitions: list[TopicPartition] = []
    user_data: Bytes | None = None
