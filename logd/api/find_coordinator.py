"""FindCoordinator, 0 to 6: which broker looks after a group or a transactional id; with one node, this one.

From version 4 on several keys at once (KIP-699). Asking for a group is what creates `__consumer_offsets`,
asking for a transactional id `__transaction_state`.
"""

from __future__ import annotations

from typing import Final

from logd.api.context import RequestContext
from logd.broker.topic import GROUP_OFFSETS, TRANSACTION_STATE
from logd.errors import ErrorCode, KafkaError
from logd.groups import partition_for
from logd.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

REQUEST = FindCoordinatorRequest

GROUP: Final = 0
TRANSACTION: Final = 1
BATCHED_FROM: Final = 4


async def handle(request: FindCoordinatorRequest, context: RequestContext) -> FindCoordinatorResponse:
    """Answer with the address the client's listener advertises."""
    version = context.version
    keys = request.coordinator_keys if version >= BATCHED_FROM else [request.key]
    found = await _find(request.key_type, context)
    coordinators = [_for_key(found, request.key_type, key, context) for key in keys]
    if version >= BATCHED_FROM:
        return FindCoordinatorResponse(coordinators=coordinators)
    (found,) = coordinators
    return FindCoordinatorResponse(
        error_code=found.error_code,
        error_message=found.error_message or ErrorCode(found.error_code).name,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
    )


async def _find(key_type: int, context: RequestContext) -> Coordinator:
    endpoint = context.endpoint
    try:
        if key_type not in (GROUP, TRANSACTION):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"there are no coordinators of type {key_type}")
        if key_type == GROUP:
            await context.broker.groups.ensure_topic()
        else:
            await context.broker.transactions.ensure_topic()
    except KafkaError as error:
        code = error.code
        if code not in (ErrorCode.INVALID_REQUEST, ErrorCode.COORDINATOR_NOT_AVAILABLE):
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        return _none(code, error.message)
    return Coordinator(
        node_id=context.broker.node_id, host=endpoint.host, port=endpoint.port, error_message=""
    )


def _none(code: ErrorCode, message: str, key: str = "") -> Coordinator:
    return Coordinator(key=key, node_id=-1, port=-1, error_code=code, error_message=message)


def _for_key(found: Coordinator, key_type: int, key: str, context: RequestContext) -> Coordinator:
    broker = context.broker
    topic = broker.catalog.topics.get(GROUP_OFFSETS if key_type == GROUP else TRANSACTION_STATE)
    if not found.error_code and topic is not None:
        index = partition_for(key, len(topic.partitions))
        if topic.partitions[index] is None:  # in a log folder that is offline
            return _none(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{topic.name}-{index} is offline", key)
    return Coordinator(
        key=key,
        node_id=found.node_id,
        host=found.host,
        port=found.port,
        error_code=found.error_code,
        error_message=found.error_message,
    )
