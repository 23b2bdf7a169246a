"""What a topic's settings ask of a batch, beyond its holding together (``records.check_produced``).

Only the header is read, except on compacted topics (every record needs a key), where
``message.timestamp.before.max.ms`` is set (the header does not tell the oldest record's time), and where the
topic's ``compression.type`` asks for another codec.
"""

from __future__ import annotations

from collections.abc import Sequence

from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.errors import CorruptRecordBatch, ErrorCode, KafkaError
from logd.records.build import Record, rebuild_batch
from logd.records.compression import Codec
from logd.records.decode import decode_records
from logd.records.header import APPEND_TIME_BIT, CODEC_MASK, NO_TIMESTAMP, BatchHeader, read_header
from logd.records.validate import check_produced_records


class BatchRules:
    """The rules of one partition, named ``name`` in errors; to be made anew when the settings change."""

    __slots__ = (
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
        self._records_wanted = config.is_compacted or self._before_max != LONG_MAX
        self._codec = _codec(config)

    def admit(self, header: BatchHeader, batch: memoryview, now_ms: int) -> tuple[BatchHeader, memoryview]:
        """The batch to append: this one, or the same records compressed with the topic's codec.

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
        if self._times_are_clients and header.max_timestamp != NO_TIMESTAMP:
            self._check_newest(header, now_ms)
        if self._records_wanted:
            records = check_produced_records(batch, keys_required=self._keys_required)
            if self._before_max != LONG_MAX:
                self._check_oldest(records, now_ms)
        if self._codec is not None and self._codec != header.attributes & CODEC_MASK:
            return self._rebuilt(header, batch, self._codec)
        return header, batch

    def _check_newest(self, header: BatchHeader, now_ms: int) -> None:
        after_max = self._config.message_timestamp_after_max_ms
        if header.max_timestamp - now_ms > after_max:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP,
                f"{self._name}: timestamp {header.max_timestamp} is more than message.timestamp.after.max.ms "
                f"({after_max}) ahead of the broker's clock ({now_ms})",
            )

    def _check_oldest(self, records: Sequence[Record], now_ms: int) -> None:
        oldest = min((record[1] for record in records if record[1] != NO_TIMESTAMP), default=now_ms)
        if now_ms - oldest > self._before_max:
            raise KafkaError(
                ErrorCode.INVALID_TIMESTAMP,
                f"{self._name}: timestamp {oldest} is more than message.timestamp.before.max.ms "
                f"({self._before_max}) behind the broker's clock ({now_ms})",
            )

    def _rebuilt(
        self, header: BatchHeader, batch: memoryview, codec: Codec
    ) -> tuple[BatchHeader, memoryview]:
        try:
            records = decode_records(batch)
        except CorruptRecordBatch as error:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self._name}: {error}") from None
        rebuilt = rebuild_batch(header, records, codec=codec, level=_level(self._config))
        return read_header(rebuilt), memoryview(rebuilt)


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
