"""The rule of OffsetFetch: a permission for each group, and one for each topic.

In a request for all offsets of a group, topics that the peer may not see are left out of the response.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from kafka_client.acl import Operation
from kafka_client.errors import ErrorCode
from kafka_client.wire.messages.offset_fetch import (
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from logd.api.authorization.access import Access, on_group, on_topic
from logd.api.authorization.rule import Verdict

GROUPS_FROM: Final = 8
IDS_FROM: Final = 10
GROUP_ERROR_FROM: Final = 2


def offset_fetch(request: Any, access: Access) -> Verdict:
    """Check groups and topics."""
    if access.context.version < GROUPS_FROM:
        return _of_one_group(request, access)
    rows: list[OffsetFetchResponseGroup] = []
    groups, topic_rows = [], {}
    for group in request.groups:
        need = on_group(Operation.DESCRIBE, group.group_id)
        if not access.allows(need):
            rows.append(OffsetFetchResponseGroup(group_id=group.group_id, error_code=need.error))
            continue
        allowed, refused = _split(group.topics, access)
        topic_rows[group.group_id] = refused
        groups.append(msgspec.structs.replace(group, topics=allowed))

    def amend(response: Any) -> None:
        for group in response.groups:
            _amend_topics(group, topic_rows[group.group_id], OffsetFetchResponseTopics, access)
        response.groups.extend(rows)

    return Verdict(msgspec.structs.replace(request, groups=groups), amend=amend)


def _of_one_group(request: Any, access: Access) -> Verdict:
    need = on_group(Operation.DESCRIBE, request.group_id)
    if not access.allows(need):
        if access.context.version >= GROUP_ERROR_FROM:
            return Verdict(None, OffsetFetchResponse(error_code=need.error))
        rows = [_row(topic, need.error, OffsetFetchResponseTopic) for topic in request.topics or ()]
        return Verdict(None, OffsetFetchResponse(topics=rows))
    allowed, refused = _split(request.topics, access)
    return Verdict(
        msgspec.structs.replace(request, topics=allowed),
        amend=lambda response: _amend_topics(response, refused, OffsetFetchResponseTopic, access),
    )


def _split(topics: list[Any] | None, access: Access) -> tuple[list[Any] | None, list[Any]]:
    """Return the topics that the peer may see, and the refused ones. None is for all topics."""
    if topics is None:
        return None, []
    allowed: list[Any] = []
    refused: list[Any] = []
    for topic in topics:
        name = _name(topic, access)
        visible = name is None or access.allows(on_topic(Operation.DESCRIBE, name))
        (allowed if visible else refused).append(topic)
    return allowed, refused


def _name(topic: Any, access: Access) -> str | None:
    """Return a topic's name; None if the id is of no topic, which the response says."""
    if access.context.version < IDS_FROM:
        return str(topic.name)
    topic_of_id = access.catalog.topics_by_id.get(topic.topic_id)
    return None if topic_of_id is None else topic_of_id.name


def _amend_topics(group: Any, refused: list[Any], row_class: type[Any], access: Access) -> None:
    group.topics = [*_visible(group.topics, access)]
    if not group.error_code:
        group.topics += [_row(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED, row_class) for topic in refused]


def _visible(topics: list[Any], access: Access) -> Iterator[Any]:
    for topic in topics:
        name = _name(topic, access)
        if name is None or access.shows(on_topic(Operation.DESCRIBE, name)):
            yield topic


def _row(topic: Any, code: ErrorCode, row_class: type[Any]) -> Any:
    partition = (
        OffsetFetchResponsePartitions
        if row_class is OffsetFetchResponseTopics
        else OffsetFetchResponsePartition
    )
    row = row_class(
        name=topic.name,
        partitions=[
            partition(partition_index=index, committed_offset=-1, metadata="", error_code=code)
            for index in topic.partition_indexes
        ],
    )
    if row_class is OffsetFetchResponseTopics:
        row.topic_id = topic.topic_id
    return row
