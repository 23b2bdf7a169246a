"""ClusterUpdate: the controller tells a broker what has changed in the cluster (`logd.metadata.feed`)."""

from typing import ClassVar

from kafka_client.wire.message import Boolean, Bytes, Int16, Int32, Int64, Message, String


class ClusterUpdateRequest(Message):
    """ClusterUpdate request, version 0. `changes`: a list of changes in JSON."""

    API_KEY: ClassVar[int] = 10_000
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    controller_id: Int32 = -1
    controller_epoch: Int32 = -1
    broker_epoch: Int64 = -1
    number: Int64 = 0
    begins: Boolean = False
    is_complete: Boolean = True
    changes: Bytes = b"[]"


class ClusterUpdateResponse(Message):
    """ClusterUpdate response, version 0.

    INVALID_UPDATE_VERSION: something is missing before it, a snapshot has to be sent.
    """

    API_KEY: ClassVar[int] = 10_000
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    error_code: Int16 = 0
    error_message: String | None = None
