"""The search for a time in one batch, which may take long where the batch is compressed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka_client.errors import CorruptRecordBatch, ErrorCode, KafkaError
from kafka_client.records.compression import DECOMPRESSED_LIMIT, DecompressedTooLarge
from kafka_client.records.header import BatchHeader, Buffer
from kafka_client.records.reader import RecordReader

if TYPE_CHECKING:
    from logd.config.topic import TopicConfig


class TimestampSearch(NamedTuple):
    """A search in `batch` for the first record from offset `start` on at or after `timestamp` (ms).

    `partition` is the name for errors. Nothing of the log is touched, so it may run in any thread.
    """

    partition: str
    batch: Buffer
    header: BatchHeader
    timestamp: int
    start: int
    config: TopicConfig

    def run(self, limit: int = DECOMPRESSED_LIMIT) -> tuple[int, int] | None:
        """Return (timestamp, offset) of the record, None if the batch has none.

        The batch is decompressed in pieces, up to that record. Raises KafkaError INVALID_RECORD if it cannot
        be read; DecompressedTooLarge if it passes a smaller `limit` of bytes.
        """
        header = self.header
        record_limit = self.config.max_decompressed_message_bytes if header.codec else DECOMPRESSED_LIMIT
        try:
            reader = RecordReader(self.batch, 0, header, limit=limit, record_limit=record_limit)
            return reader.find(self.timestamp, self.start)
        except CorruptRecordBatch as error:
            if isinstance(error, DecompressedTooLarge) and limit < DECOMPRESSED_LIMIT:
                raise
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"{self.partition}: offsets {header.base_offset} to {header.last_offset} cannot be read: "
                f"{error}",
            ) from None


class NotSearched(Exception):
    """A batch takes too long to search at once: run ``search`` in a thread, then go on after the batch."""

    def __init__(self, search: TimestampSearch) -> None:
        super().__init__()
        self.search = search
