"""The buffer of a consumer's fetched batches, which hands them out record by record."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from kafka_client.fetcher.fetched import Fetched
from kafka_client.fetcher.parts import OnUnreadable, Part
from kafka_client.group.consumer_record import TIMESTAMP_TYPES, ConsumerRecord, TimestampType
from kafka_client.records.record import Record
from kafka_client.topic_partition import TopicPartition

Deserializer = Callable[[bytes], Any]


class RecordBuffer:
    """The fetched batches that are not handed out yet; only those of one partition are decoded.

    They are decoded part by part (`Fetched.parts`), so that memory stays bounded.
    """

    def __init__(
        self,
        key_deserializer: Deserializer | None,
        value_deserializer: Deserializer | None,
        on_unreadable: OnUnreadable | None,
    ) -> None:
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._on_unreadable = on_unreadable
        self._waiting: deque[Fetched] = deque()
        """The batches that are not decoded yet, in the order of handing out; they follow `_current`."""
        self._current: Fetched | None = None
        self._parts: Iterator[Part] = iter(())
        self._records: list[Record] = []
        """The decoded records of the current part of `_current`."""
        self._index = 0
        """The index of the next record in `_records`."""
        self._part_end = 0
        """The offset after the current part."""
        self._position = 0
        """The next offset of `_current` to hand out."""
        self._timestamp_type: TimestampType = "create_time"

    def __bool__(self) -> bool:
        return self._current is not None or bool(self._waiting)

    def put(self, fetched: Iterable[Fetched]) -> None:
        """Append fetched batches."""
        self._waiting.extend(fetched)

    def position(self, tp: TopicPartition) -> int | None:
        """Return the partition's next offset to hand out, or None if it has no batch in the buffer."""
        if self._current is not None and self._current.tp == tp:
            return self._position
        return next((fetched.position for fetched in self._waiting if fetched.tp == tp), None)

    def partitions(self) -> set[TopicPartition]:
        """Return the partitions that have batches in the buffer."""
        return {fetched.tp for fetched in (self._current, *self._waiting) if fetched is not None}

    def drop(self, tp: TopicPartition) -> None:
        """Drop the buffered batches of the partition."""
        if self._current is not None and self._current.tp == tp:
            self._end_current()
        if any(fetched.tp == tp for fetched in self._waiting):
            self._waiting = deque(fetched for fetched in self._waiting if fetched.tp != tp)

    def next(self) -> ConsumerRecord | None:
        """Return the next record, or None if there is none.

        Raises UnreadableBatch for a damaged batch without `on_unreadable`. Raises the error of a
        deserializer, with a note that names the record. After an error, `position` of the `current` partition
        is the offset of that record or batch.
        """
        while self._index >= len(self._records):
            if not self._decode_next_part():
                return None
        assert self._current is not None, "decoded records belong to it"
        tp = self._current.tp
        offset, timestamp_ms, key, value, headers = self._records[self._index]
        if key is not None and self._key_deserializer is not None:
            key = _deserialized(self._key_deserializer, key, "key", tp, offset)
        if value is not None and self._value_deserializer is not None:
            value = _deserialized(self._value_deserializer, value, "value", tp, offset)
        self._index += 1
        self._position = self._part_end if self._index == len(self._records) else offset + 1
        return ConsumerRecord(*tp, offset, timestamp_ms, self._timestamp_type, key, value, headers)

    @property
    def current(self) -> TopicPartition | None:
        """The partition whose records are handed out now, or None."""
        return None if self._current is None else self._current.tp

    def _decode_next_part(self) -> bool:
        """Decode the next part of the current partition, or go to the next partition.

        Return False if the buffer is empty.
        """
        if self._current is None:
            if not self._waiting:
                return False
            self._current = self._waiting.popleft()
            self._position = self._current.position
            self._parts = self._current.parts(on_unreadable=self._on_unreadable)
        part = next(self._parts, None)
        if part is None:
            self._end_current()
            return True
        self._records, self._part_end, timestamp_type = part
        self._index = 0
        self._timestamp_type = TIMESTAMP_TYPES[timestamp_type]
        if not self._records:
            self._position = self._part_end
        return True

    def _end_current(self) -> None:
        self._current = None
        self._parts = iter(())
        self._records, self._index = [], 0


def _deserialized(deserializer: Deserializer, data: bytes, what: str, tp: TopicPartition, offset: int) -> Any:
    try:
        return deserializer(data)
    except Exception as error:
        error.add_note(f"while deserializing the {what} of {tp} at offset {offset}")
        raise
