"""A partition of an internal topic whose records are committed when a test says so, or never."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator

from kafka_client.errors import ErrorCode, KafkaError
from kafka_client.records import read_header
from kafka_client.records.header import assign_offset
from logd.storage import Appended


class ReplicatedPartition:
    """Batches in a list. `high_watermark` follows the log's end at once unless it `lags`."""

    index = 0
    log = None
    guard = None
    is_leased = True
    log_start_offset = 0
    max_message_bytes = 10_000

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.batches: list[bytes] = []
        self.epochs: list[int] = []
        self.leader_epoch = 0
        self.is_leader = True
        self.lags = False
        self.high_watermark = 0
        self._waiting: dict[asyncio.Future[None], int] = {}

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"

    @property
    def log_end_offset(self) -> int:
        return sum(read_header(batch).count for batch in self.batches)

    def append(self, batch: bytes, now_ms: int) -> Appended:
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        first = self.log_end_offset
        stamped = bytearray(batch)
        assign_offset(stamped, first, self.leader_epoch)
        self.batches.append(bytes(stamped))
        self.epochs.append(self.leader_epoch)
        if not self.lags:
            self.high_watermark = self.log_end_offset
        return Appended(first, self.log_end_offset - 1, -1, 0)

    def flushed(self, appended: Appended) -> Awaitable[None] | None:
        if appended.last_offset < self.high_watermark:
            return None
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = appended.last_offset
        return future

    def replicate(self) -> None:
        """Replicate the whole log to the followers and complete the waits."""
        self.high_watermark = self.log_end_offset
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def depose(self, code: ErrorCode = ErrorCode.NOT_LEADER_OR_FOLLOWER) -> None:
        """Let another broker lead; the waits fail with `code`."""
        self.is_leader = code is not ErrorCode.NOT_LEADER_OR_FOLLOWER
        for future in self._waiting:
            if not future.done():
                future.set_exception(KafkaError(code))
        self._waiting.clear()

    def truncate(self, offset: int) -> None:
        """Truncate the log, as a follower of another history does."""
        self.batches = [batch for batch in self.batches if read_header(batch).base_offset < offset]
        self.high_watermark = min(self.high_watermark, offset)

    def read_all(self) -> Iterator[memoryview]:
        yield from map(memoryview, tuple(self.batches))
