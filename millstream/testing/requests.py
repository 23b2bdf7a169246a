"""An interceptor in front of a test's broker, which notes each request and loses responses on request."""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from logd.api.request.answer import Refused
from logd.api.table import FIND_COORDINATOR
from millstream.testing.errors import BrokerError
from millstream.testing.request import Request

if TYPE_CHECKING:
    from kafka_client.wire import ApiKey
    from logd.api.dispatch.dispatch import Outcome, Serving
    from logd.api.request.answer import Answer
    from logd.api.request.context import RequestContext

KEPT = 200
"""The number of requests that are remembered."""
_BROKERS = b"broker-"
"""The prefix of client ids in requests between brokers."""
_HEAD = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id


class Requests:
    """The interceptor of requests; `wrap` goes into the broker (`BrokerServer.intercept`).

    `coordinator_found` is called when a client has sent FindCoordinator.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._received: deque[tuple[int, bytes, int, int]] = deque(maxlen=KEPT)
        self._to_lose: dict[int, int] = {}
        self.omits_brokers = False
        """True if requests of other brokers, such as the fetches of followers, are not noted."""
        self.coordinator_found: Callable[[], None] = _nothing

    def received(self) -> list[Request]:
        """Return the last requests, the oldest first."""
        return [
            Request(at_ms, client_id.decode("utf-8", "replace"), _name(key), version)
            for at_ms, client_id, key, version in self._received
        ]

    def forget(self) -> None:
        """Forget all requests, and lose no more responses."""
        self._received.clear()
        self._to_lose.clear()

    def lose_answers(self, api: str, count: int) -> None:
        """Carry out the next `count` requests of an API, and close the connection instead of answering."""
        self._to_lose[_key(api)] = count

    def wrap(self, serve: Serving) -> Serving:
        """Return `serve` with this interceptor in front."""

        def serve_watched(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
            if end - pos < _HEAD.size:
                return serve(view, pos, end, context)
            key, version, _, length = _HEAD.unpack_from(view, pos)
            name = view[pos + _HEAD.size : min(pos + _HEAD.size + max(length, 0), end)]
            if not (self.omits_brokers and bytes(name[: len(_BROKERS)]) == _BROKERS):
                self._received.append((self._now_ms(), bytes(name), key, version))
            if key == FIND_COORDINATOR:
                self.coordinator_found()
            if not self._to_lose.get(key):
                return serve(view, pos, end, context)
            self._to_lose[key] -= 1
            return self._lost(key, serve(view, pos, end, context))

        return serve_watched

    def _lost(self, key: int, outcome: Outcome) -> Outcome:
        if outcome is None or isinstance(outcome, bytes | list):
            raise _refusal(key)
        if isinstance(outcome, Awaitable):
            return _carried_out(key, outcome)
        raise _refusal(key)  # a waiting fetch, which has no effect to wait for


async def _carried_out(key: int, outcome: Awaitable[Any]) -> Answer:
    await outcome
    raise _refusal(key)


def _refusal(key: int) -> Refused:
    return Refused(f"the answer to {_name(key)} is lost, as the test asked")


def _name(key: int) -> str:
    from kafka_client.wire import ApiKey  # late, since a broker starts without it

    try:
        return _camel(ApiKey(key))
    except ValueError:
        return f"API {key}"


def _key(api: str) -> int:
    from kafka_client.wire import ApiKey

    for key in ApiKey:
        if _camel(key).lower() == api.lower():
            return key
    names = ", ".join(_camel(key) for key in ApiKey)
    raise BrokerError(f"there is no API {api!r}: it is one of {names}")


def _camel(key: ApiKey) -> str:
    return "".join(part.capitalize() for part in key.name.split("_"))


def _nothing() -> None:
    pass
