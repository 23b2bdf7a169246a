"""A broker that accepts requests and answers none, like one that is stopped or cut off."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka_client.wire import ApiKey
from logd.api.dispatch.dispatch import Outcome, Serving
from logd.api.request.context import RequestContext
from logd.broker_server import BrokerServer

_KEY = struct.Struct(">h")
_OPENING = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
"""The requests that a connection begins with. They are answered, so that it is requests that hang."""


class Hanging:
    """A broker's state while it hangs; `unanswered` are the API keys of its requests."""

    def __init__(self) -> None:
        self.is_over = False
        self.unanswered: list[int] = []

    def wrap(self, serve: Serving) -> Serving:
        def serve_none(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
            (key,) = _KEY.unpack_from(view, pos)
            if self.is_over or key in _OPENING:
                return serve(view, pos, end, context)
            self.unanswered.append(key)
            return _never()

        return serve_none


async def _never() -> Any:
    await asyncio.Event().wait()


@contextmanager
def hanging(broker: BrokerServer) -> Iterator[Hanging]:
    """Let the broker's connections hang. At exit it serves again, on other connections."""
    state = Hanging()
    broker.intercept(state.wrap)
    try:
        yield state
    finally:
        state.is_over = True
        broker.drop_connections()
