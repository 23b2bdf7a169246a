"""FindCoordinator, 0 to 6: which broker coordinates a group or a transactional id.

It is the leader of the partition of the internal topic that the group or transactional id belongs to.

From version 4 on several keys at once (KIP-699). Asking for a group is what creates `__consumer_offsets`,
asking for a transactional id `__transaction_state`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from logd.api.request.context import RequestContext
from logd.broker.coordinators.coordinator import partition_for

if TYPE_CHECKING:
    from logd.broker.groups.groups import Groups
    from logd.broker.transactions.transactions import Transactions

REQUEST = FindCoordinatorRequest

GROUP: Final = 0
TRANSACTION: Final = 1
BATCHED_FROM: Final = 4


async def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """Answer with the address the client's listener advertises."""
    version = context.version
    keys = request.coordinator_keys if version >= BATCHED_FROM else [request.key]
    problem = await _problem(request.key_type, context)
    if problem is not None:
        coordinators = [_none(problem, key) for key in keys]
    else:
        broker = context.broker
        kind = broker.groups if request.key_type == GROUP else broker.transactions
        coordinators = [_for_key(kind, key, context) for key in keys]
    if version >= BATCHED_FROM:
        return FindCoordinatorResponse(coordinators=coordinators)
    (coordinator,) = coordinators
    return FindCoordinatorResponse(
        error_code=coordinator.error_code,
        error_message=coordinator.error_message or ErrorCode(coordinator.error_code).name,
        node_id=coordinator.node_id,
        host=coordinator.host,
        port=coordinator.port,
    )


async def _problem(key_type: int, context: RequestContext) -> KafkaError | None:
    """Create the internal topic of this key type if needed. Return why its keys have no coordinator."""
    try:
        if key_type not in (GROUP, TRANSACTION):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
        if key_type == GROUP:
            await context.broker.groups.ensure_topic()
        else:
            await context.broker.transactions.ensure_topic()
    except KafkaError as error:
        if error.code in (ErrorCode.INVALID_REQUEST, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            return error
        return KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message)
    return None


def _for_key(kind: Groups | Transactions, key: str, context: RequestContext) -> Coordinator:
    """Return the leader of the key's partition, by the listener asked on.

    COORDINATOR_NOT_AVAILABLE instead of this broker itself where another one may lead it by now.
    """
    cluster, endpoint = context.broker.cluster, context.endpoint
    topic = context.broker.catalog.topics.get(kind.topic)
    if topic is None:
        return _none(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, "its topic was deleted meanwhile"), key)
    index = partition_for(key, len(topic.partitions))
    node = cluster.node(cluster.partition(topic, index, endpoint).leader, endpoint)
    if node is None:
        return _none(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name}-{index} is offline"), key)
    if node.id == cluster.node_id:
        try:
            kind.check_lease(index)
        except KafkaError as error:
            return _none(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, error.message), key)
    return Coordinator(key=key, node_id=node.id, host=node.host, port=node.port, error_message="")


def _none(problem: KafkaError, key: str) -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=problem.code, error_message=problem.message)
