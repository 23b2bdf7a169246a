"""The records of what was fetched, a bounded number at a time; batches that cannot be read are named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, Protocol, TypeAlias

from kafka_client.errors import CorruptRecordBatch, UnreadableBatch
from kafka_client.records import BatchHeader, Record, RecordReader, check_crc
from kafka_client.topic_partition import TopicPartition

PART_RECORDS = 10_000
"""How many records are objects at the same time, unless somebody says otherwise."""

OnUnreadable: TypeAlias = Callable[[UnreadableBatch], None]
"""Takes note of a batch that is passed over."""


class Batches(Protocol):
    """Batches of one partition, as `Fetched` has them."""

    @property
    def tp(self) -> TopicPartition:
        """The partition."""

    @property
    def position(self) -> int:
        """The offset that was asked for; the first batch may begin before it."""

    @property
    def next_offset(self) -> int:
        """The offset after the last batch."""

    def batches(
        self, *, on_unreadable: OnUnreadable | None = None
    ) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Yield each batch with its header."""


class Part(NamedTuple):
    """The next records of one partition in offset order, and the offset at which the next part starts.

    `timestamp_type`: 0 create time, 1 log append time, from the last batch.
    """

    records: list[Record]
    next_offset: int
    timestamp_type: int


def read_parts(
    fetched: Batches, max_records: int, on_unreadable: OnUnreadable | None = None
) -> Iterator[Part]:
    """Yield what was fetched in parts of at most `max_records` records. The last part may have none.

    A batch that cannot be read is given to `on_unreadable` and passed over. Without it UnreadableBatch is
    raised, once the records before the batch were yielded.
    """
    records: list[Record] = []
    timestamp_type = 0
    try:
        for header, batch in fetched.batches(on_unreadable=on_unreadable):
            try:
                reader = open_reader(fetched, header, batch)
                timestamp_type = header.timestamp_type
                while reader.remaining:
                    records += reader.records(max_records - len(records))
                    if len(records) >= max_records:
                        after = records[-1][0] + 1 if reader.remaining else header.next_offset
                        yield Part(records, after, timestamp_type)
                        records = []
            except CorruptRecordBatch as error:
                unreadable = unreadable_batch(fetched.tp, header, error)
                if on_unreadable is None:
                    raise unreadable from error
                on_unreadable(unreadable)
    except UnreadableBatch:
        if records:
            yield Part(records, records[-1][0] + 1, timestamp_type)
        raise
    yield Part(records, fetched.next_offset, timestamp_type)


def open_reader(fetched: Batches, header: BatchHeader, batch: memoryview) -> RecordReader:
    """Return a reader of a batch's records from the fetched position on. Raises CorruptRecordBatch."""
    check_crc(batch, 0, header)
    reader = RecordReader(batch, 0, header)
    if header.base_offset < fetched.position:
        reader.skip_to(fetched.position)
    return reader


@contextmanager
def reading(tp: TopicPartition, header: BatchHeader) -> Iterator[None]:
    """Have errors of reading the batch of `header` name it: CorruptRecordBatch becomes UnreadableBatch."""
    try:
        yield
    except CorruptRecordBatch as error:
        raise unreadable_batch(tp, header, error) from error


def unreadable_batch(tp: TopicPartition, header: BatchHeader, error: CorruptRecordBatch) -> UnreadableBatch:
    """Return the error that names the batch of `header`."""
    return UnreadableBatch(
        tp.topic,
        tp.partition,
        first_offset=header.base_offset,
        last_offset=header.last_offset,
        record_count=header.count,
        reason=str(error),
    )
