"""A partition of an internal topic, as a coordinator writes it and brings its core to what it says.

What a record means is the coordinator's: `groups.log` and `transactions.log`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

from kafka_client.errors import ErrorCode, KafkaError, MalformedMessage
from kafka_client.futures import retrieve_failure
from kafka_client.records import Record, build_batch, decode_records, iter_batches
from kafka_client.records.header import BatchHeader
from logd.broker.partition.partition import Partition
from logd.storage import Appended

LOADING_SLICE_S = 0.005
"""How long replaying a log holds the event loop before others have their turn."""

E = TypeVar("E")
R = TypeVar("R")

log = logging.getLogger("logd.broker")


_WAIT_ERRORS = {
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""Error codes for waiting requests whose records do not become committed; other codes are sent unchanged."""


class CoordinatorLog:
    """The log of one term of leadership: `leader_epoch` is that at its making.

    `last` is where the last records went, or ended then; None in an empty log. `on_deposed` is called when
    the partition says NOT_LEADER_OR_FOLLOWER, which ends the term for good: one that only cannot know for now
    whether it still leads has to say NOT_ENOUGH_REPLICAS, or to have it waited for. `close` may follow.
    """

    def __init__(self, partition: Partition, now_ms: Callable[[], int]) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.on_deposed: Callable[[], None] = lambda: None
        self._now_ms = now_ms
        start, end = partition.log_start_offset, partition.log_end_offset
        self.last = None if start == end else Appended(end - 1, end - 1, -1, start)
        self._waiting: set[asyncio.Future[None]] = set()
        self._is_closed = False

    def append(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        admit: Callable[[], None] | None = None,
        **facts: Any,
    ) -> int:
        """Append keys and values as one batch; the offset of the first. `facts` are `build_batch`'s.

        `admit` is called once the batch is known to fit, and raises what keeps it out. KafkaError:
        RECORD_LIST_TOO_LARGE, NOT_COORDINATOR once closed, when a newer term has begun or where another one
        may be, or what the log says.
        """
        if self._is_over:
            raise self._no_coordinator()
        self.check_lease()
        now_ms = self._now_ms()
        batch = build_batch([(now_ms, key, value, ()) for key, value in records], **facts)
        limit = self.partition.max_message_bytes
        if len(batch) > limit:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(batch)} bytes for {self.partition}, at most {limit}"
            )
        if admit is not None:
            admit()
        try:
            self.last = self.partition.append(batch, now_ms)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                # Not now: the coordinator's core is in the middle of a decision.
                asyncio.get_running_loop().call_soon(self.on_deposed)
            raise
        return self.last.base_offset

    @property
    def _is_over(self) -> bool:
        """True if it was closed, or will be: what stands in the log may be another history than was decided
        here, up to any offset.
        """
        return self._is_closed or self.partition.leader_epoch != self.leader_epoch

    # Waiting until records are committed

    def flushed(self, appended: Appended | None = None) -> Awaitable[None] | None:
        """Return an awaitable that ends when an append (by default the last) is committed, or None if it is.

        Nothing may be acknowledged or shown before; see `Partition.flushed`.

        Awaiting raises KafkaError: NOT_COORDINATOR once closed or where another broker may coordinate,
        COORDINATOR_NOT_AVAILABLE, KAFKA_STORAGE_ERROR.
        """
        if self._is_over or not self.partition.is_leased:
            return _Commitment(self, None)
        appended = appended or self.last
        if appended is None:
            return None
        waiting = self.partition.flushed(appended)
        return None if waiting is None else _Commitment(self, waiting)

    def marked(self, marker: Appended) -> None:
        """Note a marker that ends a transaction of this log: responses wait until it is committed, too."""
        self.last = marker

    def is_committed(self, appended: Appended | None = None) -> bool:
        """Return True if an append (by default the last) is committed: `flushed` returns None then."""
        appended = appended or self.last
        return appended is None or (
            appended.last_offset < self.partition.high_watermark and not self._is_over
        )

    async def committed(self, waiting: Awaitable[None] | None) -> None:
        """Await what `Partition.flushed` gave, None where the term or the lease was over already; see
        `flushed`.
        """
        if waiting is None or self._is_over:
            raise self._no_coordinator()
        inner = asyncio.ensure_future(waiting)
        inner.add_done_callback(retrieve_failure)  # who waits for it may be cancelled
        future = asyncio.shield(inner)  # others may wait for the same
        self._waiting.add(future)
        try:
            await future
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if not self._is_closed or task is None or task.cancelling():
                raise
            raise self._no_coordinator() from None
        except KafkaError as error:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self.on_deposed()
            raise KafkaError(_WAIT_ERRORS.get(error.code, error.code), error.message) from error
        finally:
            self._waiting.discard(future)
        self.check_lease()

    def close(self) -> None:
        """Append nothing any more; waiting requests are answered with NOT_COORDINATOR."""
        self._is_closed = True
        for future in tuple(self._waiting):
            future.cancel()

    def check_lease(self) -> None:
        """Raise KafkaError(NOT_COORDINATOR) where another broker may coordinate by now."""
        if not self.partition.is_leased:
            raise self._no_coordinator()

    def _no_coordinator(self) -> KafkaError:
        return KafkaError(ErrorCode.NOT_COORDINATOR, f"{self.partition} has another coordinator")

    # Replaying

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to replay."""
        return self.partition.log_start_offset == self.partition.log_end_offset

    def batches(self) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """Yield all batches in order, also those of open transactions and control batches."""
        for chunk in self.partition.read_all():
            for position, header in iter_batches(chunk):
                yield header, decode_records(chunk, position)

    def decoded(
        self, records: Iterable[Record], decode: Callable[[bytes, bytes | None], R | None]
    ) -> Iterator[tuple[int, R]]:
        """Yield the records by their offsets.

        One that cannot be read is reported and left out, so that the others can be used. One for which
        `decode` gives None is left out too.
        """
        for offset, _, key, value, _ in records:
            try:
                decoded = None if key is None else decode(key, value)
            except MalformedMessage as error:
                log.warning("%s, offset %d cannot be read: %s", self.partition, offset, error)
                continue
            if decoded is not None:
                yield offset, decoded


class _Commitment:
    """Awaits once it is awaited itself: who only looks whether there is something to wait for may drop it."""

    __slots__ = ("_log", "_waiting")

    def __init__(self, log: CoordinatorLog, waiting: Awaitable[None] | None) -> None:
        self._log = log
        self._waiting = waiting

    def __await__(self) -> Generator[Any, None, None]:
        return self._log.committed(self._waiting).__await__()


class Loader(Generic[E]):
    """Replays a log into a coordinator's core, once; the core may be used while `is_loaded`. `on_loaded` is
    called when all is applied, before anybody else uses it.
    """

    def __init__(
        self,
        entries: Callable[[], Iterator[E]],
        apply: Callable[[E], None],
        *,
        is_empty: Callable[[], bool],
        on_loaded: Callable[[], None] = lambda: None,
    ) -> None:
        self.is_loaded = False
        self._is_closed = False
        self._entries = entries
        self._apply = apply
        self._is_empty = is_empty
        self._on_loaded = on_loaded

    async def load(self) -> int | None:
        """Replay the log in slices of the event loop's time. Return how many entries were applied, or None if
        closed.

        Raises MillstreamError when the log cannot be read.
        """
        if self._is_closed:
            return None
        count = 0
        loop = asyncio.get_running_loop()
        until = loop.time() + LOADING_SLICE_S
        for entry in self._entries():
            self._apply(entry)
            count += 1
            if loop.time() >= until:
                await asyncio.sleep(0)
                if self._is_closed:
                    return None
                until = loop.time() + LOADING_SLICE_S
        self._end()
        return count

    def load_if_empty(self) -> bool:
        """Mark an empty log as replayed. Return True if the core is ready."""
        if not self.is_loaded and not self._is_closed and self._is_empty():
            self._end()
        return self.is_loaded

    def close(self) -> None:
        """Mark the core as not loaded, for good."""
        self.is_loaded, self._is_closed = False, True

    def _end(self) -> None:
        self.is_loaded = True
        self._on_loaded()
