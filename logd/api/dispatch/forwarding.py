"""Requests that only the controller can carry out, sent on to it by the other brokers (KIP-590).

The client's request is sent unchanged, and the controller's response is returned to the client unchanged. If
the controller refuses the envelope, every part of the request is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.wire import Message, decode, encode_response
from kafka_client.wire.framing import LENGTH
from kafka_client.wire.headers import RequestHeader
from logd.api.request.answer import Answer, Refused
from logd.api.request.context import RequestContext

if TYPE_CHECKING:
    from logd.broker.cluster.controller_link import ControllerLink

Served: TypeAlias = "Answer | Coroutine[Any, Any, Answer]"
Serve: TypeAlias = Callable[[bytes, RequestHeader, RequestContext], Served]
"""From a request and its header to the answer, or to an awaitable of it."""


class ControllersApi(Protocol):
    """A module of an API that the controller serves."""

    REQUEST: type[Message]

    def refused(self, request: Any, code: ErrorCode) -> Message:
        """Return the response in which every part of the request has this error."""


def forwarding(
    serve_here: Serve, api: ControllersApi, is_local: Callable[[Any], bool] | None = None
) -> Serve:
    """Return a handler that serves here on a standalone broker and the controller, and forwards on other
    brokers.

    ``is_local`` returns True for a request that any broker carries out by itself.
    """

    def serve(request: bytes, header: RequestHeader, context: RequestContext) -> Served:
        link = context.broker.controller_link
        if link is None or link.is_active:
            return serve_here(request, header, context)
        message = decode(api.REQUEST, header.version, request, header.body)
        if is_local is not None and is_local(message):
            return serve_here(request, header, context)
        return _forwarded(api, message, request, header, context, link)

    return serve


async def _forwarded(
    api: ControllersApi,
    message: Message,
    request: bytes,
    header: RequestHeader,
    context: RequestContext,
    link: ControllerLink,
) -> Answer:
    from logd.broker.cluster.controller_link import in_envelope

    try:
        answer = await link.forward(in_envelope(request, context.principal, context.client_host))
    except KafkaError as error:
        code = error.code
    else:
        if not answer.error_code:
            data = answer.response_data or b""
            return LENGTH.pack(len(data)) + data
        if answer.error_code == ErrorCode.UNSUPPORTED_VERSION:
            # The controller has another release: the client has to ask again which versions are served.
            raise Refused(f"asked for version {header.version} of what the controller does not serve so")
        # The error is about the envelope, which the client does not know. Kafka answers the same.
        code = ErrorCode.UNKNOWN_SERVER_ERROR
    return encode_response(api.refused(message, code), header.version, header.correlation_id)
