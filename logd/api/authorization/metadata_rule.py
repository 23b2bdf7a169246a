"""The rule of Metadata: DESCRIBE topic, and CREATE topic or cluster where a topic is to be created.

Among all topics the hidden ones are left out. A hidden topic that is requested by its id is answered
UNKNOWN_TOPIC_ID, so that the id does not tell a name.
"""

from __future__ import annotations

from typing import Final

import msgspec

from kafka_client.acl import Operation, ResourceType
from kafka_client.errors import ErrorCode
from kafka_client.wire.message import NO_UUID
from kafka_client.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from logd.api.authorization.access import Access, access_of, on_cluster, on_topic
from logd.api.authorization.rule import Verdict
from logd.api.operations import TOPIC_OPERATIONS
from logd.api.request.context import RequestContext
from logd.broker.topics.topic import INTERNAL_TOPICS

IDS_FROM: Final = 12
"""The first version in which topics are requested by id."""


def visible(request: MetadataRequest, context: RequestContext) -> Verdict:
    """Return the request for the topics that the peer may see, and the amendment of the response."""
    access = access_of(context, "Metadata")
    if access is None:
        return Verdict(request)
    is_for_all = request.topics is None or (context.version == 0 and not request.topics)
    allowed: list[MetadataRequestTopic] = []
    rows: list[MetadataResponseTopic] = []
    for topic in () if is_for_all else request.topics or ():
        row = _refusal(topic, request, access)
        if row is None:
            allowed.append(topic)
        else:
            rows.append(row)

    def amend(response: MetadataResponse) -> None:
        if is_for_all:
            response.topics = [topic for topic in response.topics if _shows(topic, access)]
        elif context.version == 0 and not allowed:
            response.topics = []  # an empty list asks for all topics in this version
        _set_operations(response, request, access)
        response.topics.extend(rows)

    reduced = request if is_for_all else msgspec.structs.replace(request, topics=allowed)
    return Verdict(reduced, amend=amend)


def _refusal(
    topic: MetadataRequestTopic, request: MetadataRequest, access: Access
) -> MetadataResponseTopic | None:
    """Return the row of a topic that is refused."""
    catalog = access.catalog
    if topic.name is None or topic.topic_id != NO_UUID:
        topic_of_id = catalog.topics_by_id.get(topic.topic_id)
        if access.context.version < IDS_FROM or topic_of_id is None:
            return None  # the handler refuses it
        if access.allows(on_topic(Operation.DESCRIBE, topic_of_id.name)):
            return None
        return MetadataResponseTopic(
            error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic.topic_id
        )
    name = topic.name
    if access.allows(on_topic(Operation.DESCRIBE, name)) and (
        name in catalog.topics or not _creates(request, access) or _may_create(name, access)
    ):
        return None
    return MetadataResponseTopic(
        error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, is_internal=name in INTERNAL_TOPICS
    )


def _creates(request: MetadataRequest, access: Access) -> bool:
    """Return True if missing topics of the request are created."""
    is_enabled = access.context.broker.config.auto_create_topics_enable
    return is_enabled and (request.allow_auto_topic_creation or access.context.version < 4)


def _may_create(name: str, access: Access) -> bool:
    return access.shows(on_cluster(Operation.CREATE)) or access.allows(on_topic(Operation.CREATE, name))


def _shows(topic: MetadataResponseTopic, access: Access) -> bool:
    return access.shows(on_topic(Operation.DESCRIBE, topic.name or ""))


def _set_operations(response: MetadataResponse, request: MetadataRequest, access: Access) -> None:
    if request.include_topic_authorized_operations:
        for topic in response.topics:
            if not topic.error_code:
                topic.topic_authorized_operations = access.operations(
                    ResourceType.TOPIC, topic.name or "", TOPIC_OPERATIONS
                )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = access.cluster_operations()
