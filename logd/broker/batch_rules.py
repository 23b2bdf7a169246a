"""What a topic's settings ask of a batch, beyond its holding together (``records.check_produced``).

Only the header is read, except on compacted topics (every record needs a key), where
``message.timestamp.before.max.ms`` is set (the header does not tell the oldest record's time), where the
header tells of a record too far ahead, where it does not tell the newest record's time (sarama's do not),
and where the topic's ``compression.type`` asks for another codec.
"""

from __future__ import annotations

from collections.abc import Sequence

from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.errors import CorruptRecordBatch, ErrorCode, KafkaError, RecordsRefused
from logd.records.build import Record, rebuild_batch
from logd.records.compression import Codec
from logd.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    NO_TIMESTAMP,
    BatchHeader,
    assign_max_timestamp,
    read_header,
)
from logd.records.reader import decode_records
from logd.records.validate import check_produced_records

RECORD_ERRORS_MAX = 10_000
"""An answer names so many bad records of a batch; the rest gets the error of the whole batch."""


class BatchRules:
    """The rules of one partition, named ``name`` in errors; to be made anew when the settings change."""

    __slots__ = (
        "_after_max",
        "_before_max",
        "_bytes_max",
        "_codec",
        "_config",
        "_keys_required",
        "_name",
        "_records_wanted",
        "_times_are_clients",
    )

    def __init__(self, name: str, config: TopicConfig) -> None:
        self._name = name
        self._config = config
        self._bytes_max = config.max_message_bytes
        self._keys_required = config.is_compacted
        self._times_are_clients = config.message_timestamp_type == "CreateTime"
        self._before_max = config.message_timestamp_before_max_ms if self._times_are_clients else LONG_MAX
        self._after_max = config.message_timestamp_after_max_ms
        self._records_wanted = config.is_compacted or self._before_max != LONG_MAX
        self._codec = _codec(config)

    def admit(self, header: BatchHeader, batch: memoryview, now_ms: int) -> tuple[BatchHeader, memoryview]:
        """The batch to append: this one, or the same records with the header or codec they are to have.

        Raises the KafkaError a batch deserves that is sound in itself but not allowed here.
        """
        if len(batch) > self._bytes_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"{self._name}: a batch of {len(batch)} bytes; max.message.bytes is {self._bytes_max}",
            )
        if header.count == 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{self._name}: a batch without records")
        if header.attributes & APPEND_TIME_BIT:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP, f"{self._name}: only the broker may set the log append time"
            )
        if header.max_timestamp < header.base_timestamp and self._times_are_clients:
            header, batch = _with_max_timestamp(batch)
        is_ahead = self._times_are_clients and header.max_timestamp - now_ms > self._after_max
        if self._records_wanted or is_ahead:
            self._check_records(check_produced_records(batch), header.base_offset, now_ms)
            if is_ahead:
                raise KafkaError(
                    ErrorCode.INVALID_TIMESTAMP,
                    f"{self._name}: the header's newest timestamp {header.max_timestamp} is no record's",
                )
        if self._codec is not None and self._codec != header.attributes & CODEC_MASK:
            return self._rebuilt(header, batch, self._codec)
        return header, batch

    def _check_records(self, records: Sequence[Record], base_offset: int, now_ms: int) -> None:
        """Raise RecordsRefused with every record that is at fault, in Kafka's words (KIP-467).

        INVALID_TIMESTAMP goes before INVALID_RECORD where a batch has both.
        """
        earliest, latest = now_ms - self._before_max, now_ms + self._after_max
        errors: list[tuple[int, str | None]] = []
        code = ErrorCode.INVALID_RECORD
        for offset, timestamp, key, *_ in records:
            if key is None and self._keys_required:
                problem = f"Compacted topic cannot accept message without key in topic partition {self._name}"
            elif (
                self._times_are_clients and not earliest <= timestamp <= latest and timestamp != NO_TIMESTAMP
            ):
                code = ErrorCode.INVALID_TIMESTAMP
                problem = (
                    f"Timestamp {timestamp} of message with offset {offset} is out of range. "
                    f"The timestamp should be within [{earliest}, {latest}]"
                )
            else:
                continue
            if len(errors) < RECORD_ERRORS_MAX:
                errors.append((offset - base_offset, problem))
        if not errors:
            return
        if code is ErrorCode.INVALID_TIMESTAMP:
            summary = "One or more records have been rejected due to invalid timestamp"
        else:
            shown = ", ".join(
                f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3]
            )
            summary = (
                f"One or more records have been rejected due to {len(errors)} record errors in total, "
                f"and only showing the first three errors at most: [{shown}]"
            )
        raise RecordsRefused(code, summary, errors)

    def _rebuilt(
        self, header: BatchHeader, batch: memoryview, codec: Codec
    ) -> tuple[BatchHeader, memoryview]:
        try:
            records = decode_records(batch)
        except CorruptRecordBatch as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self._name}: {error}") from None
        rebuilt = rebuild_batch(header, records, codec=codec, level=_level(self._config))
        return read_header(rebuilt), memoryview(rebuilt)


def _with_max_timestamp(batch: memoryview) -> tuple[BatchHeader, memoryview]:
    """The batch with its newest record's time in the header, as Apache Kafka mends it, too.

    By it records are found by time, and segments expire.
    """
    mended = bytearray(batch)
    assign_max_timestamp(mended, max(record[1] for record in check_produced_records(batch)))
    return read_header(mended), memoryview(mended)


def _codec(config: TopicConfig) -> Codec | None:
    """The codec every batch is to have; None leaves it to the producers."""
    if config.compression_type == "producer":
        return None
    return Codec.NONE if config.compression_type == "uncompressed" else Codec.named(config.compression_type)


def _level(config: TopicConfig) -> int | None:
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    return levels.get(config.compression_type)
