"""Records of `__consumer_offsets` are, byte for byte, those of Kafka's own classes, in every version.

java -cp "$KAFKA_LIBS/*" tests/java/GoldenRecords.java group > tests/logd/groups/golden/records.txt
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.wire import Message, decode_exactly, encode
from logd.groups.records import GroupMetadataKey, GroupMetadataValue, OffsetCommitKey, OffsetCommitValue
from tests.support.golden_records import GoldenRecord, read_golden
from tests.support.java import needs_javac, run_program

GOLDEN = Path(__file__).parent / "golden" / "records.txt"
OURS: dict[str, type[Message]] = {
    "LegacyOffsetCommitKey": OffsetCommitKey,
    "LegacyOffsetCommitValue": OffsetCommitValue,
    "OffsetCommitKey": OffsetCommitKey,
    "OffsetCommitValue": OffsetCommitValue,
    "GroupMetadataKey": GroupMetadataKey,
    "GroupMetadataValue": GroupMetadataValue,
}
RECORDS = [record for record in read_golden(GOLDEN) if record.name in OURS]


def test_every_version_is_there() -> None:
    versions = {(record.name, record.version) for record in RECORDS}
    assert {version for name, version in versions if name == "OffsetCommitValue"} == set(range(5))
    assert {version for name, version in versions if name == "GroupMetadataValue"} == set(range(5))


@pytest.mark.parametrize("golden", RECORDS, ids=lambda golden: f"{golden.name}-{golden.version}")
def test_kafkas_bytes(golden: GoldenRecord) -> None:
    cls = OURS[golden.name]
    # The number a key begins with is its type in Kafka 4, and was its version before: it still is ours.
    version = golden.kind if cls is GroupMetadataKey else golden.version
    message = decode_exactly(cls, version, golden.data)
    assert encode(message, version) == golden.data


@needs_javac
def test_kafka_writes_them_still() -> None:
    assert run_program("GoldenRecords", "group") == GOLDEN.read_text(encoding="utf-8")
