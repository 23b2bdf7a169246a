"""One input partition of a task: what was fetched and not yet processed, decoded a fetch at a time.

`position` is the next offset to process, what a commit writes; `fetched` the next offset to fetch. Between
them lies what waits here. `end` is the broker's log end as last heard of (-1: never): the input is known to
be empty when everything up to it was fetched and processed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Sequence
from operator import index

from logd.client import TopicPartition
from logd.records import Headers, Record
from streams.config import ExceptionHandler
from streams.errors import ProcessingError, SerializationError, StreamsError
from streams.graph import SourceNode, TimestampExtractor
from streams.processors.metrics import NodeMetrics
from streams.processors.record import Process
from streams.processors.wiring import TaskState
from streams.serdes import Serde

log = logging.getLogger(__name__)

Decoded = tuple[int, object, object, Headers, int]
"""Event time (ms), key, value, headers, offset."""
_MISSING = object()


class InputQueue:
    """Records of one partition, and the function that takes them."""

    def __init__(
        self,
        tp: TopicPartition,
        source: SourceNode,
        head: Process,
        metrics: NodeMetrics,
        *,
        position: int,
        end: int,
        task_id: str,
        on_bad_record: ExceptionHandler,
    ) -> None:
        self.tp = tp
        self.source = source
        self.position = position
        self.fetched = position
        self.end = end
        self.idle_since: int | None = None
        self._process = head
        self._metrics = metrics
        self._task_id = task_id
        self._on_bad_record = on_bad_record
        self._chunks: deque[tuple[list[Record], int]] = deque()
        self._chunk: list[Decoded] = []
        self._next = 0
        self._chunk_end = position
        self._waiting = 0

    def __len__(self) -> int:
        """How many records wait."""
        return self._waiting + len(self._chunk) - self._next

    def add(self, records: list[Record], next_offset: int, end: int) -> None:
        """Take what was fetched: records by offset, where the next fetch begins, and the log end then."""
        self._chunks.append((records, next_offset))
        self._waiting += len(records)
        self.fetched = next_offset
        self.end = max(self.end, end)
        self.idle_since = None

    def reset(self, position: int, end: int) -> None:
        """Go on at ``position``: what was next is gone, or the topic was made anew and ends at ``end``."""
        if not len(self) and not self._chunks:
            self.position = position
        self.fetched, self.end = position, end

    @property
    def is_caught_up(self) -> bool:
        """Whether everything up to the last known log end was fetched."""
        return 0 <= self.end <= self.fetched

    def head_timestamp(self) -> int | None:
        """Event time of the next record, None if there is none."""
        while self._next >= len(self._chunk):
            if not self._chunks:
                return None
            records, chunk_end = self._chunks.popleft()
            self._waiting -= len(records)
            self._chunk = self._decode(records) if records else []
            self._next = 0
            self._chunk_end = chunk_end
            if not self._chunk:
                self.position = chunk_end
        return self._chunk[self._next][0]

    def run(self, state: TaskState, bound: int | None, limit: int) -> int:
        """Process up to ``limit`` records, as long as their time is not above ``bound``; returns how many.

        Raises what the topology's functions raise; ``state`` says at which record.
        Call after `head_timestamp` said there is one; that one is processed whatever the bound.
        """
        process, begin = self._process, self._next
        state.topic, state.partition = self.tp
        records = self._chunk[begin : begin + limit]
        done = 0
        try:
            for timestamp, key, value, headers, offset in records:
                if bound is not None and timestamp > bound and done:
                    break
                if timestamp > state.stream_time:
                    state.stream_time = timestamp
                state.offset = offset
                process(key, value, timestamp, headers)
                done += 1
        finally:
            self._advance(begin + done)
            self._metrics.process_total += done
        return done

    def _advance(self, index: int) -> None:
        self._next = index
        self.position = self._chunk[index][4] if index < len(self._chunk) else self._chunk_end

    # -- decoding

    def _decode(self, records: list[Record]) -> list[Decoded]:
        keys = self._values(self.source.key_serde, records, [record[2] for record in records])
        values = self._values(self.source.value_serde, records, [record[3] for record in records])
        decoded: list[Decoded] = [
            (timestamp, key, value, headers, offset)
            for (offset, timestamp, _, _, headers), key, value in zip(records, keys, values, strict=True)
            if key is not _MISSING and value is not _MISSING
        ]
        self._metrics.dropped_records_total += len(records) - len(decoded)
        if (extract := self.source.timestamp_extractor) is not None:
            decoded = [self._extracted(extract, each) for each in decoded]
        self._check_times(decoded)
        return decoded

    def _extracted(self, extract: TimestampExtractor, record: Decoded) -> Decoded:
        timestamp, key, value, headers, offset = record
        try:
            return index(extract(key, value, timestamp)), key, value, headers, offset
        except Exception as error:
            topic, partition = self.tp
            raise ProcessingError(
                self._task_id, self.source.name, topic=topic, partition=partition, offset=offset
            ) from error

    def _check_times(self, decoded: list[Decoded]) -> None:
        for timestamp, _, _, _, offset in decoded:
            if timestamp < 0:
                raise StreamsError(
                    f"{self.tp} offset {offset}: timestamp {timestamp} is negative; "
                    "give the source a timestamp_extractor that finds one"
                )

    def _values(
        self, serde: Serde[object], records: list[Record], data: list[bytes | None]
    ) -> Sequence[object]:
        try:
            return serde.deserialize_many(data)
        except Exception:
            # One of them is bad: find out which, the others are processed.
            return [self._value(serde, record[0], each) for record, each in zip(records, data, strict=True)]

    def _value(self, serde: Serde[object], offset: int, data: bytes | None) -> object:
        if data is None:
            return None
        try:
            return serde.deserialize(data)
        except Exception as error:
            problem = SerializationError(f"{type(serde).__name__}: {error}", *self.tp, offset)
            if self._on_bad_record(problem) == "fail":
                raise problem from error
            log.warning("record left out: %s", problem)
            return _MISSING
