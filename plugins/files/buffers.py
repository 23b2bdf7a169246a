"""Buffers: the records of one partition that go into one file, and the file's name."""

from __future__ import annotations

import base64
import time

from connect.api import ColumnBatch, SinkRecord, TopicPartition

NO_ID = bytes(16)
"""The topic id of brokers without topic ids, and of tests without a broker."""


class Buffer:
    """Consecutive records of one partition, for the file that begins at the offset `begin`.

    `end` is the next multiple of `file.records.max`: the record there goes into the next file.
    """

    def __init__(self, tp: TopicPartition, topic: str, topic_id: bytes, begin: int, end: int) -> None:
        self.tp = tp
        """The partition that the records were read from."""
        self.topic = topic
        """The topic in the records, which a transform may have changed: the folder's name."""
        self.begin, self.end = begin, end
        self.records: list[SinkRecord] = []
        self.columns: list[ColumnBatch] = []
        """The records of a columnar format, in place of `records`."""
        self.lines: list[bytes] = []
        """JSON lines, many in one piece, in place of `records`."""
        self.last_offset = begin - 1
        """The offset of the last record."""
        self.bytes = 0
        """The size of the lines, or of the values as JSON: those are counted only for `file.bytes.max`."""
        self.created_at = time.monotonic()
        self._topic_id = topic_id
        self._line_records = 0

    @property
    def count(self) -> int:
        """The number of records."""
        return len(self.records) + sum(map(len, self.columns)) + self._line_records

    def add_lines(self, lines: bytes, record_count: int) -> None:
        """Add JSON lines, with the number of records that they were made of."""
        self.lines.append(lines)
        self._line_records += record_count
        self.bytes += len(lines)

    def name(self, suffix: str) -> str:
        """Return the file's name: topic, partition, first offset, and the topic's id.

        A topic that is deleted and made again has the same offsets again, but another id.
        """
        return f"{self.tp.topic}+{self.tp.partition}+{self.begin:020d}{name_end(self._topic_id, suffix)}"


def source_of(record: SinkRecord) -> TopicPartition:
    """Return the partition that the record was read from, whatever transforms made of it (KIP-793)."""
    return TopicPartition(record.original_topic, record.original_partition)


def name_end(topic_id: bytes, suffix: str) -> str:
    """Return the part of a file's name behind its offset."""
    return f".{suffix}" if topic_id == NO_ID else f"+{_text(topic_id)}.{suffix}"


def _text(topic_id: bytes) -> str:
    """Return a topic id as Kafka's tools print it."""
    return base64.urlsafe_b64encode(topic_id).decode().rstrip("=")
