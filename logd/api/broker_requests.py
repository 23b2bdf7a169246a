"""The requests that only brokers of the cluster may send, and the check of their sender.

Some are APIs of their own. Others are a part of an API that clients use as well, such as a fetch with a
replica id. In ListOffsets a replica id counts only from a broker. A standalone broker serves none of them.

A broker of a cluster serves them on the listener of `inter.broker.listener.name`, after the peer has logged
in as a broker (`logd.broker.cluster.broker_login`). During a rolling upgrade, while a broker is registered
that does not log in, no login is asked for on that listener.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from logd.api.request.answer import Refused

if TYPE_CHECKING:
    from logd.api.request.context import RequestContext

FETCH: Final = 1
ADD_PARTITIONS_TO_TXN: Final = 24
WRITE_TXN_MARKERS: Final = 27


class BrokerRequest(NamedTuple):
    """A row of the table. `part` says which requests of a client's API are meant; empty for the whole API.

    Others than brokers get CLUSTER_AUTHORIZATION_FAILED if `is_answered`, else a closed connection.
    """

    key: int
    name: str
    part: str = ""
    is_answered: bool = False


BROKER_REQUESTS: Final[Mapping[int, BrokerRequest]] = {
    row.key: row
    for row in (
        BrokerRequest(FETCH, "Fetch", "with a replica id"),
        BrokerRequest(ADD_PARTITIONS_TO_TXN, "AddPartitionsToTxn", "from version 4 on", is_answered=True),
        BrokerRequest(WRITE_TXN_MARKERS, "WriteTxnMarkers", "but an operator's abort", is_answered=True),
        BrokerRequest(56, "AlterPartition"),
        BrokerRequest(58, "Envelope"),
        BrokerRequest(67, "AllocateProducerIds"),
        BrokerRequest(83, "InitializeShareGroupState"),
        BrokerRequest(84, "ReadShareGroupState"),
        BrokerRequest(85, "WriteShareGroupState"),
        BrokerRequest(86, "DeleteShareGroupState"),
        BrokerRequest(87, "ReadShareGroupStateSummary"),
        BrokerRequest(10_000, "ClusterUpdate"),
        BrokerRequest(10_001, "BrokerReport"),
    )
}
"""By API key. Rows of APIs that are not served yet stand here for the day they are."""

WHOLE_APIS: Final = frozenset(key for key, row in BROKER_REQUESTS.items() if not row.part)


def require_broker(key: int, context: RequestContext) -> None:
    """Raise Refused, which closes the connection, if the request is not from a broker of the cluster."""
    if not is_from_broker(context):
        row = BROKER_REQUESTS[key]
        what = f"{row.name} {row.part}" if row.part else row.name
        raise Refused(
            f"sent {what}, which only a broker of the cluster may send, and only after its login on the "
            "listener of inter.broker.listener.name"
        )


def is_from_broker(context: RequestContext) -> bool:
    """Return True if the peer has logged in as a broker, or if brokers need not log in yet."""
    if context.is_broker:
        return True
    login = context.broker.broker_login
    return login is not None and not login.is_required(context.endpoint.listener)
