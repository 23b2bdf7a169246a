"""Which batches a partition takes, by their records and the topic's settings; see Kafka's LogValidator.

Every record is walked (`records.check_records`), decompressed in pieces. The header's max timestamp is
corrected to the newest record's. If validation would hold up the event loop, NotYetValidated is raised, and
`BatchRules.validate` does the work in any thread.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from kafka_client.errors import ErrorCode, KafkaError, RecordsRefused
from kafka_client.records.build import seal
from kafka_client.records.compression import (
    DECOMPRESSED_LIMIT,
    PIECE_SIZE,
    Codec,
    CompressedTooLarge,
    DecompressedTooLarge,
    compress_pieces,
    pieces,
)
from kafka_client.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    BatchHeader,
    Buffer,
    assign_max_timestamp,
    read_header,
)
from kafka_client.records.reader import Checked, RecordReader
from kafka_client.records.validate import check_records
from logd.config.topic import TopicConfig

RECORD_ERRORS_MAX = 10_000
"""How many bad records of a batch a response names; the others get the error of the whole batch."""

LOOP_COMPRESSED_MAX = 32 * 1024
"""Compressed bytes of a batch that is validated on the event loop, at most."""
LOOP_DECOMPRESSED_MAX = PIECE_SIZE
"""Bytes that such a batch may decompress to: about a millisecond's work."""
LOOP_RECOMPRESSED_MAX = 4 * 1024
"""Bytes of a batch whose codec is changed on the event loop, at most."""
LOOP_REFUSED_MAX = 10_000
"""Records of a batch whose bad records are looked for on the event loop, at most."""
RECORDS_AT_ONCE = 1_000


class Validated(NamedTuple):
    """A batch as it is to be appended, and the rules it was validated by."""

    rules: BatchRules
    header: BatchHeader
    batch: Buffer


class NotYetValidated(Exception):
    """Validating a batch would hold up the event loop: run ``rules.validate`` in a thread, and try again."""

    def __init__(self, rules: BatchRules, header: BatchHeader) -> None:
        super().__init__()
        self.rules = rules
        self.header = header


class BatchRules:
    """The rules for batches of a partition, which errors call ``name``; replaced when its settings change."""

    __slots__ = (
        "_after_max",
        "_before_max",
        "_bytes_max",
        "_codec",
        "_keys_required",
        "_level",
        "_name",
        "_record_bytes_max",
        "_times_are_clients",
    )

    def __init__(self, name: str, config: TopicConfig) -> None:
        self._name = name
        self._bytes_max = config.max_message_bytes
        self._record_bytes_max = config.max_decompressed_message_bytes
        self._keys_required = config.is_compacted
        self._times_are_clients = config.message_timestamp_type == "CreateTime"
        self._before_max = config.message_timestamp_before_max_ms
        self._after_max = config.message_timestamp_after_max_ms
        self._codec = _codec(config)
        self._level = _level(config)

    def admit(self, header: BatchHeader, batch: memoryview, now_ms: int) -> tuple[BatchHeader, Buffer]:
        """Return the batch to append: this one, or the same records with another header or codec.

        Raises the KafkaError that a batch deserves that is not sound, or not allowed here; NotYetValidated if
        that would take too long to find out.
        """
        if len(batch) > self._bytes_max:
            raise self._too_large(f"a batch of {len(batch)} bytes")
        if header.count == 0:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{self._name}: a batch without records")
        attributes = header.attributes
        if attributes & APPEND_TIME_BIT:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP, f"{self._name}: only the broker may set the log append time"
            )
        if attributes & CODEC_MASK and len(batch) > LOOP_COMPRESSED_MAX:
            raise NotYetValidated(self, header)
        if self._is_recompressed(header) and len(batch) > LOOP_RECOMPRESSED_MAX:
            raise NotYetValidated(self, header)
        try:
            checked = self._check(header, batch, LOOP_DECOMPRESSED_MAX)
        except DecompressedTooLarge:
            raise NotYetValidated(self, header) from None
        if self._is_refused(checked, now_ms):
            if header.count > LOOP_REFUSED_MAX:
                raise NotYetValidated(self, header)
            raise self._refusal(header, batch, now_ms)
        return self._as_stored(header, batch, checked)

    def validate(self, header: BatchHeader, batch: memoryview, now_ms: int) -> Validated:
        """Do what is left to do after NotYetValidated; may be called in any thread.

        Raises the KafkaError that the batch deserves.
        """
        try:
            checked = self._check(header, batch, DECOMPRESSED_LIMIT)
        except DecompressedTooLarge as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, f"{self._name}: {error}") from None
        if self._is_refused(checked, now_ms):
            raise self._refusal(header, batch, now_ms)
        return Validated(self, *self._as_stored(header, batch, checked))

    def _check(self, header: BatchHeader, batch: Buffer, limit: int) -> Checked:
        return check_records(batch, header, limit=limit, record_limit=self._record_bytes_max)

    def _is_refused(self, checked: Checked, now_ms: int) -> bool:
        if checked.keyless and self._keys_required:
            return True
        return self._times_are_clients and (
            checked.max_timestamp > now_ms + self._after_max
            or checked.min_timestamp < now_ms - self._before_max
        )

    def _refusal(self, header: BatchHeader, batch: Buffer, now_ms: int) -> RecordsRefused:
        """Return the error that names the records that are at fault, in Kafka's words (KIP-467).

        INVALID_TIMESTAMP goes before INVALID_RECORD where a batch has both.
        """
        earliest, latest = now_ms - self._before_max, now_ms + self._after_max
        errors: list[tuple[int, str | None]] = []
        count = 0
        code = ErrorCode.INVALID_RECORD
        reader = RecordReader(batch, 0, header)
        while records := reader.records(RECORDS_AT_ONCE):
            for offset, timestamp, key, *_ in records:
                if key is None and self._keys_required:
                    problem = (
                        f"Compacted topic cannot accept message without key in topic partition {self._name}"
                    )
                elif (
                    self._times_are_clients
                    and not earliest <= timestamp <= latest
                    and timestamp != NO_TIMESTAMP
                ):
                    code = ErrorCode.INVALID_TIMESTAMP
                    problem = (
                        f"Timestamp {timestamp} of message with offset {offset} is out of range. "
                        f"The timestamp should be within [{earliest}, {latest}]"
                    )
                else:
                    continue
                count += 1
                if count <= RECORD_ERRORS_MAX:
                    errors.append((offset - header.base_offset, problem))
        if code is ErrorCode.INVALID_TIMESTAMP:
            summary = "One or more records have been rejected due to invalid timestamp"
        else:
            shown = ", ".join(
                f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:3]
            )
            summary = (
                f"One or more records have been rejected due to {count} record errors in total, "
                f"and only showing the first three errors at most: [{shown}]"
            )
        return RecordsRefused(code, summary, errors)

    def _as_stored(
        self, header: BatchHeader, batch: memoryview, checked: Checked
    ) -> tuple[BatchHeader, Buffer]:
        """Return the batch with the max timestamp and the codec that it is to have.

        By the max timestamp records are found by time, and segments expire. Clients write others: kafkajs and
        sarama do.
        """
        newest = checked.max_timestamp if self._times_are_clients else header.max_timestamp
        if self._codec is not None and self._is_recompressed(header):
            return self._recompressed(header, batch, self._codec, newest)
        if newest == header.max_timestamp:
            return header, batch
        mended = bytearray(batch)
        assign_max_timestamp(mended, newest)
        return read_header(mended), memoryview(mended)

    def _is_recompressed(self, header: BatchHeader) -> bool:
        return self._codec is not None and self._codec != header.attributes & CODEC_MASK

    def _recompressed(
        self, header: BatchHeader, batch: memoryview, codec: Codec, max_timestamp: int
    ) -> tuple[BatchHeader, Buffer]:
        """Return the batch with the bytes of its records compressed by another codec."""
        stored = batch[HEADER_SIZE:]
        is_plain = header.codec is Codec.NONE
        body: Iterable[Buffer] = [stored] if is_plain else pieces(header.codec, stored, DECOMPRESSED_LIMIT)
        try:
            compressed = compress_pieces(codec, body, self._bytes_max - HEADER_SIZE, self._level)
        except CompressedTooLarge:
            raise self._too_large(f"a batch that {codec.name.lower()} makes larger") from None
        sealed = seal(
            header._replace(
                batch_length=HEADER_SIZE - LOG_OVERHEAD + len(compressed),
                attributes=header.attributes & ~CODEC_MASK | codec,
                max_timestamp=max_timestamp,
            ),
            compressed,
        )
        return read_header(sealed), memoryview(sealed)

    def _too_large(self, what: str) -> KafkaError:
        return KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"{self._name}: {what}; max.message.bytes is {self._bytes_max}"
        )


def _codec(config: TopicConfig) -> Codec | None:
    """Return the codec that every batch must have, or None if producers may choose."""
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
