"""Record batches (magic 2): header view, decode, build, CRC, compression. Bytes in, bytes out.

On the hot path records are plain tuples: `Record` as read, `NewRecord` to be written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from logd.first_use import at_first_use

if TYPE_CHECKING:
    from logd.records.build import (
        Headers,
        NewRecord,
        Record,
        build_batch,
        estimate_size,
        estimate_sizes,
        rebuild_batch,
        restamp,
    )
    from logd.records.columns import decode_body_columns, decode_columns
    from logd.records.compression import DECOMPRESSED_LIMIT, Codec, compress, decompress
    from logd.records.control import (
        ABORT,
        COMMIT,
        Marker,
        build_end_marker,
        build_marker,
        parse_control,
        parse_end_marker,
        parse_marker,
    )
    from logd.records.decode import Columns, decode_body, decode_records, read_body
    from logd.records.header import (
        HEADER_SIZE,
        MAGIC,
        BatchHeader,
        Buffer,
        assign_append_time,
        assign_offset,
        check_crc,
        iter_batches,
        read_header,
        whole_batches_size,
    )
    from logd.records.latest import decode_latest
    from logd.records.slice import FileSlice
    from logd.records.validate import check_produced, check_produced_records

__all__ = [
    "ABORT",
    "COMMIT",
    "DECOMPRESSED_LIMIT",
    "HEADER_SIZE",
    "MAGIC",
    "BatchHeader",
    "Buffer",
    "Codec",
    "Columns",
    "FileSlice",
    "Headers",
    "Marker",
    "NewRecord",
    "Record",
    "assign_append_time",
    "assign_offset",
    "build_batch",
    "build_end_marker",
    "build_marker",
    "check_crc",
    "check_produced",
    "check_produced_records",
    "compress",
    "decode_body",
    "decode_body_columns",
    "decode_columns",
    "decode_latest",
    "decode_records",
    "decompress",
    "estimate_size",
    "estimate_sizes",
    "iter_batches",
    "parse_control",
    "parse_end_marker",
    "parse_marker",
    "read_body",
    "read_header",
    "rebuild_batch",
    "restamp",
    "whole_batches_size",
]

_MODULES = {
    "logd.records.build": (
        "Headers",
        "NewRecord",
        "Record",
        "build_batch",
        "estimate_size",
        "estimate_sizes",
        "rebuild_batch",
        "restamp",
    ),
    "logd.records.columns": ("decode_body_columns", "decode_columns"),
    "logd.records.compression": (
        "DECOMPRESSED_LIMIT",
        "Codec",
        "compress",
        "decompress",
    ),
    "logd.records.control": (
        "ABORT",
        "COMMIT",
        "Marker",
        "build_end_marker",
        "build_marker",
        "parse_control",
        "parse_end_marker",
        "parse_marker",
    ),
    "logd.records.decode": (
        "Columns",
        "decode_body",
        "decode_records",
        "read_body",
    ),
    "logd.records.header": (
        "HEADER_SIZE",
        "MAGIC",
        "BatchHeader",
        "Buffer",
        "assign_append_time",
        "assign_offset",
        "check_crc",
        "iter_batches",
        "read_header",
        "whole_batches_size",
    ),
    "logd.records.latest": ("decode_latest",),
    "logd.records.slice": ("FileSlice",),
    "logd.records.validate": (
        "check_produced",
        "check_produced_records",
    ),
}
__getattr__ = at_first_use(__name__, _MODULES)
