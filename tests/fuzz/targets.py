"""The functions to fuzz: they take any bytes, and may refuse them only as documented.

A target raises AssertionError where it finds a bug: another error, or more memory than what arrived explains.
"""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from kafka_client.errors import CorruptRecordBatch, KafkaError, MalformedMessage
from kafka_client.records import check_produced, decode_columns, decode_records, iter_batches, reader
from kafka_client.records.control import parse_marker
from kafka_client.records.header import HEADER_SIZE, LOG_OVERHEAD, compute_crc, read_header
from kafka_client.records.validate import check_records
from kafka_client.wire import decode_request_header, request_class
from kafka_client.wire.compile import decoder
from kafka_client.wire.fetch import decode_fetch_request
from kafka_client.wire.produce import decode_produce_request
from logd.api.table import APIS, FETCH, PRODUCE
from tests.support.plain_modules import plain_module

CORPUS = Path(__file__).parent / "corpus"
MAGIC_POSITION = 16
SIZE_MAX = 4096
"""Longest input that is tried."""
BYTES_MAX = 1_000_000
"""Bytes that a decoder may allocate for an input of that size."""
DECOMPRESSED_MAX = 16 * 1024

PLAIN_READER = plain_module("kafka_client.records.reader")
"""The reader as plain Python, in which `run` sees what is reached; in C it sees nothing."""
PART = 2
"""Records that are read at a time, where a batch is read in parts."""

Decoder = Callable[[bytes, int], tuple[Any, int]]
_decoders: dict[tuple[int, int], Decoder] = {}


class Target(NamedTuple):
    """``run`` gives whether the input was of the kind the target is about."""

    name: str
    run: Callable[[bytes], bool]

    @property
    def corpus(self) -> Path:
        """Where the inputs kept are."""
        return CORPUS / self.name


def instrumented(decode: Decoder) -> Decoder:
    """Return a compiled decoder as it is. `run` replaces this function by one that counts steps."""
    return decode


def requests(data: bytes) -> bool:
    """Decode a request without its length in front: API key, version, correlation id and so on."""
    if len(data) < 8:
        return False
    key, version = struct.unpack_from(">hh", data)
    api = APIS.get(key)
    if api is None or not api.serves_from <= version <= api.last:
        return False
    decode = decoder_of(key, version)
    with Bounded():
        try:
            decode(data, decode_request_header(data).body)
        except MalformedMessage:
            pass
    return True


def decoder_of(key: int, version: int) -> Decoder:
    """Return the decoder of a request's body; it is compiled here, where nothing counts memory."""
    decode = _decoders.get((key, version))
    if decode is None:
        if key == PRODUCE:
            decode = lambda data, pos: (_produce(data, version, pos), 0)  # noqa: E731
        elif key == FETCH:
            decode = lambda data, pos: (decode_fetch_request(data, version, pos), 0)  # noqa: E731
        else:
            decode = instrumented(decoder(request_class(key), version))
        decode_request_header(struct.pack(">hhihb", key, version, 0, -1, 0))
        _decoders[key, version] = decode
    return decode


def _produce(data: bytes, version: int, pos: int) -> None:
    for _, partitions in decode_produce_request(data, version, pos).topics:
        for _, records in partitions:
            _batch(records)


def batches(data: bytes) -> bool:
    """Check a batch as a producer sends it, as it is and with a correct CRC."""
    with Bounded():
        _batch(memoryview(data))
        if len(data) > HEADER_SIZE:
            mended = bytearray(data)
            struct.pack_into(">I", mended, 17, compute_crc(mended, 0, len(mended)))
            _batch(memoryview(mended))
    return True


def _batch(records: memoryview) -> None:
    try:
        for pos, header in iter_batches(records):
            assert pos + header.size <= len(records)
        check_produced(records)
    except (KafkaError, CorruptRecordBatch):
        pass
    try:
        decoded = decode_records(records, limit=DECOMPRESSED_MAX)
        header = read_header(records)
        assert len(decoded) == header.count
        assert len(decode_columns(records, limit=DECOMPRESSED_MAX).offsets) == header.count
        check_records(records, check_produced(records), limit=DECOMPRESSED_MAX)
    except (KafkaError, CorruptRecordBatch):
        return
    if header.is_control:
        try:
            parse_marker(records)
        except CorruptRecordBatch:
            pass


def records(data: bytes) -> bool:
    """Read a batch whose header fits its bytes in every form. Compiled and plain readers give the same."""
    if len(data) <= HEADER_SIZE:
        return False
    batch = bytearray(data)
    struct.pack_into(">i", batch, 8, len(batch) - LOG_OVERHEAD)
    batch[MAGIC_POSITION] = 2
    with Bounded():
        for form in ("check", "spans", "records", "columns", "arrow", "latest"):
            compiled, plain = (_outcome(module, bytes(batch), form) for module in (reader, PLAIN_READER))
            assert compiled == plain, f"{form}: {compiled}, but as plain Python {plain}"
    return True


def _outcome(module: ModuleType, batch: bytes, form: str) -> list[object]:
    """Everything that one form of reading gives; what it raises comes last."""
    results: list[object] = []
    try:
        parts = module.RecordReader(batch, limit=DECOMPRESSED_MAX)
        if form == "check":
            results.append(parts.check())
        elif form == "latest":
            latest: dict[bytes, bytes | None] = {}
            results.append(latest)
            results.append(parts.latest(latest))
        elif form == "spans":
            while spans := parts.spans():
                results.append((spans, bytes(parts.piece)))
        else:
            parts.skip_to(read_header(batch).base_offset + 1)
            while parts.remaining:
                results.append((getattr(parts, form)(PART), parts.bytes_read))
    except CorruptRecordBatch as error:
        results.append(str(error))
    return results


class Bounded:
    """Inside, little may be allocated at any time; only looked at while `tracemalloc` runs."""

    def __enter__(self) -> None:
        if tracemalloc.is_tracing():
            tracemalloc.reset_peak()
            self._before = tracemalloc.get_traced_memory()[0]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and tracemalloc.is_tracing():
            allocated = tracemalloc.get_traced_memory()[1] - self._before
            assert allocated < BYTES_MAX, f"{allocated} bytes allocated"


TARGETS = {
    target.name: target
    for target in (Target("requests", requests), Target("batches", batches), Target("records", records))
}
