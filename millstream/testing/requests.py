"""What stands in front of a test's broker: notes each request, and loses answers when told to."""

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
"""So many of the last requests are remembered."""
_BROKERS = b"broker-"
"""How the client ids begin by which brokers ask each other."""
_HEAD = struct.Struct(">hhih")  # API key, version, correlation id, length of the client id


class Requests:
    """`wrap` goes into the broker (`EmbeddedBroker.intercept`). `coordinator_found` is called when a client
    has asked for a coordinator.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._seen: deque[tuple[int, bytes, int, int]] = deque(maxlen=KEPT)
        self._to_lose: dict[int, int] = {}
        self.omits_brokers = False
        """Whether what other brokers ask, followers without an end, is not noted."""
        self.coordinator_found: Callable[[], None] = _nothing

    def seen(self) -> list[Request]:
        """The last requests, the oldest first."""
        return [
            Request(at_ms, client_id.decode("utf-8", "replace"), _name(key), version)
            for at_ms, client_id, key, version in self._seen
        ]

    def forget(self) -> None:
        """Begin anew: nothing seen, nothing to lose."""
        self._seen.clear()
        self._to_lose.clear()

    def lose_answers(self, api: str, count: int) -> None:
        """Carry out the next `count` requests of an API, and close the connection instead of answering."""
        self._to_lose[_key(api)] = count

    def wrap(self, serve: Serving) -> Serving:
        """`serve`, with this in front of it."""

        def serve_watched(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
            if end - pos < _HEAD.size:
                return serve(view, pos, end, context)
            key, version, _, length = _HEAD.unpack_from(view, pos)
            name = view[pos + _HEAD.size : min(pos + _HEAD.size + max(length, 0), end)]
            if not (self.omits_brokers and bytes(name[: len(_BROKERS)]) == _BROKERS):
                self._seen.append((self._now_ms(), bytes(name), key, version))
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
        raise _refusal(key)  # a waiting fetch: it has begun nothing


async def _carried_out(key: int, outcome: Awaitable[Any]) -> Answer:
    await outcome
    raise _refusal(key)


def _refusal(key: int) -> Refused:
    return Refused(f"the answer to {_name(key)} is lost, as the test asked")


def _name(key: int) -> str:
    from kafka_client.wire import ApiKey  # a broker is ready before anybody asks what was asked

    try:
        return _camel(ApiKey(key))
    except ValueError:
        return f"API {key}"


def _key(api: str) -> int:
    from kafka_client.wire import ApiKey

    for key in ApiKey:
        if _camel(key).lower() == api.lower():
            return key
    known = ", ".join(_camel(key) for key in ApiKey)
    raise BrokerError(f"there is no API {api!r}: it is one of {known}")


def _camel(key: ApiKey) -> str:
    return "".join(part.capitalize() for part in key.name.split("_"))


def _nothing() -> None:
    pass
