"""DescribeLogDirs: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int16, Int32, Int64, Message, String, V


class DescribableLogDirTopic(Message):
    """Part of DescribeLogDirsRequest."""

    topic: String = ""
    partitions: list[Int32] = []


class DescribeLogDirsRequest(Message):
    """DescribeLogDirs request, versions 1 to 5."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE: ClassVar[int] = 2

    topics: list[DescribableLogDirTopic] | None = []


class DescribeLogDirsPartition(Message):
    """Part of DescribeLogDirsResponse."""

    partition_index: Int32 = 0
    partition_size: Int64 = 0
    offset_lag: Int64 = 0
    is_future_key: Boolean = False


class DescribeLogDirsTopic(Message):
    """Part of DescribeLogDirsResponse."""

    name: String = ""
    partitions: list[DescribeLogDirsPartition] = []


class DescribeLogDirsResult(Message):
    """Part of DescribeLogDirsResponse."""

    error_code: Int16 = 0
    log_dir: String = ""
    topics: list[DescribeLogDirsTopic] = []
    total_bytes: Annotated[Int64, V(4)] = -1
    usable_bytes: Annotated[Int64, V(4)] = -1
    is_cordoned: Annotated[Boolean, V(5)] = False


class DescribeLogDirsResponse(Message):
    """DescribeLogDirs response, versions 1 to 5."""

    API_KEY: ClassVar[int] = 35
    VERSIONS: ClassVar[tuple[int, int]] = (1, 5)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    error_code: Annotated[Int16, V(3)] = 0
    results: list[DescribeLogDirsResult] = []
