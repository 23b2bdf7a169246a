"""AlterReplicaLogDirs: the request and the response, over all their versions."""

from typing import ClassVar

from kafka_client.wire.message import Int16, Int32, Message, String


class AlterReplicaLogDirTopic(Message):
    """Part of AlterReplicaLogDirsRequest."""

    name: String = ""
    partitions: list[Int32] = []


class AlterReplicaLogDir(Message):
    """Part of AlterReplicaLogDirsRequest."""

    path: String = ""
    topics: list[AlterReplicaLogDirTopic] = []


class AlterReplicaLogDirsRequest(Message):
    """AlterReplicaLogDirs request, versions 1 to 2."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 2

    dirs: list[AlterReplicaLogDir] = []


class AlterReplicaLogDirPartitionResult(Message):
    """Part of AlterReplicaLogDirsResponse."""

    partition_index: Int32 = 0
    error_code: Int16 = 0


class AlterReplicaLogDirTopicResult(Message):
    """Part of AlterReplicaLogDirsResponse."""

    topic_name: String = ""
    partitions: list[AlterReplicaLogDirPartitionResult] = []


class AlterReplicaLogDirsResponse(Message):
    """AlterReplicaLogDirs response, versions 1 to 2."""

    API_KEY: ClassVar[int] = 34
    VERSIONS: ClassVar[tuple[int, int]] = (1, 2)
    FLEXIBLE: ClassVar[int] = 2

    throttle_time_ms: Int32 = 0
    results: list[AlterReplicaLogDirTopicResult] = []
