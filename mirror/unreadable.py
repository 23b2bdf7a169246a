"""Batches of the source that cannot be read, and the ones an operator has named to be skipped."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from kafka_client import TopicPartition
from kafka_client.errors import CorruptRecordBatch, UnreadableBatch
from kafka_client.fetcher.parts import unreadable_batch
from kafka_client.records import BatchHeader, RecordReader, check_crc
from mirror.places import Places, parse_places

SKIP_KEY = "skip.unreadable.batches"
_log = logging.getLogger(__name__)


def parse_skips(text: str) -> Places:
    """Return the places in `flights-0@1234, flights-2@17`. Raises ConfigError."""
    return parse_places(SKIP_KEY, text)


def find_unreadable(tp: TopicPartition, header: BatchHeader, batch: memoryview) -> UnreadableBatch | None:
    """Walk all records of a batch. Return the error that names the batch if it cannot be read."""
    try:
        check_crc(batch, 0, header)
        RecordReader(batch, 0, header).skip_to(header.next_offset)
    except CorruptRecordBatch as error:
        return unreadable_batch(tp, header, error)
    return None


class UnreadableSkips:
    """The unreadable batches to skip, each named by an offset in it, and the count of skipped ones.

    A readable batch is never skipped, even if an operator names it.
    """

    def __init__(self, places: Iterable[tuple[TopicPartition, int]] = ()) -> None:
        self._offsets: dict[TopicPartition, list[int]] = {}
        for tp, offset in places:
            self._offsets.setdefault(tp, []).append(offset)
        self.batches = self.records = 0
        """Batches and records skipped so far; a batch that is read again counts again."""

    def named_and_unreadable(
        self, tp: TopicPartition, header: BatchHeader, batch: memoryview
    ) -> UnreadableBatch | None:
        """Return the error that names the batch if an operator has named it and it cannot be read."""
        if not self._names(tp, header.base_offset, header.last_offset):
            return None
        return find_unreadable(tp, header, batch)

    def skip(self, unreadable: UnreadableBatch) -> None:
        """Count and log a batch that is skipped. Raises the error itself if the batch is not named."""
        tp = TopicPartition(unreadable.topic, unreadable.partition)
        if not self._names(tp, unreadable.first_offset, unreadable.last_offset):
            raise unreadable
        self.batches += 1
        self.records += unreadable.record_count
        _log.warning(
            "%s: skipped the unreadable batch of offsets %d to %d, as %s says: %s",
            tp,
            unreadable.first_offset,
            unreadable.last_offset,
            SKIP_KEY,
            unreadable.reason,
        )

    def _names(self, tp: TopicPartition, first: int, last: int) -> bool:
        return any(first <= offset <= last for offset in self._offsets.get(tp, ()))


def explain_unreadable(unreadable: UnreadableBatch) -> str:
    """Return where the batch is, why it cannot be read, and which setting skips it."""
    tp = TopicPartition(unreadable.topic, unreadable.partition)
    first, last = unreadable.first_offset, unreadable.last_offset
    return (
        f"the batch of offsets {first} to {last} cannot be read: {unreadable.reason}. "
        f"To go on without it, set {SKIP_KEY}={tp}@{first}"
    )
