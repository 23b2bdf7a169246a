"""InitProducerId: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Int64, Message, String, V


class InitProducerIdRequest(Message):
    """InitProducerId request, versions 0 to 6."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 2

    transactional_id: String | None = None
    transaction_timeout_ms: Int32 = 0
    producer_id: Annotated[Int64, V(3)] = -1
    producer_epoch: Annotated[Int16, V(3)] = -1
    enable2_pc: Annotated[Boolean, V(6)] = False
    keep_prepared_txn: Annotated[Boolean, V(6)] = False


class InitProducerIdResponse(Message):
    """InitProducerId response, versions 0 to 6."""

    API_KEY: ClassVar[int] = 22
    VERSIONS: ClassVar[tuple[int, int]] = (0, 6)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    producer_id: Int64 = -1
    producer_epoch: Int16 = 0
    ongoing_txn_producer_id: Annotated[Int64, V(6)] = -1
    ongoing_txn_producer_epoch: Annotated[Int16, V(6)] = -1
