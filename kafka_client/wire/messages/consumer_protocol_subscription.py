"""ConsumerProtocolSubscription: what a consumer tells its group, over all versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import NEVER, Bytes, Int32, Message, String, V


class TopicPartition(Message):
    """Part of ConsumerProtocolSubscription."""

    topic: String = ""
    partitions: list[Int32] = []


class ConsumerProtocolSubscription(Message):
    """ConsumerProtocolSubscription, versions 0 to 3."""

    VERSIONS: ClassVar[tuple[int, int]] = (0, 3)
    FLEXIBLE: ClassVar[int] = NEVER

    topics: list[String] = []
    user_data: Bytes | None = None
    owned_partitions: Annotated[list[TopicPartition], V(1)] = []
    generation_id: Annotated[Int32, V(2)] = -1
    rack_id: Annotated[String | None, V(3)] = None
