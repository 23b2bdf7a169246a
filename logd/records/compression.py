"""Kafka's record compression: five codecs over cramjam and zlib, reading bounded by a limit.

A batch's compressed bytes come from whoever produced it, so nothing in them is believed: before
anything is decompressed, the block headers are walked for an upper bound of the result, and a
batch that could pass the limit is refused. Declared content sizes are never allocated.

Two framings need care. Java writes snappy in xerial's framing and readers must take raw snappy as
well (librdkafka writes either); lz4 has to be written with independent blocks, Java refuses
linked ones.

    xerial snappy:  82 'SNAPPY' 00 │ version i32 │ compatible i32 │ (length i32 │ raw snappy block)*
    lz4 frame:      04 22 4D 18 │ flags │ block size │ [content size u64] │ checksum │ (size u32 │ block)* │ 0
    zstd frame:     28 B5 2F FD │ descriptor │ … │ (header u24: last, type, size │ block)*
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final

import cramjam

from logd.errors import CorruptRecordBatch

DECOMPRESSED_LIMIT: Final = 256 * 1024 * 1024
"""Bytes a batch may decompress to by default: far above what `max.message.bytes` makes of sane data."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_SNAPPY_RATIO: Final = 22
"""The largest expansion of a snappy element: 3 bytes of it can copy 64."""
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BIT: Final = 0x20
"""Of a frame's flags."""
_LZ4_RATIO: Final = 255
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_ZSTD_BLOCK: Final = 128 * 1024
_I32 = struct.Struct(">i")
_U32_LE = struct.Struct("<I")


class Codec(IntEnum):
    """Kafka's numbers of the codecs, as in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str) -> Codec:
        """The codec Kafka's settings call `name` (`none`, `gzip`, `snappy`, `lz4`, `zstd`); ValueError."""
        try:
            return cls[name.upper()]
        except KeyError:
            known = ", ".join(codec.name.lower() for codec in cls)
            raise ValueError(f"no compression codec {name!r}, only {known}") from None


FRAME_HEADER_SIZE: Final = 5
"""Bytes `check_frame` wants to see: magic and, of lz4, flags."""
_LZ4 = Codec.LZ4.value
_MAGIC: Final = {Codec.GZIP.value: b"\x1f\x8b", _LZ4: _LZ4_MAGIC, Codec.ZSTD.value: _ZSTD_MAGIC}
"""Snappy's raw blocks begin with their length."""


def compress(codec: Codec, data: bytes | bytearray, level: int | None = None) -> bytes | bytearray:
    """Return `data` compressed, framed as Kafka's readers expect it; with Codec.NONE `data` itself.

    `level` is the codec's own, None its default.
    """
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            return zlib.compress(data, -1 if level is None else level, wbits=31)
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            frame = cramjam.lz4.Compressor(
                level=1 if level is None else level, content_checksum=False, block_linked=False
            )
            frame.compress(bytes(data))
            return bytes(frame.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))


def check_frame(codec: int, beginning: bytes | bytearray | memoryview) -> None:
    """Refuse what no reader could decompress, as far as its first FRAME_HEADER_SIZE bytes tell.

    Raises CorruptRecordBatch; also for lz4 with linked blocks, which Java's readers refuse.
    """
    magic = _MAGIC.get(codec, b"")
    if beginning[: len(magic)] != magic:
        name = Codec(codec).name.lower()
        raise CorruptRecordBatch(f"records that begin with 0x{beginning.hex()} are not {name}'s")
    if codec == _LZ4 and len(beginning) > 4 and not beginning[4] & _LZ4_INDEPENDENT_BIT:
        raise CorruptRecordBatch(
            "an lz4 frame with linked blocks, which Java clients cannot read; have them independent"
        )


def decompress(codec: Codec, data: bytes, limit: int = DECOMPRESSED_LIMIT) -> bytes:
    """Decompress `data` into at most `limit` bytes; CorruptRecordBatch if it is more, or nonsense."""
    if codec is Codec.NONE:
        return data
    try:
        return _DECOMPRESS[codec](data, limit)
    except (cramjam.DecompressionError, zlib.error, struct.error, IndexError) as error:
        raise CorruptRecordBatch(f"{codec.name.lower()} records do not decompress: {error}") from None


def _refuse(limit: int) -> CorruptRecordBatch:
    return CorruptRecordBatch(f"records decompress to more than {limit} bytes")


def _decompress_gzip(data: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    room = limit
    while data:
        member = zlib.decompressobj(wbits=31)
        part = member.decompress(data, room + 1)
        room -= len(part)
        if room < 0:
            raise _refuse(limit)
        if not member.eof:
            raise CorruptRecordBatch("gzip records are cut off")
        parts.append(part)
        data = member.unused_data
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _compress_xerial(data: bytes | bytearray) -> bytes:
    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (_I32.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        if _snappy_length(data) > limit:
            raise _refuse(limit)
        return bytes(cramjam.snappy.decompress_raw(data))
    blocks: list[bytes] = []
    pos, total = len(_XERIAL_HEADER), 0
    while pos < len(data):
        size = _I32.unpack_from(data, pos)[0]
        pos += 4
        if not 0 < size <= len(data) - pos:
            raise CorruptRecordBatch(f"snappy block of {size} bytes, {len(data) - pos} are left")
        block = data[pos : pos + size]
        total += _snappy_length(block)
        if total > limit:
            raise _refuse(limit)
        blocks.append(block)
        pos += size
    return b"".join([bytes(cramjam.snappy.decompress_raw(block)) for block in blocks])


def _snappy_length(block: bytes) -> int:
    length = int(cramjam.snappy.decompress_raw_len(block))
    if length > _SNAPPY_RATIO * len(block):
        raise CorruptRecordBatch(f"a snappy block of {len(block)} bytes claims to hold {length}")
    return length


def _decompress_lz4(data: bytes, limit: int) -> bytes:
    if len(data) * _LZ4_RATIO > limit and _lz4_bound(data) > limit:
        raise _refuse(limit)
    return bytes(cramjam.lz4.decompress(data))


def _lz4_bound(data: bytes) -> int:
    """At most how many bytes the lz4 frames in `data` hold; nothing but frames is allowed."""
    pos = bound = 0
    while data.startswith(_LZ4_MAGIC, pos):
        flags, block_max = data[pos + 4], 1 << (8 + 2 * (data[pos + 5] >> 4 & 7))
        # Magic 4, flags 1, block size 1, optional content size 8 and dictionary id 4, checksum 1.
        pos += 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        while size := _U32_LE.unpack_from(data, pos)[0]:
            stored = size & 0x7FFF_FFFF
            bound += stored if size >> 31 else min(block_max, stored * _LZ4_RATIO)
            pos += 4 + stored + (4 if flags & 0x10 else 0)
        pos += 4 + (4 if flags & 0x04 else 0)
    if pos != len(data):
        raise CorruptRecordBatch(f"lz4 frames end at byte {pos} of {len(data)}")
    return bound


def _decompress_zstd(data: bytes, limit: int) -> bytes:
    if _zstd_bound(data) > limit:
        raise _refuse(limit)
    return bytes(cramjam.zstd.decompress(data))


def _zstd_bound(data: bytes) -> int:
    """At most how many bytes the zstd frames in `data` hold; nothing but frames is allowed."""
    pos = bound = 0
    while data.startswith(_ZSTD_MAGIC, pos):
        descriptor = data[pos + 4]
        single = descriptor & 0x20
        content_size = (1 if single else 0, 2, 4, 8)[descriptor >> 6]
        pos += 5 + (0 if single else 1) + (0, 1, 2, 4)[descriptor & 3] + content_size
        last = 0
        while not last:
            block = data[pos] | data[pos + 1] << 8 | data[pos + 2] << 16
            last, kind, size = block & 1, block >> 1 & 3, block >> 3
            # Kind 0 is stored as it is, 1 is one byte repeated, 2 is compressed.
            bound += _ZSTD_BLOCK if kind == 2 else size
            pos += 3 + (1 if kind == 1 else size)
        pos += 4 if descriptor & 0x04 else 0
    if pos != len(data):
        raise CorruptRecordBatch(f"zstd frames end at byte {pos} of {len(data)}")
    return bound


_DECOMPRESS: Final[dict[Codec, Callable[[bytes, int], bytes]]] = {
    Codec.GZIP: _decompress_gzip,
    Codec.SNAPPY: _decompress_snappy,
    Codec.LZ4: _decompress_lz4,
    Codec.ZSTD: _decompress_zstd,
}


def pieces(codec: Codec, data: bytes | memoryview, limit: int = DECOMPRESSED_LIMIT) -> Iterator[bytes]:
    """Yield the decompressed body."""
    yield decompress(codec, bytes(data), limit)
