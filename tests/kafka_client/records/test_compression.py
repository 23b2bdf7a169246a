"""Bodies decompressed in pieces: the same bytes, in memory for a piece, and nothing for lies or damage."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys
import threading
from collections.abc import Callable

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.compression import (
    PIECE_SIZE,
    Codec,
    CompressedTooLarge,
    DecompressedTooLarge,
    compress,
    compress_pieces,
    decompress,
    pieces,
)
from kafka_client.records.xxh32 import Xxh32, xxh32

COMPRESSING = list(Codec)[1:]
WORDS = random.Random(5).randbytes(2_000)
TEXT = b"".join(WORDS[i % 1_900 :][:70] for i in range(0, 300_000, 7))
"""3 MB that compress well, but are not one byte only."""


def lz4_frame(data: bytes, *, linked: bool = False, checksum: bool = False) -> bytes:
    frame = cramjam.lz4.Compressor(level=1, content_checksum=checksum, block_linked=linked)
    frame.compress(data)
    return bytes(frame.finish())


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


@pytest.mark.parametrize("codec", COMPRESSING)
def test_large_bodies_come_in_pieces(codec: Codec) -> None:
    parts = list(pieces(codec, compress(codec, TEXT)))
    assert b"".join(parts) == TEXT
    assert len(parts) >= len(TEXT) // PIECE_SIZE
    assert all(0 < len(part) <= PIECE_SIZE for part in parts)


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [1, 100, 60_000, 200_000])
def test_small_bodies_come_as_one_piece(codec: Codec, size: int) -> None:
    assert list(pieces(codec, memoryview(compress(codec, TEXT[:size])))) == [TEXT[:size]]


@given(data=st.binary(max_size=200), repeats=st.integers(1, 5_000), codec=st.sampled_from(Codec))
def test_pieces_are_the_whole(data: bytes, repeats: int, codec: Codec) -> None:
    body = data * repeats
    assert b"".join(pieces(codec, compress(codec, body))) == body


def test_several_frames() -> None:
    many = b"".join(gzip.compress(TEXT[i : i + 40_000]) for i in range(0, len(TEXT), 40_000))
    assert decompress(Codec.GZIP, many) == TEXT
    for codec in (Codec.LZ4, Codec.ZSTD):
        many = b"".join(compress(codec, TEXT[i : i + 400_000]) for i in range(0, len(TEXT), 400_000))
        assert decompress(codec, many) == TEXT


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("checksum", [False, True])
@pytest.mark.parametrize("size", [300, len(TEXT)])
def test_lz4_checksums(linked: bool, checksum: bool, size: int) -> None:
    frame = lz4_frame(TEXT[:size], linked=linked, checksum=checksum)
    assert decompress(Codec.LZ4, frame) == TEXT[:size]
    if checksum:
        with pytest.raises(CorruptRecordBatch):
            decompress(Codec.LZ4, frame[:-1] + bytes([frame[-1] ^ 1]))
    wrong_header = bytearray(frame)
    wrong_header[6] ^= 1
    with pytest.raises(CorruptRecordBatch):
        decompress(Codec.LZ4, bytes(wrong_header))


@pytest.mark.parametrize("level", [1, 3])
def test_zstd_checksums(level: int) -> None:
    if sys.version_info >= (3, 14):
        from compression.zstd import CompressionParameter
        from compression.zstd import compress as zstd_compress
    else:
        from backports.zstd import CompressionParameter
        from backports.zstd import compress as zstd_compress

    options = {CompressionParameter.checksum_flag: 1, CompressionParameter.compression_level: level}
    frame = zstd_compress(TEXT, options=options)
    assert decompress(Codec.ZSTD, frame) == TEXT
    with pytest.raises(CorruptRecordBatch):
        decompress(Codec.ZSTD, frame[:-1] + bytes([frame[-1] ^ 1]))


@pytest.mark.parametrize("size", [50, len(TEXT)])
@pytest.mark.parametrize("codec", COMPRESSING)
def test_cut_off_anywhere(codec: Codec, size: int) -> None:
    whole = compress(codec, TEXT[:size])
    header_size = 16 if codec is Codec.SNAPPY else 0  # xerial's header alone is a body of nothing
    for cut in {1, 2, 3, 4, 8, len(whole) // 3, len(whole) // 2, len(whole) - header_size - 1}:
        with pytest.raises(CorruptRecordBatch):
            decompress(codec, whole[:-cut])


@pytest.mark.parametrize("size", [50, len(TEXT)])
@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("rest", [b"\0", b"rest", b"\xff" * 40])
def test_anything_after_the_frames(codec: Codec, size: int, rest: bytes) -> None:
    with pytest.raises(CorruptRecordBatch):
        decompress(codec, compress(codec, TEXT[:size]) + rest)


@pytest.mark.parametrize("codec", COMPRESSING)
@pytest.mark.parametrize("damage", range(40))
def test_damage_is_refused_or_passed_on_in_bounds(codec: Codec, damage: int) -> None:
    changed = bytearray(compress(codec, TEXT))
    chance = random.Random(damage)
    for _ in range(chance.randint(1, 4)):
        changed[chance.randrange(min(len(changed), chance.choice([20, 10_000])))] = chance.randrange(256)
    try:
        assert len(decompress(codec, bytes(changed), len(TEXT))) <= len(TEXT)
    except CorruptRecordBatch:
        pass


@pytest.mark.parametrize("codec", COMPRESSING)
def test_the_limit_holds_for_all_pieces_together(codec: Codec) -> None:
    body = compress(codec, TEXT)
    assert len(decompress(codec, body, len(TEXT))) == len(TEXT)
    size = 0
    with pytest.raises(CorruptRecordBatch, match="more than 1000000 bytes"):
        for piece in pieces(codec, body, 1_000_000):
            size += len(piece)
    assert size <= 1_000_000


RSS = """
import resource, sys
from kafka_client.records.compression import Codec, pieces
from kafka_client.errors import CorruptRecordBatch

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

list(pieces(Codec.ZSTD, {warm!r}))
body = sys.stdin.buffer.read()
before = peak()
size = 0
try:
    for piece in pieces(Codec({codec}), body, 150_000_000):
        size += len(piece)
except CorruptRecordBatch as error:
    print(error, end=" ")
print(size, peak() - before)
"""


def rss_growth(codec: Codec, body: bytes) -> tuple[str, int]:
    """Run a process that reads `body` in pieces; return its output and its growth of memory in bytes."""
    script = RSS.format(codec=codec.value, warm=compress(Codec.ZSTD, b"warm"))
    done = subprocess.run([sys.executable, "-c", script], input=body, capture_output=True, check=True)
    *printed, growth = done.stdout.decode().rsplit(maxsplit=1)
    return printed[0], int(growth) * 1024


MILLION = bytes(1_000_000)
BOMBS: dict[str, tuple[Codec, Callable[[], bytes]]] = {
    "gzip": (Codec.GZIP, lambda: compress(Codec.GZIP, MILLION * 200)),
    "gzip members": (Codec.GZIP, lambda: compress(Codec.GZIP, MILLION) * 200),
    "snappy": (Codec.SNAPPY, lambda: compress(Codec.SNAPPY, MILLION * 200)),
    "lz4": (Codec.LZ4, lambda: compress(Codec.LZ4, MILLION * 200)),
    "zstd": (Codec.ZSTD, lambda: compress(Codec.ZSTD, MILLION * 200)),
    "zstd frames": (Codec.ZSTD, lambda: compress(Codec.ZSTD, MILLION) * 200),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_needs_the_memory_of_a_piece(name: str) -> None:
    """200 MB of zeros under a limit of 150."""
    codec, make = BOMBS[name]
    printed, growth = rss_growth(codec, make())
    complaint, _, size = printed.rpartition(" ")
    assert complaint == "records decompress to more than 150000000 bytes"
    assert 150_000_000 - PIECE_SIZE <= int(size) <= 150_000_000
    assert growth < 16_000_000


LIES: dict[str, tuple[Codec, bytes]] = {
    "snappy length": (Codec.SNAPPY, b"\xff\xff\xff\xff\x0f" + bytes(1000)),
    "snappy block": (Codec.SNAPPY, b"\x82SNAPPY\0\0\0\0\1\0\0\0\1\x7f\xff\xff\xff" + bytes(1000)),
    "lz4 content size": (
        Codec.LZ4,
        b"\x04\x22\x4d\x18\x68\x70" + b"\xff" * 7 + b"\x0f" + b"\0" + bytes(1000),
    ),
    "lz4 block": (Codec.LZ4, b"\x04\x22\x4d\x18\x60\x70\x73\xff\xff\xff\x7f" + bytes(1000)),
    # A window of 128 MB, as large as Java's readers take; and one of 3 TB.
    "zstd window": (Codec.ZSTD, b"\x28\xb5\x2f\xfd\x00\x88\x01\0\0"),
    "zstd large window": (Codec.ZSTD, b"\x28\xb5\x2f\xfd\x00\xff\x01\0\0"),
    "zstd content size": (Codec.ZSTD, b"\x28\xb5\x2f\xfd\xe0" + b"\xff" * 7 + b"\x0f" + b"\1\0\0"),
}


@pytest.mark.parametrize("name", LIES)
def test_lies_need_no_memory(name: str) -> None:
    _, growth = rss_growth(*LIES[name])
    assert growth < 8_000_000


def test_a_large_lz4_frame_of_linked_blocks_is_bounded_before_it_is_read() -> None:
    with pytest.raises(CorruptRecordBatch, match="more than 1000000 bytes"):
        next(pieces(Codec.LZ4, lz4_frame(TEXT, linked=True), 1_000_000))


def test_a_raw_snappy_block_is_bounded_before_it_is_read() -> None:
    with pytest.raises(CorruptRecordBatch, match="more than 1000000 bytes"):
        next(pieces(Codec.SNAPPY, raw_snappy(TEXT), 1_000_000))


EMPTY = {
    Codec.GZIP: lambda: compress(Codec.GZIP, b"") * 5_000,
    Codec.SNAPPY: lambda: compress(Codec.SNAPPY, b"x")[:16] + compress(Codec.SNAPPY, b"x")[16:] * 5_000,
    Codec.LZ4: lambda: lz4_frame(b"x") * 5_000,
    Codec.ZSTD: lambda: compress(Codec.ZSTD, b"") * 5_000,
}


@pytest.mark.parametrize("codec", COMPRESSING)
def test_very_many_frames_of_nothing(codec: Codec) -> None:
    """Empty frames take microseconds each: 64 KB of them blocked an event loop for a tenth of a second."""
    data = bytes(EMPTY[codec]())
    assert len(decompress(codec, data, 10_000_000)) <= 5_000
    with pytest.raises(DecompressedTooLarge, match="frames or blocks"):
        decompress(codec, data, 256 * 1024)


def test_codecs_work_in_threads_at_once() -> None:
    results: dict[int, bytes] = {}

    def work(number: int) -> None:
        codec = COMPRESSING[number % len(COMPRESSING)]
        results[number] = decompress(codec, compress(codec, TEXT + bytes([number])))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(results[number] == TEXT + bytes([number]) for number in range(8))


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", 0x02CC5D05),
        (b"a", 0x550D7456),
        (b"abc", 0x32D153FF),
        (b"Nobody inspects the spammish repetition", 0xE2293B2F),
    ],
)
def test_xxh32(data: bytes, digest: int) -> None:
    assert xxh32(data) == digest


@given(parts=st.lists(st.binary(max_size=40)))
def test_xxh32_of_pieces(parts: list[bytes]) -> None:
    state = Xxh32()
    for part in parts:
        state.update(part)
    assert state.digest() == xxh32(b"".join(parts))


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("size", [0, 1, PIECE_SIZE, len(TEXT)])
def test_compressed_from_pieces(codec: Codec, size: int) -> None:
    parts = [TEXT[start : min(start + PIECE_SIZE, size)] for start in range(0, size, PIECE_SIZE)]
    made = compress_pieces(codec, parts, 10_000_000)
    assert decompress(codec, made) == TEXT[:size]
    assert len(made) <= 1.1 * len(compress(codec, TEXT[:size])) + 100
    with pytest.raises(CompressedTooLarge):
        compress_pieces(codec, parts, len(made) - 1)


def test_lz4_from_pieces_has_independent_blocks() -> None:
    """Java refuses linked ones."""
    assert compress_pieces(Codec.LZ4, [TEXT, TEXT], 10_000_000)[4] & 0x20
