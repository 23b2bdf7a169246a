"""From a request's bytes to its answer.

Produce and Fetch go to their own parsers, every other API to ``decoded``; each is imported at its first
request. What the peer may not send is ``Refused``: Kafka closes the connection then, and so do we.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, TypeAlias

from kafka_client.errors import MalformedMessage
from logd.api.broker_requests import WHOLE_APIS, require_broker
from logd.api.request.answer import Refused
from logd.api.table import (
    API_VERSIONS,
    APIS,
    BROKER_APIS,
    FETCH,
    FLEXIBLE_FETCH,
    FLEXIBLE_PRODUCE,
    OPERATOR_APIS,
    PRODUCE,
)

if TYPE_CHECKING:
    import asyncio

    from logd.api.dispatch.forwarding import Served
    from logd.api.request.answer import Answer, Throttled
    from logd.api.request.context import RequestContext
    from logd.api.table import Api
    from logd.broker.fetching.delayed import Delayed

_HEAD = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id

Answered: TypeAlias = "Answer | asyncio.Future[bytes] | Throttled | None"
Outcome: TypeAlias = "Answered | Delayed[Answer] | Coroutine[Any, Any, Answered]"
"""A future is of batches that are appended: further batches may be, before it is done."""
Serving: TypeAlias = "Callable[[memoryview, int, int, RequestContext], Outcome]"
"""The form of ``serve``, and of what may stand in front of it."""


def serve(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
    """Serve the request in ``view[pos:end]`` (without its length).

    Returns the answer, None where none is wanted (acks=0), or something to wait for: see `Outcome`. ``view``
    is only valid during the call. Raises Refused.
    """
    if end - pos < _HEAD.size:
        raise Refused(f"sent a request of {end - pos} bytes, too short for a header")
    key, version, correlation_id, id_length = _HEAD.unpack_from(view, pos)
    body = pos + 10 + (id_length if id_length > 0 else 0)
    if id_length < -1 or body > end:
        raise Refused(f"sent a client id of {id_length} bytes in a request of {end - pos} bytes")
    try:
        if key == PRODUCE and 3 <= version <= 13:
            context.broker.requests_served[PRODUCE] += 1
            if version >= FLEXIBLE_PRODUCE:
                body = _after_tags(view, pos, body, end)
            return _produce(view, body, end, version, correlation_id, context)
        if key == FETCH and 4 <= version <= 18:
            context.broker.requests_served[FETCH] += 1
            if version >= FLEXIBLE_FETCH:
                body = _after_tags(view, pos, body, end)
            return _fetch(view, body, end, version, correlation_id, context)
        api = APIS.get(key) or OPERATOR_APIS.get(key)
        if api is None:
            if key in WHOLE_APIS:
                require_broker(key, context)
            api = BROKER_APIS.get(key)
        if api is None:
            raise Refused(f"asked for API {key} version {version}, which is not served")
        if not api.serves_from <= version <= api.last:
            return _unsupported(api, version, correlation_id)
        context.broker.requests_served[key] += 1
        return _decoded(api, bytes(view[pos:end]), context)
    except MalformedMessage as error:
        raise Refused(f"sent a malformed request for API {key} version {version}: {error}") from None


def _after_tags(view: memoryview, pos: int, tags: int, end: int) -> int:
    """Return where the body begins: after the header's tagged fields, of which clients rarely send any."""
    if tags < end and view[tags] == 0:
        return tags + 1
    from kafka_client.wire import decode_request_header

    return pos + decode_request_header(view[pos:end]).body


def _produce(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | asyncio.Future[bytes] | Coroutine[Any, Any, Answered] | None:
    """Take this function's place at the first call: the module is imported only when somebody produces."""
    global _produce
    from logd.api.produce import produce

    _produce = produce.serve
    return produce.serve(view, pos, end, version, correlation_id, context)


def _fetch(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | Delayed[Answer]:
    """Serve a Fetch; its code is imported at the first one."""
    global _fetch
    from logd.api.fetch import fetch

    _fetch = fetch.serve
    return fetch.serve(view, pos, end, version, correlation_id, context)


def _decoded(api: Api, request: bytes, context: RequestContext) -> Served:
    """Serve any other request; its code is imported at the first one."""
    global _decoded
    from logd.api.dispatch import decoded

    _decoded = decoded.serve
    return decoded.serve(api, request, context)


def _unsupported(api: Api, version: int, correlation_id: int) -> bytes:
    if api.key != API_VERSIONS:
        raise Refused(
            f"asked for version {version} of API {api.key} ({api.module}); "
            f"{api.serves_from} to {api.last} are served"
        )
    from kafka_client.wire import encode_response
    from logd.api.handlers.api_versions import unsupported_version

    return encode_response(unsupported_version(), 0, correlation_id)
