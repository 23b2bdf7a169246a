"""The offset index and the time index of a segment: printed, and checked against its log.

An index of a running or killed broker may be longer than its entries, since Apache Kafka allocates it in
advance, filled with zeros. Such an entry ends the index, as does any later entry for the base offset.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from operator import itemgetter
from pathlib import Path
from typing import Final, TextIO

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import RecordReader, read_header
from kafka_client.records.header import HEADER_SIZE
from logd.dump_log.findings import Findings
from logd.dump_log.options import Options
from logd.dump_log.readonly import base_offset_of, beside, open_readonly
from logd.storage.disk import PosixFile
from logd.storage.names import INDEX_SUFFIX, LOG_SUFFIX
from logd.storage.scan import scan_batches, scan_headers

_OFFSET_ENTRY: Final = struct.Struct(">ii")
_TIME_ENTRY: Final = struct.Struct(">qi")
_RECORDS_AT_ONCE: Final = 10_000

Entries = list[tuple[int, int]]


def dump_index(path: Path, options: Options, out: TextIO, findings: Findings) -> None:
    """Print (offset, position) entries; raises ValueError and OSError."""
    base, data = base_offset_of(path), path.read_bytes()
    if len(data) < _OFFSET_ENTRY.size:
        print(f"{path} is empty.", file=out)
        return
    if options.index_sanity_check:
        _judge(path, _offset_index_fault(path, base, data), out, findings)
        return
    with open_readonly(beside(path, LOG_SUFFIX)) as log:
        for offset, position in _offset_entries(base, data):
            try:
                last_offset = _last_offset_at(log, position, options.max_message_size)
            except CorruptRecordBatch as error:
                findings.complain(
                    path, f"offset {offset}: no batch at position {position} of the log: {error}"
                )
            else:
                if last_offset != offset:
                    findings.note(findings.index_mismatches, path, offset, last_offset)
            if not options.verify_index_only:
                print(f"offset: {offset} position: {position}", file=out)


def dump_time_index(path: Path, options: Options, out: TextIO, findings: Findings) -> None:
    """Print (timestamp, offset) entries; raises ValueError and OSError."""
    base, data = base_offset_of(path), path.read_bytes()
    if options.index_sanity_check:
        _judge(path, _time_index_fault(path, base, data), out, findings)
        return
    index_path = beside(path, INDEX_SUFFIX)
    index = _offset_entries(base, index_path.read_bytes() if index_path.exists() else b"")
    previous = -1
    with open_readonly(beside(path, LOG_SUFFIX)) as log:
        for timestamp, offset in _time_entries(base, data):
            try:
                _check_time(path, log, index, timestamp, offset, previous, findings)
            except CorruptRecordBatch as error:
                findings.complain(path, f"offset {offset}: {error}")
            if not options.verify_index_only:
                print(f"timestamp: {timestamp} offset: {offset}", file=out)
            previous = timestamp


def _offset_entries(base: int, data: bytes) -> Entries:
    whole = len(data) // _OFFSET_ENTRY.size * _OFFSET_ENTRY.size
    entries: Entries = []
    for relative, position in _OFFSET_ENTRY.iter_unpack(data[:whole]):
        if relative == 0 and (entries or not position):
            break
        entries.append((base + relative, position))
    return entries


def _time_entries(base: int, data: bytes) -> Entries:
    whole = len(data) // _TIME_ENTRY.size * _TIME_ENTRY.size
    entries: Entries = []
    for timestamp, relative in _TIME_ENTRY.iter_unpack(data[:whole]):
        if relative == 0 and (entries or not timestamp):
            break
        entries.append((timestamp, base + relative))
    return entries


def _last_offset_at(log: PosixFile, position: int, limit: int) -> int:
    """Return the last offset of the batch at `position`, which must not be longer than `limit`."""
    if position < 0:
        raise CorruptRecordBatch("a negative position")
    header = read_header(log.read(position, HEADER_SIZE))
    if header.size > limit or position + header.size > log.size():
        raise CorruptRecordBatch(f"{header.size} bytes are more than there are, or than --max-message-size")
    return header.last_offset


def _check_time(
    path: Path, log: PosixFile, index: Entries, timestamp: int, offset: int, previous: int, findings: Findings
) -> None:
    """Find the batch that ends with `offset` and compare its largest timestamp."""
    nearest = bisect_right(index, offset, key=itemgetter(0))
    start = index[nearest - 1][1] if nearest else 0
    for position, header in scan_headers(log, start, log.size()):
        if header.last_offset < offset:
            continue
        if header.last_offset != offset:
            findings.note(findings.missing_offsets, path, offset, header.last_offset)
            return
        ((_, _, batch),) = scan_batches(log, position, position + header.size)
        try:
            largest = _largest_timestamp(batch)
        except CorruptRecordBatch as error:
            findings.complain(path, f"the batch at offset {header.base_offset} cannot be read: {error}")
            return
        if largest != timestamp:
            findings.note(findings.time_mismatches, path, timestamp, largest)
        if previous >= timestamp:
            findings.note(findings.unordered_times, path, timestamp, previous)
        return
    findings.note(findings.missing_offsets, path, offset, -1)


def _largest_timestamp(batch: memoryview) -> int:
    reader, largest = RecordReader(batch), -1
    while timestamps := reader.columns(_RECORDS_AT_ONCE).timestamps:
        largest = max(largest, *timestamps)
    return largest


def _judge(path: Path, fault: str, out: TextIO, findings: Findings) -> None:
    if fault:
        findings.complain(path, fault)
    else:
        print(f"{path} passed sanity check.", file=out)


def _offset_index_fault(path: Path, base: int, data: bytes) -> str:
    """Return why a broker would rebuild the index, in Kafka's words; empty if it would not."""
    count = len(data) // _OFFSET_ENTRY.size
    last = base + _OFFSET_ENTRY.unpack_from(data, (count - 1) * _OFFSET_ENTRY.size)[0]
    if last < base:
        return (
            f"Corrupt index found, index file ({path.absolute()}) has non-zero size but the last offset is "
            f"{last} which is less than the base offset {base}"
        )
    return _length_fault("Index file", path, data, _OFFSET_ENTRY.size)


def _time_index_fault(path: Path, base: int, data: bytes) -> str:
    """Return why a broker would rebuild the time index, as `_offset_index_fault` does."""
    count = len(data) // _TIME_ENTRY.size
    if count:
        first = _TIME_ENTRY.unpack_from(data)[0]
        last_time, relative = _TIME_ENTRY.unpack_from(data, (count - 1) * _TIME_ENTRY.size)
        fault = (
            f"Corrupt time index found, time index file ({path.absolute()}) has non-zero size but the last"
        )
        if last_time < first:
            return f"{fault} timestamp is {last_time} which is less than the first timestamp {first}"
        if relative < 0:
            return f"{fault} offset is {base + relative} which is less than the first offset {base}"
    return _length_fault("Time index file", path, data, _TIME_ENTRY.size)


def _length_fault(what: str, path: Path, data: bytes, entry_size: int) -> str:
    if len(data) % entry_size == 0:
        return ""
    return (
        f"{what} {path.absolute()} is corrupt, found {len(data)} bytes which is neither positive nor a "
        f"multiple of {entry_size}"
    )
