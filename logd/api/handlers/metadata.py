"""Metadata, 0 to 13: brokers, topics and who leads their partitions, by the listener asked on.

All topics: an empty list in version 0, null from version 1 on. Topics that do not exist are created when the
client (from version 4 on) and ``auto.create.topics.enable`` allow it, and are answered as created at once.
Topics may be asked for by their ids, with a null name, from version 12 on. Versions 10 and 11 can be written
so already, and are answered INVALID_REQUEST for all topics, as Kafka does.

The same request gets the same bytes until the catalog changes, but for the correlation id: they are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire import decode, encode
from kafka_client.wire.framing import LENGTH
from kafka_client.wire.headers import RequestHeader, encode_response_header
from kafka_client.wire.message import NO_UUID
from kafka_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from logd.api.operations import CLUSTER_OPERATIONS, NOT_ASKED, TOPIC_OPERATIONS
from logd.api.request.context import RequestContext
from logd.broker.topics.cluster_view import PartitionView
from logd.broker.topics.topic import INTERNAL_TOPICS, Topic
from logd.metadata.topic_names import CLUSTER_METADATA, check_name

if TYPE_CHECKING:
    from logd.api.request.answer import Answer

REQUEST = MetadataRequest

ALL_REPLICAS_FROM = 1
"""Before this version only replicas on brokers that the client can reach are named."""
LISTENER_ERRORS_FROM = 6
"""The first version in which a leader without the listener is told from none (LISTENER_NOT_FOUND)."""
IDS_FROM = 12
"""The first version in which a topic's id counts."""
LARGE_BYTES = 32 * 1024
"""A body of so many bytes is not copied behind its head."""

Refusals = Mapping[str, KafkaError]
"""Errors of topics that could not be created, by name."""


def serve(
    request: bytes, header: RequestHeader, context: RequestContext
) -> Answer | Coroutine[Any, Any, Answer]:
    """Return the response with an error code for each topic, or an awaitable of it if topics are created
    first.
    """
    body = request[header.body :]
    broker, version = context.broker, header.version
    if broker.authorizer is not None:
        return _authorized(decode(MetadataRequest, version, body), header, context)
    key = version, context.endpoint, context.principal, body
    cached = broker.metadata_responses.find(key, broker.catalog.version)
    if cached is None:
        message = decode(MetadataRequest, version, body)
        missing = _to_create(message, context)
        if missing:
            return _created_and_described(message, header, context, missing)
        cached = encode(_answer(message, context, {}), version)
        broker.metadata_responses.keep(key, cached, len(body))
    return _framed(cached, header)


def _authorized(
    message: MetadataRequest, header: RequestHeader, context: RequestContext
) -> Answer | Coroutine[Any, Any, Answer]:
    """Serve what the peer may see. Nothing is cached: ACLs change, and each refusal is logged."""
    from logd.api.authorization.metadata_rule import visible

    verdict = visible(message, context)
    message, amend = verdict.request, verdict.amend
    missing = _to_create(message, context)
    if not missing:
        response = _answer(message, context, {})
        if amend is not None:
            amend(response)
        return _framed(encode(response, header.version), header)
    return _created_and_described(message, header, context, missing, amend)


async def _created_and_described(
    message: MetadataRequest,
    header: RequestHeader,
    context: RequestContext,
    names: Collection[str],
    amend: Callable[[MetadataResponse], None] | None = None,
) -> Answer:
    """Create the topics of these names and answer; `amend` completes the response."""
    refusals = {}
    for name in names:
        try:
            await context.broker.auto_create(name)
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:  # another client asked at the same time
                refusals[name] = error
    response = _answer(message, context, refusals)
    if amend is not None:
        amend(response)
    return _framed(encode(response, header.version), header)


def _framed(body: bytes, header: RequestHeader) -> Answer:
    flexible = header.version >= MetadataResponse.FLEXIBLE
    head = encode_response_header(MetadataResponse.API_KEY, header.correlation_id, flexible=flexible)
    head = LENGTH.pack(len(head) + len(body)) + head
    return head + body if len(body) < LARGE_BYTES else [head, body]


def _to_create(message: MetadataRequest, context: RequestContext) -> Collection[str]:
    """Return the requested names that are no topics yet and may be created."""
    broker = context.broker
    may_create = broker.config.auto_create_topics_enable and (
        message.allow_auto_topic_creation or context.version < 4
    )
    if not may_create or message.topics is None or _asks_too_early_by_id(message, context.version):
        return ()
    names = (requested.name for requested in message.topics if requested.topic_id == NO_UUID)
    return dict.fromkeys(
        name for name in names if name is not None and name not in broker.catalog.topics and _is_valid(name)
    )


def _asks_too_early_by_id(message: MetadataRequest, version: int) -> bool:
    return version < IDS_FROM and any(
        requested.name is None or requested.topic_id != NO_UUID for requested in message.topics or ()
    )


def _is_valid(name: str) -> bool:
    try:
        check_name(name)
    except KafkaError:
        return False
    return name != CLUSTER_METADATA


def _answer(message: MetadataRequest, context: RequestContext, refusals: Refusals) -> MetadataResponse:
    broker = context.broker
    operations = TOPIC_OPERATIONS if message.include_topic_authorized_operations else NOT_ASKED
    if message.topics is None or (context.version == 0 and not message.topics):
        described = [_described(topic, context, operations) for topic in broker.catalog.topics.values()]
    elif _asks_too_early_by_id(message, context.version):
        described = [_invalid(requested) for requested in message.topics]
    else:
        # A topic that is requested twice is answered once.
        once = {(requested.name, requested.topic_id): requested for requested in message.topics}
        described = [
            _requested_topic(requested, context, operations, refusals) for requested in once.values()
        ]
    return MetadataResponse(
        brokers=[
            MetadataResponseBroker(node_id=node.id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.cluster.nodes(context.endpoint)
        ],
        cluster_id=broker.cluster_id,
        controller_id=broker.cluster.controller,
        topics=described,
        cluster_authorized_operations=(
            CLUSTER_OPERATIONS if message.include_cluster_authorized_operations else NOT_ASKED
        ),
    )


def _invalid(requested: MetadataRequestTopic) -> MetadataResponseTopic:
    """Return an INVALID_REQUEST entry for a topic; its name is not null, which is no valid value before
    version 12.
    """
    return MetadataResponseTopic(
        error_code=ErrorCode.INVALID_REQUEST, name=requested.name or "", topic_id=requested.topic_id
    )


def _requested_topic(
    requested: MetadataRequestTopic, context: RequestContext, operations: int, refusals: Refusals
) -> MetadataResponseTopic:
    broker = context.broker
    try:
        if requested.name is None or requested.topic_id != NO_UUID:
            topic = broker.catalog.find_by_id(requested.topic_id)
        elif requested.name in broker.catalog.topics:
            topic = broker.catalog.topics[requested.name]
        else:
            check_name(requested.name)
            raise refusals.get(requested.name) or _unknown(requested.name)
    except KafkaError as error:
        return MetadataResponseTopic(
            error_code=error.code,
            name=requested.name,
            topic_id=requested.topic_id,
            is_internal=requested.name in INTERNAL_TOPICS,
        )
    return _described(topic, context, operations)


def _unknown(name: str) -> KafkaError:
    return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")


def _described(topic: Topic, context: RequestContext, operations: int) -> MetadataResponseTopic:
    cluster = context.broker.cluster
    views = cluster.partitions(topic, range(len(topic.partitions)), context.endpoint)
    if context.version < LISTENER_ERRORS_FROM:
        views = [_older(view, context) for view in views]
    return MetadataResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            MetadataResponsePartition(
                error_code=error_code,
                partition_index=index,
                leader_id=leader,
                leader_epoch=leader_epoch,
                replica_nodes=replicas,
                isr_nodes=isr,
                offline_replicas=offline,
            )
            for index, (leader, leader_epoch, replicas, isr, offline, error_code) in enumerate(views)
        ],
        topic_authorized_operations=operations,
    )


def _older(view: PartitionView, context: RequestContext) -> PartitionView:
    """Return the view that a client of an old version gets."""
    if view.error_code is ErrorCode.LISTENER_NOT_FOUND:
        view = view._replace(error_code=ErrorCode.LEADER_NOT_AVAILABLE)
    if context.version >= ALL_REPLICAS_FROM:
        return view
    reachable = {node.id for node in context.broker.cluster.nodes(context.endpoint)}
    replicas = [replica for replica in view.replicas if replica in reachable]
    isr = [replica for replica in view.isr if replica in reachable]
    if not view.error_code and len(replicas) < len(view.replicas):
        view = view._replace(error_code=ErrorCode.REPLICA_NOT_AVAILABLE)
    return view._replace(replicas=replicas, isr=isr)
