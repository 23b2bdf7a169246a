"""AddPartitionsToTxn: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Int64, Message, String, V


class AddPartitionsToTxnTopic(Message):
    """Part of AddPartitionsToTxnRequest."""

    name: String = ""
    partitions: list[Int32] = []


class AddPartitionsToTxnTransaction(Message):
    """Part of AddPartitionsToTxnRequest."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    verify_only: Boolean = False
    topics: list[AddPartitionsToTxnTopic] = []


class AddPartitionsToTxnRequest(Message):
    """AddPartitionsToTxn request, versions 0 to 5."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    transactions: Annotated[list[AddPartitionsToTxnTransaction], V(4)] = []
    v3_and_below_transactional_id: Annotated[String, V(0, 3)] = ""
    v3_and_below_producer_id: Annotated[Int64, V(0, 3)] = 0
    v3_and_below_producer_epoch: Annotated[Int16, V(0, 3)] = 0
    v3_and_below_topics: Annotated[list[AddPartitionsToTxnTopic], V(0, 3)] = []


class AddPartitionsToTxnPartitionResult(Message):
    """Part of AddPartitionsToTxnResponse."""

    partition_index: Int32 = 0
    partition_error_code: Int16 = 0


class AddPartitionsToTxnTopicResult(Message):
    """Part of AddPartitionsToTxnResponse."""

    name: String = ""
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = []


class AddPartitionsToTxnResult(Message):
    """Part of AddPartitionsToTxnResponse."""

    transactional_id: String = ""
    topic_results: list[AddPartitionsToTxnTopicResult] = []


class AddPartitionsToTxnResponse(Message):
    """AddPartitionsToTxn response, versions 0 to 5."""

    API_KEY: ClassVar[int] = 24
    VERSIONS: ClassVar[tuple[int, int]] = (0, 5)
    FLEXIBLE: ClassVar[int] = 3

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V(4)] = 0
    results_by_transaction: Annotated[list[AddPartitionsToTxnResult], V(4)] = []
    results_by_topic_v3_and_below: Annotated[list[AddPartitionsToTxnTopicResult], V(0, 3)] = []
