"""From a request's bytes to its answer.

Produce and Fetch go to their own parsers; every other API is decoded, handled by its module (imported at its
first request) and encoded, or has a ``serve`` that does all of that. What the peer may not send is
``Refused``: Kafka closes the connection then, and so do we.
"""

from __future__ import annotations

import importlib
import inspect
import struct
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from logd.api.answer import Answer, Refused
from logd.api.context import RequestContext
from logd.api.forwarding import Serve, Served, forwarding
from logd.api.table import API_VERSIONS, APIS, BROKER_APIS, FETCH, PRODUCE, Api
from logd.errors import MalformedMessage
from logd.wire import Message, decode, decode_request_header, encode_response
from logd.wire.fetch import FLEXIBLE as FLEXIBLE_FETCH
from logd.wire.headers import RequestHeader
from logd.wire.produce import FLEXIBLE as FLEXIBLE_PRODUCE

if TYPE_CHECKING:
    import asyncio

    from logd.broker.delayed import Delayed

_HEAD = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id


_served: dict[int, Serve] = {}


Outcome: TypeAlias = "Answer | Delayed[Answer] | asyncio.Future[bytes] | Coroutine[Any, Any, Answer] | None"
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
        api = APIS.get(key)
        if api is None and context.broker.controller_link is not None:
            api = BROKER_APIS.get(key)
        if api is None:
            raise Refused(f"asked for API {key} version {version}, which is not served")
        if not api.serves_from <= version <= api.last:
            return _unsupported(api, version, correlation_id)
        context.broker.requests_served[key] += 1
        return _serve_decoded(api, bytes(view[pos:end]), context)
    except MalformedMessage as error:
        raise Refused(f"sent a malformed request for API {key} version {version}: {error}") from None


def _serve_decoded(api: Api, request: bytes, context: RequestContext) -> Served:
    serve_request = _served.get(api.key) or _load(api)
    header = decode_request_header(request)
    context.version = header.version
    context.client_id = header.client_id
    return serve_request(request, header, context)


def _decoding(
    request_class: type[Message],
    handle: Callable[[Any, RequestContext], Message | Callable[[], Awaitable[Message]]],
) -> Serve:
    """Serve by a handler that returns the response, or a function that returns an awaitable of it."""

    def serve_request(request: bytes, header: RequestHeader, context: RequestContext) -> Served:
        message = decode(request_class, header.version, request, header.body)
        result = handle(message, context)
        if isinstance(result, Message):
            return encode_response(result, header.version, header.correlation_id)
        return _encode_later(result, header)

    return serve_request


def _waiting(
    request_class: type[Message], handle: Callable[[Any, RequestContext], Awaitable[Message]]
) -> Serve:
    """Serve by a handler that is a coroutine function."""
    return _decoding(request_class, lambda message, context: partial(handle, message, context))


async def _encode_later(handle: Callable[[], Awaitable[Message]], header: RequestHeader) -> Answer:
    """Call the handler only now: a client that has disconnected by then has started nothing."""
    return encode_response(await handle(), header.version, header.correlation_id)


def _after_tags(view: memoryview, pos: int, tags: int, end: int) -> int:
    """Where the body begins; hardly any client puts tagged fields into its request header."""
    if tags < end and view[tags] == 0:
        return tags + 1
    return pos + decode_request_header(view[pos:end]).body


def _load(api: Api) -> Serve:
    module = importlib.import_module(f"logd.api.{api.module}")
    if hasattr(module, "serve"):
        found: Serve = module.serve
    else:
        wrap = _waiting if inspect.iscoroutinefunction(module.handle) else _decoding
        found = wrap(module.REQUEST, module.handle)
    if api.by_controller:
        found = forwarding(found, module)
    _served[api.key] = found
    return found


def _unsupported(api: Api, version: int, correlation_id: int) -> bytes:
    if api.key != API_VERSIONS:
        raise Refused(
            f"asked for version {version} of API {api.key} ({api.module}); "
            f"{api.serves_from} to {api.last} are served"
        )
    from logd.api.api_versions import unsupported_version

    return encode_response(unsupported_version(), 0, correlation_id)


def _produce(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | asyncio.Future[bytes] | Coroutine[Any, Any, Answer] | None:
    """Take this function's place at the first call: the module is imported only when somebody produces."""
    global _produce
    from logd.api import produce

    _produce = produce.serve
    return produce.serve(view, pos, end, version, correlation_id, context)


def _fetch(
    view: memoryview, pos: int, end: int, version: int, correlation_id: int, context: RequestContext
) -> Answer | Delayed[Answer]:
    """As ``_produce``."""
    global _fetch
    from logd.api import fetch

    _fetch = fetch.serve
    return fetch.serve(view, pos, end, version, correlation_id, context)
