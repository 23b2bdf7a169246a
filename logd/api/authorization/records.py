"""The rules of Produce and Fetch, topic by topic, for their own parsers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from kafka_client.acl import Operation
from kafka_client.errors import KafkaError
from logd.api.authorization.access import Access, access_of, on_topic, on_transactional_id

if TYPE_CHECKING:
    from kafka_client.wire.produce import ReceivedProduce
    from logd.api.request.context import RequestContext
    from logd.broker.topics.topic import Topic

RefusalOf: TypeAlias = "Callable[[str | bytes, Topic | None], KafkaError | None]"
"""Returns why a topic is refused. It takes the requested name or id, and the topic if there is one."""

_ATTRIBUTES: Final = 22
"""The offset of the byte of a batch that says if it is transactional."""
_TRANSACTIONAL: Final = 0x10


def writing(request: ReceivedProduce, context: RequestContext) -> RefusalOf | None:
    """Return the refusals of a Produce request: WRITE topic, and WRITE transactional id."""
    access = access_of(context, "Produce")
    if access is None:
        return None
    if _is_transactional(request):
        need = on_transactional_id(Operation.WRITE, request.transactional_id or "")
        if not access.allows(need):
            error = KafkaError(need.error, "Transactional Id authorization failed.")
            return lambda name, topic: error
    return _topics(access, Operation.WRITE)


def reading(context: RequestContext) -> RefusalOf | None:
    """Return the refusals of a consumer's Fetch request: READ topic."""
    access = access_of(context, "Fetch")
    return None if access is None else _topics(access, Operation.READ)


def _topics(access: Access, operation: Operation) -> RefusalOf:
    def refusal(name: str | bytes, topic: Topic | None) -> KafkaError | None:
        if topic is None and isinstance(name, bytes):
            return None  # the handler answers that there is no topic of this id
        topic_name = topic.name if topic is not None else str(name)
        need = on_topic(operation, topic_name)
        return None if access.allows(need) else KafkaError(need.error, "Topic authorization failed.")

    return refusal


def _is_transactional(request: ReceivedProduce) -> bool:
    return any(
        len(records) > _ATTRIBUTES and records[_ATTRIBUTES] & _TRANSACTIONAL
        for _, partitions in request.topics
        for _, records in partitions
    )
