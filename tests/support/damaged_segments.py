"""Damage to batches in the segment files of a broker that is stopped, as a failing disk leaves it."""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from logd.records import HEADER_SIZE, iter_batches
from logd.records.build import seal
from logd.records.header import CODEC_MASK

_MAGIC_POSITION = 16


class Damage(Enum):
    """What is wrong with a batch afterwards. Its length stays, so the next batch is found."""

    BODY = "a byte of the records, and so the CRC"
    RECORDS = "the records, under a right CRC"
    CODEC = "the codec, which is unknown, under a right CRC"
    MAGIC = "the magic number"


def damage_batch(partition: Path, offset: int, damage: Damage) -> None:
    """Damage the batch that holds `offset` in the log of a partition's folder."""
    for segment in sorted(partition.glob("*.log")):
        content = bytearray(segment.read_bytes())
        for pos, header in iter_batches(bytes(content)):
            if not header.base_offset <= offset <= header.last_offset:
                continue
            end = pos + header.size
            match damage:
                case Damage.BODY:
                    content[end - 3] ^= 0x55
                case Damage.MAGIC:
                    content[pos + _MAGIC_POSITION] = 9
                case Damage.RECORDS:
                    content[pos:end] = seal(header, b"\xff" * (header.size - HEADER_SIZE))
                case Damage.CODEC:
                    unknown = header._replace(attributes=header.attributes & ~CODEC_MASK | CODEC_MASK)
                    content[pos:end] = seal(unknown, bytes(content[pos + HEADER_SIZE : end]))
            segment.write_bytes(content)
            return
    raise AssertionError(f"no batch in {partition} holds offset {offset}")
