"""The permissions of the peer that sent a request. Each refusal is written to the log of the authorizer."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_client.acl import BROKER_PRINCIPAL, CLUSTER_NAME, Operation, ResourceType
from kafka_client.errors import ErrorCode
from logd.api.operations import CLUSTER_OPERATIONS
from logd.security.authorizer import Peer

if TYPE_CHECKING:
    from logd.api.request.context import RequestContext
    from logd.broker.topics.catalog import TopicCatalog
    from logd.security.authorizer import Authorizer

ERRORS: Final = {
    ResourceType.TOPIC: ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ResourceType.GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    ResourceType.CLUSTER: ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ResourceType.TRANSACTIONAL_ID: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""The error of a refused operation, by the type of the resource."""

log = logging.getLogger("logd.authorizer")


class Need(NamedTuple):
    """A permission that a request needs."""

    operation: Operation
    resource_type: ResourceType
    name: str

    @property
    def error(self) -> ErrorCode:
        """The error if it is missing."""
        return ERRORS[self.resource_type]


def on_cluster(operation: Operation) -> Need:
    """Return the permission to do this with the cluster."""
    return Need(operation, ResourceType.CLUSTER, CLUSTER_NAME)


def on_topic(operation: Operation, name: str) -> Need:
    """Return the permission to do this with a topic."""
    return Need(operation, ResourceType.TOPIC, name)


def on_group(operation: Operation, group_id: str) -> Need:
    """Return the permission to do this with a group."""
    return Need(operation, ResourceType.GROUP, group_id)


def on_transactional_id(operation: Operation, transactional_id: str) -> Need:
    """Return the permission to do this with a transactional id."""
    return Need(operation, ResourceType.TRANSACTIONAL_ID, transactional_id)


class Access:
    """The permissions of one request's peer, for the API of the given name."""

    __slots__ = ("_api", "_authorizer", "context", "peer")

    def __init__(self, authorizer: Authorizer, context: RequestContext, api: str) -> None:
        self._authorizer = authorizer
        self._api = api
        self.context = context
        self.peer = Peer.of(context.principal, context.client_host)

    @property
    def catalog(self) -> TopicCatalog:
        """The topics of the broker."""
        return self.context.broker.catalog

    def allows(self, need: Need, *, is_audited: bool = True) -> bool:
        """Return True if the peer has this permission. A refusal is logged if `is_audited`."""
        if self._authorizer.allows(self.peer, *need):
            return True
        if is_audited:
            self._audit(need)
        return False

    def shows(self, need: Need) -> bool:
        """Return True if the peer may see this. Nothing was requested, so nothing is logged."""
        return self.allows(need, is_audited=False)

    def allows_some(self, operation: Operation, resource_type: ResourceType) -> bool:
        """Return True if the peer may do this with some resource of the type."""
        return self._authorizer.allows_some(self.peer, operation, resource_type)

    def operations(self, resource_type: ResourceType, name: str, supported: int) -> int:
        """Return which of the supported operations the peer may carry out, as a bit field (KIP-430)."""
        return sum(
            1 << operation
            for operation in Operation
            if supported >> operation & 1 and self.shows(Need(operation, resource_type, name))
        )

    def cluster_operations(self) -> int:
        """Return the operations on the cluster; none for a peer that may not describe it, as in Kafka."""
        if not self.shows(on_cluster(Operation.DESCRIBE)):
            return 0
        return self.operations(ResourceType.CLUSTER, CLUSTER_NAME, CLUSTER_OPERATIONS)

    def _audit(self, need: Need) -> None:
        log.info(
            "Principal = %s is Denied operation = %s from host = %s on resource = %s:LITERAL:%s "
            "for request = %s",
            _printable(self.peer.principal),
            need.operation.name,
            self.peer.host,
            need.resource_type.name,
            _printable(need.name),
            self._api,
        )


def access_of(context: RequestContext, api: str) -> Access | None:
    """Return the permissions of the peer; None if it may do everything.

    That is so without an authorizer, and for brokers of the cluster.
    """
    authorizer = context.broker.authorizer
    if authorizer is None or context.is_broker or context.principal == BROKER_PRINCIPAL:
        return None
    return Access(authorizer, context, api)


def _printable(text: str) -> str:
    """Return a text that cannot forge a line of the log."""
    return text if text.isprintable() else repr(text)
