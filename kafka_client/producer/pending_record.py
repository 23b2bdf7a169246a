"""A record that waits for its acknowledgement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from typing import Any

from kafka_client.producer.record_metadata import RecordMetadata


class PendingRecord:
    """A queued record. `await` waits for the acknowledgement and returns its `RecordMetadata`.

    The await raises what the record failed with; see `Producer.send`. A cancelled await leaves the record in
    the queue: the record is still sent, and `flush` still waits for it. It may be awaited more than once.
    """

    __slots__ = ("_future", "_partition", "_timestamp_ms", "_topic")

    def __init__(
        self, future: asyncio.Future[int | None], topic: str, partition: int, timestamp_ms: int
    ) -> None:
        self._future = future
        self._topic = topic
        self._partition = partition
        self._timestamp_ms = timestamp_ms

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        offset = yield from asyncio.shield(self._future).__await__()
        return self._metadata(offset)

    def done(self) -> bool:
        """Return True if the record was acknowledged or has failed."""
        return self._future.done()

    def result(self) -> RecordMetadata:
        """Return the metadata of an acknowledged record.

        Raises what the record failed with. Raises asyncio.InvalidStateError while it is not `done`.
        """
        return self._metadata(self._future.result())

    def add_done_callback(self, callback: Callable[[PendingRecord], object]) -> None:
        """Call `callback` with this object, from the event loop, once the record is `done`."""
        self._future.add_done_callback(lambda _: callback(self))

    def _metadata(self, offset: int | None) -> RecordMetadata:
        return RecordMetadata(self._topic, self._partition, offset, self._timestamp_ms)
