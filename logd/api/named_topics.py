"""Topics as the offset APIs name them: by name, or by id from version 10 on (KIP-848)."""

from __future__ import annotations

from typing import Final

from logd.api.request.context import RequestContext
from logd.broker.topics.topic import Topic

TOPIC_IDS_FROM: Final = 10


def topic_called(name: str, topic_id: bytes, context: RequestContext) -> Topic | None:
    """Return the topic by its id or name, whichever this request version uses, or None if there is none."""
    catalog = context.broker.catalog
    if context.version >= TOPIC_IDS_FROM:
        return catalog.topics_by_id.get(topic_id)
    return catalog.topics.get(name)
