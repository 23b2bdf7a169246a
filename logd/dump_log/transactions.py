"""A log's data about producers: snapshots of their state, and the index of aborted transactions."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Final, TextIO

from kafka_client.records.crc import crc32c
from logd.dump_log.findings import Findings
from logd.dump_log.segments import optional_long

_SNAPSHOT_HEAD: Final = struct.Struct(">hIi")
_SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
_SNAPSHOT_VERSION: Final = 1
_SNAPSHOT_MORE: Final = b"MSB1"
"""The start of logd's addition after Kafka's entries; Kafka's tool does not read it either."""
_CRC_START: Final = 6
_ABORTED: Final = struct.Struct(">hqqqq")
_ABORTED_VERSION: Final = 0


def dump_snapshot(path: Path, out: TextIO, findings: Findings) -> None:
    """Print a producer snapshot, a line for each producer id; raises OSError."""
    data = path.read_bytes()
    if len(data) < _SNAPSHOT_HEAD.size:
        findings.complain(path, f"{len(data)} bytes are no producer snapshot")
        return
    version, crc, count = _SNAPSHOT_HEAD.unpack_from(data)
    if version != _SNAPSHOT_VERSION:
        findings.complain(path, f"Snapshot contained an unknown file version {version}")
        return
    if crc32c(data[_CRC_START:]) != crc:
        findings.complain(path, "Snapshot is corrupt (CRC is no longer valid). Stored crc: " + str(crc))
        return
    end = _SNAPSHOT_HEAD.size + count * _SNAPSHOT_ENTRY.size
    if count < 0 or len(data) < end or data[end : end + len(_SNAPSHOT_MORE)] not in (b"", _SNAPSHOT_MORE):
        findings.complain(path, f"{len(data)} bytes are not what {count} producers take")
        return
    for row in _SNAPSHOT_ENTRY.iter_unpack(data[_SNAPSHOT_HEAD.size : end]):
        producer_id, epoch, last_sequence, last_offset, delta, timestamp, coordinator_epoch, first = row
        line = (
            f"producerId: {producer_id} producerEpoch: {epoch} coordinatorEpoch: {coordinator_epoch} "
            f"currentTxnFirstOffset: {optional_long(first if first >= 0 else None)} "
            f"lastTimestamp: {timestamp} "
        )
        if last_offset >= 0:
            first_sequence = (last_sequence - delta) & 0x7FFF_FFFF
            line += (
                f"firstSequence: {first_sequence} lastSequence: {last_sequence} lastOffset: {last_offset} "
                f"offsetDelta: {delta} timestamp: {timestamp}"
            )
        print(line, file=out)


def dump_txn_index(path: Path, out: TextIO, findings: Findings) -> None:
    """Print the aborted transactions in a `.txnindex`; raises OSError."""
    data = path.read_bytes()
    whole = len(data) // _ABORTED.size * _ABORTED.size
    for version, producer_id, first, last, stable in _ABORTED.iter_unpack(data[:whole]):
        if version > _ABORTED_VERSION:
            findings.complain(path, f"Unexpected aborted transaction version {version}")
            return
        print(
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}",
            file=out,
        )
    if whole != len(data):
        findings.complain(path, f"{len(data) - whole} bytes at position {whole} are less than an entry")
