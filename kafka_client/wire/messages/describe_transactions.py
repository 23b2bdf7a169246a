"""DescribeTransactions: the request and the response."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String


class DescribeTransactionsRequest(Message):
    """DescribeTransactions request, version 0."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    transactional_ids: list[String] = []


class TopicData(Message):
    """Part of DescribeTransactionsResponse."""

    topic: String = ""
    partitions: list[Int32] = []


class TransactionState(Message):
    """Part of DescribeTransactionsResponse."""

    error_code: Int16 = 0
    transactional_id: String = ""
    transaction_state: String = ""
    transaction_timeout_ms: Int32 = 0
    transaction_start_time_ms: Int64 = 0
    producer_id: Int64 = 0
    producer_epoch: Int16 = 0
    topics: list[TopicData] = []


class DescribeTransactionsResponse(Message):
    """DescribeTransactions response, version 0."""

    API_KEY: ClassVar[int] = 65
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    transaction_states: list[TransactionState] = []
