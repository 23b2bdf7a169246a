"""Kafka's record compression: five codecs over cramjam and zlib, reading bounded by a limit.

A batch's compressed bytes come from its producer and are not trusted. They are decompressed in pieces
(`pieces`), and a batch is refused at the piece that exceeds the limit. Declared content sizes are never
allocated.

Two framings need care. Java writes snappy in xerial's framing, and readers must accept raw snappy as well
(librdkafka writes either). lz4 must be written with independent blocks, since Java refuses linked ones.

    xerial snappy:  82 'SNAPPY' 00 │ version i32 │ compatible i32 │ (length i32 │ raw snappy block)*
    lz4 frame:      04 22 4D 18 │ flags │ block size │ [content size u64] │ checksum │ (size u32 │ block)* │ 0
    zstd frame:     28 B5 2F FD │ descriptor │ … │ (header u24: last, type, size │ block)*
"""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from itertools import chain
from typing import Any, Final, TypeAlias

import cramjam

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.xxh32 import Xxh32, xxh32

Buffer: TypeAlias = bytes | bytearray | memoryview

DECOMPRESSED_LIMIT: Final = 256 * 1024 * 1024
"""Bytes a batch may decompress to by default: far above what `max.message.bytes` makes of sane data."""

PIECE_SIZE: Final = 256 * 1024
"""Bytes of a piece that `pieces` yields at once."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\0"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK: Final = 32 * 1024
_SNAPPY_RATIO: Final = 22
"""The largest expansion of a snappy element: 3 bytes of it can copy 64."""
_LZ4_MAGIC: Final = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BIT: Final = 0x20
"""A bit of a frame's flags."""
_LZ4_RATIO: Final = 255
_ZSTD_MAGIC: Final = b"\x28\xb5\x2f\xfd"
_FOLLOWING_STEP: Final = 16 * 1024
"""Bytes passed on at once after the first frame: the rest of a frame is copied, and frames may be tiny."""
_PARTS_MIN: Final = 16
_PART_BYTES: Final = 1024
"""Bytes of the limit for which one more frame or block is allowed; Java's hold 32 KB and more."""
_I32 = struct.Struct(">i")
_U32_LE = struct.Struct("<I")
_U64_LE = struct.Struct("<Q")


class Codec(IntEnum):
    """Kafka's numbers of the codecs, as in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @classmethod
    def named(cls, name: str) -> Codec:
        """Return the codec with Kafka's name (`none`, `gzip`, `snappy`, `lz4`, `zstd`); raises ValueError."""
        try:
            return cls[name.upper()]
        except KeyError:
            names = ", ".join(codec.name.lower() for codec in cls)
            raise ValueError(f"no compression codec {name!r}, only {names}") from None


FRAME_HEADER_SIZE: Final = 5
"""The bytes that `check_frame` needs: magic and, for lz4, flags."""
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
            return _XERIAL_HEADER + _xerial_blocks(data)
        case Codec.LZ4:
            frame = _lz4_compressor(level)
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


def decompress(codec: Codec, data: Buffer, limit: int = DECOMPRESSED_LIMIT) -> bytes:
    """Decompress `data` as a whole. Raises CorruptRecordBatch if it is damaged or makes more than `limit`."""
    if codec is Codec.NONE:
        return bytes(data)
    parts = list(pieces(codec, data, limit))
    return parts[0] if len(parts) == 1 else b"".join(parts)


def pieces(codec: Codec, data: Buffer, limit: int = DECOMPRESSED_LIMIT) -> Iterator[bytes]:
    """Decompress `data` piece by piece, so that memory is needed for one piece at a time.

    Pieces are at most PIECE_SIZE long, or one block where a block of snappy or lz4 is longer; small data
    comes as one piece. All codecs release the GIL while they work. Raises CorruptRecordBatch if `data` is
    damaged, cut off or followed by anything else. Raises DecompressedTooLarge at the piece that passes
    `limit` bytes in total, or if `data` is of more parts than that many bytes are worth.
    """
    if codec is Codec.NONE:
        yield bytes(data)
        return
    room = limit
    try:
        for piece in _PIECES[codec](memoryview(data), limit):
            room -= len(piece)
            if room < 0:
                raise _refuse(limit)
            if piece:
                yield piece
    except (cramjam.DecompressionError, zlib.error, struct.error, IndexError) as error:
        raise CorruptRecordBatch(f"{codec.name.lower()} records do not decompress: {error}") from None


class DecompressedTooLarge(CorruptRecordBatch):
    """Records decompress to more than the limit."""


def _refuse(limit: int) -> DecompressedTooLarge:
    return DecompressedTooLarge(f"records decompress to more than {limit} bytes")


class CompressedTooLarge(Exception):
    """The compressed records are larger than the limit."""


def compress_pieces(codec: Codec, parts: Iterable[Buffer], limit: int, level: int | None = None) -> bytes:
    """Compress a body that comes in `parts` as `compress` does, so that memory is needed for the result only.

    Raises CompressedTooLarge as soon as the result passes `limit` bytes.
    """
    made: list[Buffer] = []
    room = limit
    parts = iter(parts)
    first = next(parts, b"")
    second = next(parts, None)
    if second is None:  # at once: zstd compresses better if it knows the size
        compressed: Iterable[Buffer] = [compress(codec, bytes(first), level)]
    else:
        compressed = _compressed(codec, chain((first, second), parts), level)
    for piece in compressed:
        room -= len(piece)
        if room < 0:
            raise CompressedTooLarge
        made.append(piece)
    return b"".join(made)


def _compressed(codec: Codec, parts: Iterable[Buffer], level: int | None) -> Iterator[bytes]:
    match codec:
        case Codec.NONE:
            yield from map(bytes, parts)
        case Codec.GZIP:
            gzip = zlib.compressobj(-1 if level is None else level, wbits=31)
            for part in parts:
                yield gzip.compress(part)
            yield gzip.flush()
        case Codec.SNAPPY:
            yield _XERIAL_HEADER
            for part in parts:
                yield _xerial_blocks(part)
        case Codec.LZ4 | Codec.ZSTD:
            stream = _lz4_compressor(level) if codec is Codec.LZ4 else _zstd_compressor(level)
            for part in parts:
                stream.compress(bytes(part))
                yield bytes(stream.flush())
            yield bytes(stream.finish())


def _check_parts(count: int, limit: int) -> None:
    """Refuse very many frames or blocks of next to nothing: each takes microseconds, whatever it holds."""
    if count > _PARTS_MIN + limit // _PART_BYTES:
        raise DecompressedTooLarge(f"records in {count} frames or blocks, for at most {limit} bytes")


def _gzip_pieces(data: memoryview, limit: int) -> Iterator[bytes]:
    end, pos, step, members = len(data), 0, PIECE_SIZE, 0
    while pos < end:
        members += 1
        _check_parts(members, limit)
        member = zlib.decompressobj(wbits=31)
        while not member.eof:
            source: memoryview | bytes = member.unconsumed_tail
            if not source:
                if pos >= end:
                    raise CorruptRecordBatch("gzip records are cut off")
                source = data[pos : pos + step]
                pos += len(source)
            yield member.decompress(source, PIECE_SIZE)
        pos -= len(member.unused_data)
        step = _FOLLOWING_STEP


def _zstd_pieces(data: memoryview, limit: int) -> Iterator[bytes]:
    # Imported at first use: a broker starts without it.
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdDecompressor, ZstdError
    else:
        from backports.zstd import ZstdDecompressor, ZstdError

    end, pos, step, frames = len(data), 0, PIECE_SIZE, 0
    while pos < end:
        frames += 1
        _check_parts(frames, limit)
        if bytes(data[pos : pos + 4]) != _ZSTD_MAGIC:
            raise CorruptRecordBatch(f"zstd frames end at byte {pos} of {end}")
        frame = ZstdDecompressor()
        try:
            while not frame.eof:
                source: memoryview | bytes = b""
                if frame.needs_input:
                    if pos >= end:
                        raise CorruptRecordBatch("zstd records are cut off")
                    source = data[pos : pos + step]
                    pos += len(source)
                yield frame.decompress(source, PIECE_SIZE)
        except ZstdError as error:
            raise CorruptRecordBatch(f"zstd records do not decompress: {error}") from None
        pos -= len(frame.unused_data)
        step = _FOLLOWING_STEP


def _lz4_compressor(level: int | None) -> Any:
    return cramjam.lz4.Compressor(
        level=1 if level is None else level, content_checksum=False, block_linked=False
    )


def _zstd_compressor(level: int | None) -> Any:
    return cramjam.zstd.Compressor(level=3 if level is None else level)


def _xerial_blocks(data: Buffer) -> bytes:
    parts: list[bytes] = []
    view = memoryview(data)
    for start in range(0, len(data), _XERIAL_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK]))
        parts += (_I32.pack(len(block)), block)
    return b"".join(parts)


def _snappy_pieces(data: memoryview, limit: int) -> Iterator[bytes]:
    if bytes(data[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        # A raw block is copied from anywhere before: it is decompressed as a whole.
        yield _snappy_block(data, limit)
        return
    blocks: list[bytes] = []
    pos, size, count = len(_XERIAL_HEADER), 0, 0
    while pos < len(data):
        count += 1
        _check_parts(count, limit)
        length = _I32.unpack_from(data, pos)[0]
        pos += 4
        if not 0 < length <= len(data) - pos:
            raise CorruptRecordBatch(f"snappy block of {length} bytes, {len(data) - pos} are left")
        block = _snappy_block(data[pos : pos + length], limit)
        pos += length
        # Java's blocks of 32 KB are passed on together, so that small bodies come as one piece.
        if blocks and size + len(block) > PIECE_SIZE:
            yield b"".join(blocks)
            blocks, size = [], 0
        blocks.append(block)
        size += len(block)
    yield b"".join(blocks)


def _snappy_block(block: memoryview, limit: int) -> bytes:
    length = int(cramjam.snappy.decompress_raw_len(block))
    if length > _SNAPPY_RATIO * len(block):
        raise CorruptRecordBatch(f"a snappy block of {len(block)} bytes claims to hold {length}")
    if length > limit:
        raise _refuse(limit)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4_pieces(data: memoryview, limit: int) -> Iterator[bytes]:
    pos = parts = 0
    while bytes(data[pos : pos + 4]) == _LZ4_MAGIC:
        frame = _Lz4Frame(data, pos)
        pos = frame.end
        parts += max(frame.block_count, 1)
        _check_parts(parts, limit)
        if frame.bound <= PIECE_SIZE:
            yield frame.decompress()
        elif frame.is_linked:
            # Blocks that refer to the ones before cannot be decompressed one by one. Java's readers and this
            # broker refuse such frames, so they are found in foreign logs only.
            if frame.bound > limit:
                raise _refuse(limit)
            yield frame.decompress()
        else:
            yield from frame.blocks()
    if pos != len(data) or not pos:
        raise CorruptRecordBatch(f"lz4 frames end at byte {pos} of {len(data)}")


class _Lz4Frame:
    """An lz4 frame at `start` of `data`, walked over up to its `end`.

    It has `block_count` blocks, which hold `bound` bytes at most.
    Raises struct.error or IndexError if the frame is cut off.
    """

    __slots__ = ("_block_max", "_data", "_first_block", "_flags", "_start", "block_count", "bound", "end")

    def __init__(self, data: memoryview, start: int) -> None:
        self._data, self._start = data, start
        self._flags = flags = data[start + 4]
        # 4 to 7 are 64 KB to 4 MB; less is an error, which the header's check or cramjam reports.
        self._block_max = 1 << (8 + 2 * (data[start + 5] >> 4 & 7))
        # Magic 4, flags 1, block size 1, optional content size 8 and dictionary id 4, checksum 1.
        pos = start + 7 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
        self._first_block = pos
        checksum_size = 4 if flags & 0x10 else 0
        bound = count = 0
        while size := _U32_LE.unpack_from(data, pos)[0]:
            stored = size & 0x7FFF_FFFF
            bound += stored if size >> 31 else min(self._block_max, stored * _LZ4_RATIO)
            pos += 4 + stored + checksum_size
            count += 1
        self.block_count = count
        self.bound = bound
        self.end = pos + 4 + (4 if flags & 0x04 else 0)
        if self.end > len(data):
            raise CorruptRecordBatch("lz4 records are cut off")

    @property
    def is_linked(self) -> bool:
        return not self._flags & _LZ4_INDEPENDENT_BIT

    def decompress(self) -> bytes:
        """Return what the whole frame holds; cramjam checks its checksums."""
        return bytes(cramjam.lz4.decompress(self._data[self._start : self.end]))

    def blocks(self) -> Iterator[bytes]:
        """Yield what each block holds, and check all checksums on the way."""
        data, flags = self._data, self._flags
        pos = self._first_block
        if xxh32(data[self._start + 4 : pos - 1]) >> 8 & 0xFF != data[pos - 1]:
            raise CorruptRecordBatch("an lz4 frame's header does not match its checksum")
        if flags >> 6 != 1 or flags & 0x02 or not 1 << 16 <= self._block_max <= 1 << 22:
            raise CorruptRecordBatch(f"an lz4 frame with flags {flags:#04x}")
        content = Xxh32() if flags & 0x04 else None
        size_read = 0
        room = bytearray(min(self._block_max, self.bound))
        while size := _U32_LE.unpack_from(data, pos)[0]:
            pos += 4
            block = data[pos : pos + (size & 0x7FFF_FFFF)]
            pos += len(block)
            if flags & 0x10:
                if xxh32(block) != _U32_LE.unpack_from(data, pos)[0]:
                    raise CorruptRecordBatch("an lz4 block does not match its checksum")
                pos += 4
            if size >> 31:
                piece = bytes(block)
            else:
                made = cramjam.lz4.decompress_block_into(block, room, output_len=len(room))
                piece = bytes(memoryview(room)[:made])
            if len(piece) > self._block_max:
                raise CorruptRecordBatch(f"an lz4 block of {len(piece)} bytes")
            if content is not None:
                content.update(piece)
            size_read += len(piece)
            yield piece
        if flags & 0x08 and _U64_LE.unpack_from(data, self._start + 6)[0] != size_read:
            raise CorruptRecordBatch(f"an lz4 frame does not hold the {size_read} bytes its header says")
        if content is not None and content.digest() != _U32_LE.unpack_from(data, pos + 4)[0]:
            raise CorruptRecordBatch("an lz4 frame's content does not match its checksum")


_PIECES: Final[dict[Codec, Callable[[memoryview, int], Iterator[bytes]]]] = {
    Codec.GZIP: _gzip_pieces,
    Codec.SNAPPY: _snappy_pieces,
    Codec.LZ4: _lz4_pieces,
    Codec.ZSTD: _zstd_pieces,
}
