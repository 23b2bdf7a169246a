"""Batches in the files of a broker that is not running, damaged as a disk may damage them."""

from __future__ import annotations

from pathlib import Path

from kafka_client.records.header import CRC_POSITION, CRC_START, HEADER_SIZE, compute_crc, iter_batches

HEADER_DAMAGE = {
    "magic": (16, b"\1"),
    "last offset delta": (23, b"\xff"),
    "no length": (8, b"\0\0\0\5"),
    "huge length": (8, b"\x40\0\0\0"),
}
"""By name of the damage: a position in a batch's header, and the bytes that it has there afterwards."""


def damage_header(folder: Path, topic: str, offset: int, damage: str) -> None:
    """Overwrite a field of the header of the batch that begins with `offset`, in partition 0."""
    at, wrong = HEADER_DAMAGE[damage]
    for path in sorted((folder / f"{topic}-0").glob("*.log")):
        data = bytearray(path.read_bytes())
        for position, header in list(iter_batches(data)):
            if header.base_offset == offset:
                data[position + at : position + at + len(wrong)] = wrong
                path.write_bytes(data)
                return
    raise LookupError(f"{topic}-0 has no batch that begins with offset {offset}")


def damage_batch(folder: Path, topic: str, offset: int, *, right_crc: bool, partition: int = 0) -> None:
    """Make the body of the batch that holds `offset` rubbish; with `right_crc` its CRC is made to fit."""
    for path in sorted((folder / f"{topic}-{partition}").glob("*.log")):
        data = bytearray(path.read_bytes())
        for position, header in list(iter_batches(data)):
            if header.base_offset <= offset <= header.last_offset:
                end = position + header.size
                data[position + HEADER_SIZE : end] = b"\xff" * (end - position - HEADER_SIZE)
                if right_crc:
                    crc = compute_crc(data, position, header.size)
                    data[position + CRC_POSITION : position + CRC_START] = crc.to_bytes(4, "big")
                path.write_bytes(data)
                return
    raise LookupError(f"{topic}-{partition} has no batch with offset {offset}")
