"""Record batches that lie: refused with Kafka's code, nothing of them in the log, nobody else disturbed."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable

import pytest
from crc32c import crc32c

from kafka_client.errors import ErrorCode
from kafka_client.records import Codec, build_batch, compress
from kafka_client.records.compression import DECOMPRESSED_LIMIT
from tests.faults.conftest import PEAK_GROWTH_MAX
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic

pytestmark = pytest.mark.usefixtures("bystander")

GOOD = build_batch([(1, b"key", b"value", ()), (2, None, b"v", ()), (3, b"k", None, ())])
HEADER = struct.Struct(">qiibIhiqqqhii")
BOMB = 270_000_000
"""More than a batch may decompress to."""
CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD


def altered(body: bytes = GOOD[61:], **fields: int) -> bytes:
    """Return the good batch with other header fields or another body, with correct length and CRC."""
    names = "base_offset length epoch magic crc attributes last_delta base_time max_time pid pepoch seq count"
    values = dict(zip(names.split(), HEADER.unpack_from(GOOD), strict=True))
    values |= {"length": 49 + len(body), **fields}
    packed = HEADER.pack(*values.values())
    crc = crc32c(packed[21:] + body)
    return packed[:17] + struct.pack(">I", crc) + packed[21:] + body


@deep
@pytest.mark.parametrize(
    ("batch", "error"),
    [
        pytest.param(GOOD[:-1] + b"\xff", CORRUPT, id="wrong CRC"),
        pytest.param(GOOD[:17] + bytes(4) + GOOD[21:], CORRUPT, id="no CRC"),
        pytest.param(b"", CORRUPT, id="nothing"),
        pytest.param(b"\0", CORRUPT, id="a byte"),
        pytest.param(GOOD[:60], CORRUPT, id="less than a header"),
        pytest.param(GOOD[:-1], CORRUPT, id="cut off"),
        pytest.param(bytes(100), INVALID, id="zeros"),
        pytest.param(b"\xff" * 100, CORRUPT, id="ones"),
        pytest.param(altered(length=0), CORRUPT, id="no length"),
        pytest.param(altered(length=-1), CORRUPT, id="negative length"),
        pytest.param(altered(length=2**31 - 1), CORRUPT, id="endless"),
        pytest.param(altered(length=len(GOOD)), CORRUPT, id="longer than it is"),
        pytest.param(altered(length=60), INVALID, id="shorter than it is"),
        pytest.param(GOOD * 2, INVALID, id="two batches"),
        pytest.param(altered(magic=0), INVALID, id="magic 0"),
        pytest.param(altered(magic=1), INVALID, id="magic 1"),
        pytest.param(altered(magic=3), CORRUPT, id="magic 3"),
        pytest.param(altered(attributes=7), CORRUPT, id="codec 7"),
        pytest.param(altered(attributes=0x20), INVALID, id="control batch"),
        pytest.param(altered(count=4), INVALID, id="one record too many"),
        pytest.param(altered(count=2), INVALID, id="one record too few"),
        pytest.param(altered(count=0, last_delta=0), INVALID, id="no records"),
        pytest.param(altered(count=-1), CORRUPT, id="negative count"),
        pytest.param(altered(last_delta=-1), CORRUPT, id="negative delta"),
        pytest.param(altered(count=2**31 - 1, last_delta=2**31 - 2), INVALID, id="two billion records"),
        pytest.param(altered(pid=5), INVALID, id="producer id without epoch"),
        pytest.param(altered(pid=5, pepoch=0), INVALID, id="producer id without sequence"),
        pytest.param(altered(attributes=0x10), INVALID, id="transaction without producer id"),
    ],
)
def test_refused(logd: LogdProcess, batch: bytes, error: ErrorCode, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("batch"))
    with RawClient(logd.port) as client:
        for version in (3, 9, 12):
            answer = client.produce(topic, batch, version=version)
            assert (answer.error_code, answer.base_offset) == (error, -1)
        assert client.fetch(topic).high_watermark == 0
        assert client.produce(topic, GOOD).base_offset == 0


def peak_of(codec: Codec, body: str) -> int:
    """zlib finds out by decompressing, and puts what it has together when it is too much; the others know."""
    is_found_late = codec is Codec.GZIP and body == "bomb"
    return PEAK_GROWTH_MAX + (2 * DECOMPRESSED_LIMIT if is_found_late else 0)


@deep
@pytest.mark.parametrize(
    ("codec", "body", "peak_growth_max"),
    [
        pytest.param(codec, body, peak_of(codec, body), id=f"{body}-{codec.name.lower()}")
        for codec in list(Codec)[1:]
        for body in ("garbage", "other records", "bomb")
    ],
)
def test_what_has_to_be_decoded_is_decoded_in_bounds(
    logd: LogdProcess, codec: Codec, body: str, new_name: Callable[[str], str]
) -> None:
    """Records of a compacted topic are decoded for their keys, however large the batch says they are."""
    if body == "bomb":
        records = compress(codec, bytes(BOMB), 1 if codec in (Codec.GZIP, Codec.ZSTD) else None)
    else:
        records = os.urandom(3000) if body == "garbage" else compress(codec, GOOD[61:-8])
    topic = create_topic(
        logd, new_name("batch"), {"cleanup.policy": "compact", "max.message.bytes": "20000000"}
    )
    with RawClient(logd.port) as client:
        answer = client.produce(topic, altered(records, attributes=codec))
        assert answer.error_code in (INVALID, CORRUPT)
        assert client.fetch(topic).high_watermark == 0


def test_acks_0_is_answered_by_a_closed_connection(logd: LogdProcess, new_name: Callable[[str], str]) -> None:
    topic = create_topic(logd, new_name("batch"))
    with RawClient(logd.port) as client:
        client.send_produce(topic, GOOD, acks=0)
        client.send_produce(topic, GOOD[:-1] + b"\xff", acks=0)
        assert client.is_closed_by_peer()
    with RawClient(logd.port) as client:
        assert client.fetch(topic).high_watermark == 3
