"""What a topic's settings ask of a batch, beyond its holding together (``records.check_produced``).

Only the header is read, except on compacted topics (every record needs a key) and where the topic's
``compression.type`` asks for another codec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.config.setting import LONG_MAX
from logd.config.topic import TopicConfig
from logd.errors import ErrorCode, KafkaError
from logd.records.build import rebuild_batch
from logd.records.compression import Codec
from logd.records.decode import decode_records
from logd.records.header import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    TRANSACTIONAL_BIT,
    BatchHeader,
    read_header,
)
from logd.records.validate import check_produced_records

if TYPE_CHECKING:
    from logd.broker.partition import Partition

_NOT_FROM_CLIENTS = APPEND_TIME_BIT | TRANSACTIONAL_BIT
NO_TIMESTAMP = -1


def check_against_topic(partition: Partition, header: BatchHeader, batch: memoryview, now_ms: int) -> None:
    """Raise the KafkaError a batch deserves that is sound in itself."""
    if len(batch) > partition.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{partition}: a batch of {len(batch)} bytes; max.message.bytes is {partition.max_message_bytes}",
        )
    if header.count == 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{partition}: a batch without records")
    if header.attributes & _NOT_FROM_CLIENTS:
        _refuse_attributes(partition, header.attributes)
    if header.max_timestamp != NO_TIMESTAMP and partition.config.message_timestamp_type == "CreateTime":
        _check_timestamps(partition, header, now_ms)
    if partition.compacted:
        check_produced_records(batch, keys_required=True)


def _refuse_attributes(partition: Partition, attributes: int) -> None:
    if attributes & TRANSACTIONAL_BIT:
        raise KafkaError(
            ErrorCode.INVALID_TXN_STATE, f"{partition}: no transaction is open; this broker serves none"
        )
    raise KafkaError(ErrorCode.INVALID_TIMESTAMP, f"{partition}: only the broker may set the log append time")


def _check_timestamps(partition: Partition, header: BatchHeader, now_ms: int) -> None:
    config = partition.config
    if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"{partition}: timestamp {header.max_timestamp} is more than message.timestamp.after.max.ms "
            f"({config.message_timestamp_after_max_ms}) ahead of the broker's clock ({now_ms})",
        )
    before_max = config.message_timestamp_before_max_ms
    if before_max != LONG_MAX and now_ms - header.base_timestamp > before_max:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP,
            f"{partition}: timestamp {header.base_timestamp} is more than message.timestamp.before.max.ms "
            f"({before_max}) behind the broker's clock ({now_ms})",
        )


def must_rebuild(config: TopicConfig, header: BatchHeader) -> bool:
    """Whether the topic's ``compression.type`` asks for another codec than the producer's."""
    return config.compression_type != "producer" and _wanted_codec(config) != header.attributes & CODEC_MASK


def rebuild(config: TopicConfig, header: BatchHeader, batch: memoryview) -> tuple[BatchHeader, memoryview]:
    """The batch compressed with the topic's codec; CorruptRecordBatch when its records do not decode."""
    records = decode_records(batch)
    rebuilt = rebuild_batch(header, records, codec=_wanted_codec(config), level=_level(config))
    return read_header(rebuilt), memoryview(rebuilt)


def _wanted_codec(config: TopicConfig) -> Codec:
    return Codec.NONE if config.compression_type == "uncompressed" else Codec.named(config.compression_type)


def _level(config: TopicConfig) -> int | None:
    levels = {
        "gzip": config.compression_gzip_level,
        "lz4": config.compression_lz4_level,
        "zstd": config.compression_zstd_level,
    }
    return levels.get(config.compression_type)
