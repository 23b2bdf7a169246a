"""Record batches (magic 2): header view, decode, build, CRC, compression. Bytes in, bytes out.

On the hot path records are plain tuples: `Record` as read, `NewRecord` to be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_client.first_use import at_first_use

if TYPE_CHECKING:
    from kafka_client.records.build import build_batch, rebuild_batch, restamp
    from kafka_client.records.columns import ArrowColumns, BinaryColumn, Columns
    from kafka_client.records.compression import DECOMPRESSED_LIMIT, Codec, compress, decompress
    from kafka_client.records.control import (
        ABORT,
        COMMIT,
        Marker,
        build_end_marker,
        build_marker,
        parse_control,
        parse_end_marker,
        parse_marker,
    )
    from kafka_client.records.header import (
        HEADER_SIZE,
        MAGIC,
        BatchHeader,
        Buffer,
        assign_append_time,
        assign_offset,
        check_crc,
        iter_batches,
        read_base_offset,
        read_header,
        whole_batches_size,
    )
    from kafka_client.records.reader import Checked, RecordReader, Span, decode_columns, decode_records
    from kafka_client.records.record import Headers, NewRecord, Record
    from kafka_client.records.slice import FileSlice
    from kafka_client.records.validate import check_produced, check_records
    from kafka_client.records.writer import estimate_sizes

__all__ = [
    "ABORT",
    "COMMIT",
    "DECOMPRESSED_LIMIT",
    "HEADER_SIZE",
    "MAGIC",
    "ArrowColumns",
    "BatchHeader",
    "BinaryColumn",
    "Buffer",
    "Checked",
    "Codec",
    "Columns",
    "FileSlice",
    "Headers",
    "Marker",
    "NewRecord",
    "Record",
    "RecordReader",
    "Span",
    "assign_append_time",
    "assign_offset",
    "build_batch",
    "build_end_marker",
    "build_marker",
    "check_crc",
    "check_produced",
    "check_records",
    "compress",
    "decode_columns",
    "decode_records",
    "decompress",
    "estimate_sizes",
    "iter_batches",
    "parse_control",
    "parse_end_marker",
    "parse_marker",
    "read_base_offset",
    "read_header",
    "rebuild_batch",
    "restamp",
    "whole_batches_size",
]

_MODULES = {
    "kafka_client.records.build": (
        "build_batch",
        "rebuild_batch",
        "restamp",
    ),
    "kafka_client.records.columns": ("ArrowColumns", "BinaryColumn", "Columns"),
    "kafka_client.records.compression": (
        "DECOMPRESSED_LIMIT",
        "Codec",
        "compress",
        "decompress",
    ),
    "kafka_client.records.control": (
        "ABORT",
        "COMMIT",
        "Marker",
        "build_end_marker",
        "build_marker",
        "parse_control",
        "parse_end_marker",
        "parse_marker",
    ),
    "kafka_client.records.header": (
        "HEADER_SIZE",
        "MAGIC",
        "BatchHeader",
        "Buffer",
        "assign_append_time",
        "assign_offset",
        "check_crc",
        "iter_batches",
        "read_base_offset",
        "read_header",
        "whole_batches_size",
    ),
    "kafka_client.records.reader": ("Checked", "RecordReader", "Span", "decode_columns", "decode_records"),
    "kafka_client.records.record": ("Headers", "NewRecord", "Record"),
    "kafka_client.records.slice": ("FileSlice",),
    "kafka_client.records.validate": (
        "check_produced",
        "check_records",
    ),
    "kafka_client.records.writer": ("estimate_sizes",),
}
__getattr__ = at_first_use(__name__, _MODULES)
