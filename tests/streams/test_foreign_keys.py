"""Foreign-key joins: their bytes held to Kafka's, printed by tests/java/ForeignKeys.java, and a whole run.

The rules are held in test_rules.py, names in test_describe.py.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streams.serdes import String
from streams.serdes.foreign_key import (
    Instruction,
    Response,
    ResponseSerde,
    Subscription,
    SubscriptionSerde,
    behind,
    combined_key,
)
from streams.serdes.murmur3 import murmur3_128
from tests.support import java

GOLDEN = Path(__file__).parent / "golden" / "foreign-keys"
HASH = murmur3_128(b"value")


def golden(name: str) -> list[str]:
    return (GOLDEN / f"{name}.txt").read_text().splitlines()


@java.needs_jar("kafka-streams")
def test_kafkas_bytes_are_these() -> None:
    told = java.run_sections("ForeignKeys")
    if os.environ.get("REWRITE"):
        for name, text in told.items():
            (GOLDEN / f"{name}.txt").write_text(text)
    assert told == {path.stem: path.read_text() for path in GOLDEN.glob("*.txt")}


def test_hashes_are_kafkas() -> None:
    for line in golden("hashes"):
        length, hash = line.split(" ")
        data = bytes((at * 37 + int(length)) % 256 for at in range(int(length)))
        assert murmur3_128(data).hex() == hash, line


def test_subscriptions_are_kafkas() -> None:
    serde = SubscriptionSerde(String())
    subscriptions = [Subscription(hash, each, "key", 5) for each in Instruction for hash in (HASH, None)]
    subscriptions.append(Subscription(HASH, Instruction.DELETE_KEY_AND_PROPAGATE, "key", None))
    assert [serde.serialize(each).hex() for each in subscriptions] == golden("subscriptions")
    for each in subscriptions:
        assert serde.deserialize(serde.serialize(each)) == each
    with pytest.raises(ValueError, match="version 2"):
        serde.deserialize(b"\x82\x00")


def test_responses_are_kafkas() -> None:
    serde = ResponseSerde(String())
    responses = [Response(hash, value, None) for value in ("foreign", None) for hash in (HASH, None)]
    assert [serde.serialize(each).hex() for each in responses] == golden("responses")
    for each in responses:
        assert serde.deserialize(serde.serialize(each)) == each
    with pytest.raises(ValueError, match="version 1"):
        serde.deserialize(b"\x81")


def test_combined_keys_of_a_foreign_key_are_a_range() -> None:
    keys = [combined_key(foreign, b"k") for foreign in (b"", b"a", b"\xff", b"\xff\xff", b"aa")]
    for foreign in (b"", b"a", b"\xff", b"\xff\xff", b"aa"):
        prefix = combined_key(foreign, b"")
        assert [key for key in keys if prefix <= key < behind(prefix)] == [combined_key(foreign, b"k")]
