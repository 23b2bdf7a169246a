"""Records of `__transaction_state` are, byte for byte, those of Kafka's own classes, in every version.

cd tests; java -cp "$KAFKA_LIBS/*" java/GoldenRecords.java transaction > logd/transactions/golden/records.txt
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.wire import Message, decode_exactly, encode
from logd.transactions.records import TransactionLogKey, TransactionLogValue
from tests.support.golden_records import GoldenRecord, read_golden
from tests.support.java import needs_javac, run_program

GOLDEN = Path(__file__).parent / "golden" / "records.txt"
OURS: dict[str, type[Message]] = {
    "TransactionLogKey": TransactionLogKey,
    "TransactionLogValue": TransactionLogValue,
}
RECORDS = list(read_golden(GOLDEN))


def test_every_version_is_there() -> None:
    versions = {(record.name, record.version) for record in RECORDS}
    assert versions == {("TransactionLogKey", 0), ("TransactionLogValue", 0), ("TransactionLogValue", 1)}


@pytest.mark.parametrize("golden", RECORDS, ids=lambda golden: f"{golden.name}-{golden.version}")
def test_kafkas_bytes(golden: GoldenRecord) -> None:
    message = decode_exactly(OURS[golden.name], golden.version, golden.data)
    assert encode(message, golden.version) == golden.data


@needs_javac
def test_kafka_writes_them_still() -> None:
    assert run_program("GoldenRecords", "transaction") == GOLDEN.read_text(encoding="utf-8")
