"""ListTransactions: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Int16, Int32, Int64, Message, String, V


class ListTransactionsRequest(Message):
    """ListTransactions request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    state_filters: list[String] = []
    producer_id_filters: list[Int64] = []
    duration_filter: Annotated[Int64, V(1)] = -1
    transactional_id_pattern: Annotated[String | None, V(2)] = None


class TransactionState(Message):
    """Part of ListTransactionsResponse."""

    transactional_id: String = ""
    producer_id: Int64 = 0
    transaction_state: String = ""


class ListTransactionsResponse(Message):
    """ListTransactions response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 66
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    unknown_state_filters: list[String] = []
    transaction_states: list[TransactionState] = []
