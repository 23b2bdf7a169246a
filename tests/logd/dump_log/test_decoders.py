"""Records of internal topics are printed as Kafka's converters print them: every type, every version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kafka_client.wire import decode_exactly, encode
from logd.dump_log.decoders import decode_offsets, decode_transactions
from logd.dump_log.newer_groups import NEWER_GROUPS
from logd.transactions.records import TransactionLogValue
from tests.support.golden_records import GoldenRecord, read_golden

LOGD_TESTS = Path(__file__).parent.parent
GROUPS = list(read_golden(LOGD_TESTS / "groups" / "golden" / "records.txt"))
TRANSACTIONS = list(read_golden(LOGD_TESTS / "transactions" / "golden" / "records.txt"))
STATES = dict(
    enumerate(
        (
            "Empty",
            "Ongoing",
            "PrepareCommit",
            "PrepareAbort",
            "CompleteCommit",
            "CompleteAbort",
            "Dead",
            "PrepareEpochFence",
        )
    )
)
NEWER = [record for record in GROUPS if record.kind > 2]


def name(golden: GoldenRecord) -> str:
    return f"{golden.name}-{golden.version}"


def text(golden: GoldenRecord, keys: dict[int, GoldenRecord], decoder: object) -> object:
    """Return the decoder's JSON of a golden record: a key's own, or a value's when decoded with a key of its
    type.
    """
    is_key = golden.name.endswith("Key")
    key = golden if is_key else keys[golden.kind]
    data = golden.kind.to_bytes(2, "big") + key.data
    value = None if is_key else golden.version.to_bytes(2, "big") + golden.data
    key_text, payload = decoder(7, data, value)  # type: ignore[operator]
    assert json.loads(key_text) == {"type": str(key.kind), "data": key.json}
    if is_key:
        assert payload == "<DELETE>"
        return key.json
    assert json.loads(payload)["version"] == str(golden.version)
    return json.loads(payload)["data"]


@pytest.mark.parametrize("golden", GROUPS, ids=name)
def test_groups(golden: GoldenRecord) -> None:
    keys = {record.kind: record for record in GROUPS if record.name.endswith("Key")}
    decoded = text(golden, keys, decode_offsets)
    assert json.dumps(decoded) == json.dumps(golden.json), "the fields' order counts too"


@pytest.mark.parametrize("golden", TRANSACTIONS, ids=name)
def test_transactions(golden: GoldenRecord) -> None:
    keys = {record.kind: record for record in TRANSACTIONS if record.name.endswith("Key")}
    decoded = text(golden, keys, decode_transactions)
    expected = dict(golden.json)
    if "transactionStatus" in expected:  # Kafka's tool puts a name in its place
        number = expected["transactionStatus"]
        expected["transactionStatus"] = STATES.get(number, str(number))
    assert json.dumps(decoded) == json.dumps(expected), "the fields' order counts too"


def test_states_of_transactions_by_name() -> None:
    value = TransactionLogValue(transaction_status=2)
    _, payload = decode_transactions(7, b"\0\0\0\1t", b"\0\1" + encode(value, 1))
    assert json.loads(payload or "")["data"]["transactionStatus"] == "PrepareCommit"


@pytest.mark.parametrize("golden", NEWER, ids=name)
def test_newer_groups_bytes(golden: GoldenRecord) -> None:
    cls = NEWER_GROUPS[golden.kind][golden.name.endswith("Value")]
    assert encode(decode_exactly(cls, golden.version, golden.data), golden.version) == golden.data


def test_all_types_are_known() -> None:
    assert {record.kind for record in NEWER} == set(NEWER_GROUPS)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        (None, b"\0\0", "Error at offset 9, skipping. The record has no key."),
        (b"\0", b"", "Error at offset 9, skipping. 1 bytes are too few for a version"),
        (b"\0\x63rest", b"", "Unknown record type 99 at offset 9, skipping."),
        (
            b"\0\2\0\1g",
            b"\0\x09",
            "Error at offset 9, skipping. GroupMetadataValue has versions 0 to 4, not 9",
        ),
    ],
)
def test_what_is_no_record(key: bytes | None, value: bytes, expected: str) -> None:
    assert decode_offsets(9, key, value) == (expected, None)
