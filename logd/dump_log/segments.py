"""The batches and records of a segment, printed a line each."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple, TextIO

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records import (
    ABORT,
    COMMIT,
    Record,
    RecordReader,
    check_crc,
    parse_control,
    parse_end_marker,
)
from kafka_client.records.header import CODEC_MASK, NO_SEQUENCE, BatchHeader
from logd.dump_log.findings import Findings
from logd.dump_log.options import UNLIMITED, Options
from logd.dump_log.readonly import base_offset_of, open_readonly
from logd.storage.scan import scan_batches

_RECORDS_AT_ONCE = 10_000
_TIMESTAMP_TYPES: Final = ("CreateTime", "LogAppendTime")
_CONTROL_TYPES: Final = {
    ABORT: "ABORT",
    COMMIT: "COMMIT",
    2: "LEADER_CHANGE",
    3: "SNAPSHOT_HEADER",
    4: "SNAPSHOT_FOOTER",
    5: "KRAFT_VERSION",
    6: "KRAFT_VOTERS",
}


def dump_segment(path: Path, options: Options, out: TextIO, findings: Findings) -> None:
    """Print the batches of a `.log`; raises ValueError and OSError, and reports everything else as a
    finding.
    """
    print(f"Log starting offset: {base_offset_of(path)}", file=out)
    position = 0
    last_offset = -1
    with open_readonly(path) as file:
        end = min(file.size(), options.max_bytes)
        try:
            for position, header, batch in scan_batches(file, 0, end):
                print(_batch_line(header, position, _is_valid(path, batch, header, findings)), file=out)
                if options.deep:
                    place = Place(path, position)
                    last_offset = _dump_records(place, header, batch, last_offset, options, out, findings)
                position += header.size
        except CorruptRecordBatch as error:
            findings.complain(path, f"no batch at position {position}: {error}")
            return
        if position < end and options.max_bytes == UNLIMITED:
            print(f"Found {end - position} invalid bytes at the end of {path.name}", file=out)
            findings.complain(
                path, f"the batch at position {position} is cut off: {end - position} bytes of it"
            )


def _is_valid(path: Path, batch: memoryview, header: BatchHeader, findings: Findings) -> bool:
    try:
        check_crc(batch, 0, header)
    except CorruptRecordBatch as error:
        findings.complain(path, f"batch at offset {header.base_offset}: {error}")
        return False
    return True


def _batch_line(header: BatchHeader, position: int, is_valid: bool) -> str:
    horizon = header.delete_horizon
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.count} "
        f"baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {_bool(header.is_transactional)} isControl: {_bool(header.is_control)} "
        f"deleteHorizonMs: {optional_long(horizon)} "
        f"position: {position} {_TIMESTAMP_TYPES[header.timestamp_type]}: {header.max_timestamp} "
        f"size: {header.size} magic: {header.magic} compresscodec: {_codec_name(header)} "
        f"crc: {header.crc} isvalid: {_bool(is_valid)}"
    )


def _codec_name(header: BatchHeader) -> str:
    try:
        return header.codec.name.lower()
    except CorruptRecordBatch:
        return f"unknown({header.attributes & CODEC_MASK})"


class Place(NamedTuple):
    """The file and position of a batch."""

    path: Path
    position: int


def _dump_records(
    place: Place,
    header: BatchHeader,
    batch: memoryview,
    last_offset: int,
    options: Options,
    out: TextIO,
    findings: Findings,
) -> int:
    """Print a batch's records up to the first unreadable one. Return the last one's offset.

    Without a record, `last_offset` is returned.
    """
    try:
        reader = RecordReader(batch, 0, header)
        while records := reader.records(_RECORDS_AT_ONCE):
            for record in records:
                offset = record[0]
                if last_offset not in (-1, offset - 1):
                    findings.note(findings.gaps, place.path, last_offset, offset)
                last_offset = offset
                print(_record_line(header, record, options), file=out)
    except CorruptRecordBatch as error:
        findings.complain(
            place.path,
            f"the batch of offsets {header.base_offset} to {header.last_offset} at position {place.position} "
            f"cannot be read: {error}",
        )
        return header.last_offset
    return last_offset


def _record_line(header: BatchHeader, record: Record, options: Options) -> str:
    offset, timestamp, key, value, headers = record
    line = ""
    if not options.skip_record_metadata:
        names = ",".join(name for name, _ in headers)
        line = (
            f"| offset: {offset} {_TIMESTAMP_TYPES[header.timestamp_type]}: {timestamp} "
            f"keySize: {_size(key)} valueSize: {_size(value)} "
            f"sequence: {_sequence(header, offset)} headerKeys: [{names}]"
        )
        if header.is_control:
            line += f" {_control_text(key, value)}"
    if options.print_data_log and not header.is_control:
        key_text, payload = options.decoder(offset, key, value)
        if key_text is not None:
            line += f"{' ' if line else '| '}key: {key_text}"
        if payload is not None:
            line += f"{' ' if line else '| '}payload: {payload}"
    return line


def _control_text(key: bytes | None, value: bytes | None) -> str:
    number = parse_control(key)[1]
    name = _CONTROL_TYPES.get(number, "UNKNOWN")
    if number in (ABORT, COMMIT):
        return f"endTxnMarker: {name} coordinatorEpoch: {parse_end_marker(value)}"
    return f"controlType: {name}({number})"


def _sequence(header: BatchHeader, offset: int) -> int:
    if header.base_sequence < 0:
        return NO_SEQUENCE
    return (header.base_sequence + offset - header.base_offset) & 0x7FFF_FFFF


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def optional_long(value: int | None) -> str:
    """Return an optional number as Java prints it."""
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
