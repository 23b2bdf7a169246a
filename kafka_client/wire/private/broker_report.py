"""BrokerReport: a broker reports to the controller its controlled shutdown, or failed log directories."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Int64, Message, String


class ReportedTopic(Message):
    """A topic's partitions in a report."""

    name: String = ""
    partitions: list[Int32] = []


class BrokerReportRequest(Message):
    """BrokerReport request, version 0. `offline`: the partitions in the failed log directories."""

    API_KEY: ClassVar[int] = 10_001
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    broker_id: Int32 = -1
    broker_epoch: Int64 = -1
    is_shutting_down: Boolean = False
    offline_log_dirs: list[String] = []
    offline: list[ReportedTopic] = []


class BrokerReportResponse(Message):
    """BrokerReport response, version 0. `remaining`: partitions that nobody else can lead now."""

    API_KEY: ClassVar[int] = 10_001
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    error_code: Int16 = 0
    error_message: String | None = None
    remaining: list[ReportedTopic] = []
