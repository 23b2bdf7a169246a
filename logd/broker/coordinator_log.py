"""A partition of an internal topic, as a coordinator writes it and brings its core to what it says.

What a record means is the coordinator's: `groups.log` and `transactions.log`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from logd.broker.partition import Partition
from logd.errors import ErrorCode, KafkaError, MalformedMessage
from logd.records import Record, build_batch, decode_records, iter_batches
from logd.records.header import BatchHeader

if TYPE_CHECKING:
    from logd.storage import Appended

LOADING_SLICE_S = 0.005
"""How long replaying a log holds the event loop before others have their turn."""

E = TypeVar("E")
R = TypeVar("R")

log = logging.getLogger("logd.broker")


class CoordinatorLog:
    """`last` is where the last records went, None before the first."""

    def __init__(self, partition: Partition, now_ms: Callable[[], int]) -> None:
        self.partition = partition
        self.last: Appended | None = None
        self._now_ms = now_ms

    def append(
        self,
        records: Sequence[tuple[bytes, bytes | None]],
        *,
        admit: Callable[[], None] | None = None,
        **facts: Any,
    ) -> int:
        """Append keys and values as one batch; the offset of the first. `facts` are `build_batch`'s.

        `admit` is called once the batch is known to fit, and raises what keeps it out. KafkaError:
        RECORD_LIST_TOO_LARGE, or what the log says.
        """
        now_ms = self._now_ms()
        batch = build_batch([(now_ms, key, value, ()) for key, value in records], **facts)
        limit = self.partition.max_message_bytes
        if len(batch) > limit:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE, f"{len(batch)} bytes for {self.partition}, at most {limit}"
            )
        if admit is not None:
            admit()
        self.last = self.partition.append(batch, now_ms)
        return self.last.base_offset

    def flushed(self, appended: Appended | None = None) -> Awaitable[None] | None:
        """What to await before an append (by default the last) is acknowledged; see `Partition.flushed`."""
        appended = appended or self.last
        return None if appended is None else self.partition.flushed(appended)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to replay."""
        return self.partition.log_start_offset == self.partition.log_end_offset

    def batches(self) -> Iterator[tuple[BatchHeader, list[Record]]]:
        """All batches in order, also those of open transactions and control batches."""
        for chunk in self.partition.read_all():
            for position, header in iter_batches(chunk):
                yield header, decode_records(chunk, position)

    def decoded(
        self, records: Iterable[Record], decode: Callable[[bytes, bytes | None], R | None]
    ) -> Iterator[tuple[int, R]]:
        """The records by their offsets.

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
        """How many entries were applied, in slices of the event loop's time; None if it was closed meanwhile.

        Raises MillstreamError when the log cannot be read.
        """
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
        """A log without records is replayed at once; whether the core is ready."""
        if not self.is_loaded and not self._is_closed and self._is_empty():
            self._end()
        return self.is_loaded

    def close(self) -> None:
        """The core is not to be used any more."""
        self.is_loaded, self._is_closed = False, True

    def _end(self) -> None:
        self.is_loaded = True
        self._on_loaded()
