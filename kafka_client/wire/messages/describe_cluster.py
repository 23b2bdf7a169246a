"""DescribeCluster: the request and the response, over all their versions."""

from typing import Annotated, ClassVar

from kafka_client.wire.message import Boolean, Int8, Int16, Int32, Message, String, V


class DescribeClusterRequest(Message):
    """DescribeCluster request, versions 0 to 2."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    include_cluster_authorized_operations: Boolean = False
    endpoint_type: Annotated[Int8, V(1)] = 1
    include_fenced_brokers: Annotated[Boolean, V(2)] = False


class DescribeClusterBroker(Message):
    """Part of DescribeClusterResponse."""

    broker_id: Int32 = 0
    host: String = ""
    port: Int32 = 0
    rack: String | None = None
    is_fenced: Annotated[Boolean, V(2)] = False


class DescribeClusterResponse(Message):
    """DescribeCluster response, versions 0 to 2."""

    API_KEY: ClassVar[int] = 60
    VERSIONS: ClassVar[tuple[int, int]] = (0, 2)
    FLEXIBLE: ClassVar[int] = 0

    throttle_time_ms: Int32 = 0
    error_code: Int16 = 0
    error_message: String | None = None
    endpoint_type: Annotated[Int8, V(1)] = 1
    cluster_id: String = ""
    controller_id: Int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: Int32 = -2147483648
