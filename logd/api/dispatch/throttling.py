"""Client quotas in front of all requests: what each one used is counted, and its client waits (KIP-219).

The answer goes out at once, with the wait in `throttle_time_ms`. The connection serves no further request
until the wait is over. This stands in front of `dispatch.serve` only while the cluster has quotas.

A fetch that exceeds its quota gets its records, and the wait after them; Kafka sends an empty answer and the
records after the wait. The bytes per second are the same. The time of a request is what it takes of the event
loop: 100 % of `request_percentage` is one processor, and a wait (for records, for other brokers) is free.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, cast

from kafka_client.wire import decode, decode_response_header, encode_response, is_flexible, response_class
from logd.api.request.answer import Throttled
from logd.api.table import FETCH, PRODUCE
from logd.broker.fetching.delayed import Delayed

if TYPE_CHECKING:
    from logd.api.dispatch.dispatch import Answered, Outcome, Serving
    from logd.api.request.answer import Answer
    from logd.api.request.context import RequestContext
    from logd.broker.quotas.client_quotas import ClientQuotas

_HEAD = struct.Struct(">hhih")
_INT = struct.Struct(">i")
_MUTATIONS = frozenset((19, 20, 37))
"""CreateTopics, DeleteTopics and CreatePartitions: the controller has put the wait into the answer."""


def throttling(serve: Serving, quotas: ClientQuotas) -> Serving:
    """Return a function that serves requests by `serve`, under these quotas."""

    def serve_request(view: memoryview, pos: int, end: int, context: RequestContext) -> Outcome:
        if context.is_broker or end - pos < _HEAD.size:
            return serve(view, pos, end, context)
        return _Request(quotas, view, pos, end, context).served(serve, view, pos, end, context)

    return serve_request


class _Request:
    """A request, and its use of the quotas."""

    __slots__ = ("_client_id", "_key", "_quotas", "_seconds", "_size", "_user", "_version")

    def __init__(
        self, quotas: ClientQuotas, view: memoryview, pos: int, end: int, context: RequestContext
    ) -> None:
        self._key, self._version, _, id_length = _HEAD.unpack_from(view, pos)
        id_bytes = bytes(view[pos + _HEAD.size : min(pos + _HEAD.size + max(id_length, 0), end)])
        self._client_id = id_bytes.decode(errors="replace")
        self._user = context.user
        self._quotas = quotas
        self._size = end - pos
        self._seconds = 0.0

    def served(
        self, serve: Serving, view: memoryview, pos: int, end: int, context: RequestContext
    ) -> Outcome:
        """Serve the request; what it returns is an answer, or leads to one."""
        if self._key == FETCH:
            context.fetch_bytes_max = self._quotas.fetch_bytes_max(self._user, self._client_id)
        began = time.perf_counter()
        outcome = serve(view, pos, end, context)
        self._seconds = time.perf_counter() - began
        context.fetch_bytes_max = None  # the quota may be gone before the next request
        if isinstance(outcome, Delayed):
            return _Later(outcome, self.finished)
        if asyncio.iscoroutine(outcome):
            return self._after(outcome)
        return self.finished(outcome)

    async def _after(self, outcome: Coroutine[Any, Any, Answered]) -> Answered:
        return self.finished(await _Timed(outcome, self._add))

    def _add(self, seconds: float) -> None:
        self._seconds += seconds

    def finished(self, answer: Answered) -> Answered:
        """Count what the request used, and return its answer with the wait."""
        quotas, user, client_id = self._quotas, self._user, self._client_id
        throttle_ms = quotas.served(user, client_id, self._seconds)
        if self._key == PRODUCE:
            throttle_ms = max(throttle_ms, quotas.produced(user, client_id, self._size))
        elif self._key == FETCH:
            throttle_ms = max(throttle_ms, quotas.fetched(user, client_id, _size(answer)))
        elif self._key in _MUTATIONS and isinstance(answer, bytes):
            throttle_ms = max(throttle_ms, self._mutation_ms(answer))
        if not throttle_ms:
            return answer
        return Throttled(self._with_wait(answer, throttle_ms), throttle_ms / 1000)

    def _with_wait(self, answer: Any, throttle_ms: int) -> Any:
        """Return the answer with the wait in it."""
        if isinstance(answer, asyncio.Future):
            return _mapped(answer, lambda data: self._in_bytes(data, throttle_ms))
        if isinstance(answer, bytes):
            return self._in_bytes(answer, throttle_ms)
        if isinstance(answer, list):  # a fetch, whose first piece has the header
            head = cast(bytes, answer[0])
            return [self._put(head, throttle_ms), *answer[1:]]
        return answer

    def _in_bytes(self, answer: bytes, throttle_ms: int) -> bytes:
        if self._key == FETCH:
            return self._put(answer, throttle_ms)
        message_class = response_class(self._key)
        if "throttle_time_ms" not in message_class.__struct_fields__:
            return answer
        correlation_id, message = self._decoded(answer)
        if message is None:
            return answer
        message.throttle_time_ms = throttle_ms
        return encode_response(message, self._version, correlation_id)

    def _mutation_ms(self, answer: bytes) -> int:
        _, message = self._decoded(answer)
        return 0 if message is None else cast(int, message.throttle_time_ms)

    def _decoded(self, answer: bytes) -> tuple[int, Any]:
        """Return the correlation id and the message; no message for a version that was refused."""
        message_class = response_class(self._key)
        first, last = message_class.VERSIONS
        if not first <= self._version <= last:
            return 0, None
        correlation_id, pos = decode_response_header(self._key, self._version, answer, 4)
        return correlation_id, decode(message_class, self._version, answer, pos)

    def _put(self, head: bytes, throttle_ms: int) -> bytes:
        """Write the wait into the head of a response to Fetch, whose first field it is."""
        pos = 8 + is_flexible(FETCH, self._version)
        return head[:pos] + _INT.pack(throttle_ms) + head[pos + 4 :]


def _size(answer: Answered) -> int:
    if isinstance(answer, list):
        return sum(len(each) if isinstance(each, bytes) else each.length for each in answer)
    return len(answer) if isinstance(answer, bytes) else 0


def _mapped(answer: asyncio.Future[bytes], change: Callable[[bytes], bytes]) -> asyncio.Future[bytes]:
    """Return a future of the changed result. Cancelling it cancels the first one."""
    changed: asyncio.Future[bytes] = answer.get_loop().create_future()

    def done(first: asyncio.Future[bytes]) -> None:
        if changed.done():
            return
        if first.cancelled():
            changed.cancel()
        elif (error := first.exception()) is not None:
            changed.set_exception(error)
        else:
            changed.set_result(change(first.result()))

    answer.add_done_callback(done)
    changed.add_done_callback(lambda each: answer.cancel() if each.cancelled() else None)
    return changed


class _Later(Delayed["Answer"]):
    """A delayed answer whose wait is put in when it comes."""

    __slots__ = ("_finished", "_first")

    def __init__(self, first: Delayed[Answer], finished: Callable[[Answered], Answered]) -> None:
        self._first = first
        self._finished = finished

    def start(self, done: Callable[[Answer], None], failed: Callable[[Exception], None]) -> None:
        """See `Delayed`."""
        self._first.start(lambda answer: done(cast("Answer", self._finished(answer))), failed)

    def cancel(self) -> None:
        """See `Delayed`."""
        self._first.cancel()


class _Timed:
    """Awaits a coroutine, and adds up the time that its own steps take."""

    __slots__ = ("_add", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Answered], add: Callable[[float], None]) -> None:
        self._coroutine = coroutine
        self._add = add

    def __await__(self) -> Generator[Any, Any, Answered]:
        error: BaseException | None = None
        sent: Any = None
        while True:
            began = time.perf_counter()
            try:
                step = self._coroutine.send(sent) if error is None else self._coroutine.throw(error)
            except StopIteration as end:
                return cast("Answered", end.value)
            finally:
                self._add(time.perf_counter() - began)
            sent = error = None
            try:
                sent = yield step
            except BaseException as thrown:
                error = thrown
