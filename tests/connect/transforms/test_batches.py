"""Whole batches through the transforms: the same records as one by one, for random chains and records."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from connect.api import SinkRecord, SourceRecord
from connect.api import schema as s
from connect.transforms import TransformChain
from connect.transforms.chain import TransformError
from tests.connect.transforms.random_records import NAMES, a_record

TRANSFORMS: tuple[dict[str, str], ...] = (
    {"type": "InsertField", "topic.field": "topic", "timestamp.field": "at", "static.field": "c!"},
    {"type": "InsertField", "offset.field": "offset", "partition.field": "a"},
    {"type": "MaskField", "fields": "a,b"},
    {"type": "MaskField", "fields": "a,d", "replacement": "7"},
    {"type": "ReplaceField", "exclude": "c", "renames": "a:z,d:y"},
    {"type": "ReplaceField", "renames": "a:b,b:a"},
    {"type": "ReplaceField", "include": "a,b"},
    {"type": "ReplaceField", "exclude": "b", "replace.null.with.default": "false"},
    {"type": "Cast", "spec": "a:string,b:int32"},
    {"type": "Cast", "spec": "d:float64,z:boolean"},
    {"type": "Cast", "spec": "string"},
    {"type": "HoistField", "field": "a"},
    {"type": "ExtractField", "field": "b"},
    {"type": "Flatten"},
    {"type": "HeaderFrom", "fields": "a", "headers": "ha", "operation": "move"},
    {"type": "SetSchemaMetadata", "schema.name": "other"},
    {"type": "TimestampConverter", "field": "a", "target.type": "unix"},
)
OTHERS: tuple[dict[str, str], ...] = (
    {"type": "RegexRouter", "regex": "(.*)", "replacement": "new-$1"},
    {"type": "ValueToKey", "fields": "a"},
    {"type": "InsertHeader", "header": "x", "value.literal": "1"},
    {"type": "Filter", "predicate": "null"},
    {"type": "Filter", "predicate": "null", "negate": "true"},
)


def a_chain(random: Random) -> dict[str, str]:
    """Return the settings of one to five transforms, of keys, of values and of neither."""
    settings = {"predicates": "null", "predicates.null.type": "RecordIsTombstone"}
    count = random.randrange(1, 6)
    for number in range(count):
        transform = dict(random.choice(random.choice((TRANSFORMS, TRANSFORMS, TRANSFORMS, OTHERS))))
        if transform in map(dict, TRANSFORMS):
            transform["type"] += random.choice(("$Value", "$Value", "$Value", "$Key"))
            if random.random() < 0.1:
                transform |= {"predicate": "null", "negate": "true"}
        if "static.field" in transform:
            transform["static.value"] = "constant"
        settings |= {f"transforms.t{number}.{key}": value for key, value in transform.items()}
    return settings | {"transforms": ",".join(f"t{number}" for number in range(count))}


def some_records(random: Random) -> list[SinkRecord]:
    """Return records of a few schemas, in any order; the keys are as the values of others."""
    kinds = [a_record(random) for _ in range(random.randrange(1, 4))]
    records = []
    for offset in range(random.randrange(2, 9)):
        record, other = copy.copy(random.choice(kinds)), random.choice(kinds)
        record.offset, record.key, record.key_schema = offset, other.value, other.value_schema
        records.append(record)
    return records


def results(settings: dict[str, str], batches: list[list[SinkRecord]]) -> tuple[str, list[tuple[int, str]]]:
    """Return the records behind a new chain as text, and the offsets and messages of failures."""
    chain, failures = TransformChain.configured(settings), []

    def failed(error: TransformError, record: SinkRecord) -> None:
        failures.append((record.offset, str(error)))

    passed = [record for batch in batches for record in chain.apply(batch, failed)]
    return repr(passed), failures


@pytest.mark.parametrize("seed", range(40))
def test_a_batch_becomes_what_its_records_become_one_by_one(seed: int) -> None:
    random = Random(seed)
    for _ in range(25):
        settings, records = a_chain(random), some_records(random)
        before = repr(records)
        singly = results(settings, [[record] for record in records])
        assert results(settings, [records]) == singly, settings
        assert repr(records) == before


def test_batches_are_not_taken_singly() -> None:
    class Counted(dict[str, Any]):
        """A map that no transform of one record has seen."""

        def copy(self) -> dict[str, Any]:
            raise AssertionError("taken one by one")

    chain = TransformChain.configured(
        {"transforms": "m", "transforms.m.type": "MaskField$Value", "transforms.m.fields": "a"}
    )
    for schema in (None, s.struct({"a": s.string(), "b": s.int8()})):
        records = [SourceRecord("t", Counted(a="x", b=n), value_schema=schema) for n in range(3)]
        assert [each.value for each in chain.apply(records)] == [{"a": "", "b": n} for n in range(3)]
        with pytest.raises(TransformError, match="taken one by one"):
            chain.apply(records[:1])


def test_records_of_many_schemas_keep_their_order() -> None:
    chain = TransformChain.configured(
        {"transforms": "m", "transforms.m.type": "MaskField$Value", "transforms.m.fields": NAMES[0]}
    )
    schemas = [s.struct({"a": s.string(), "n": s.int32()}, name=f"s{n}") for n in range(50)]
    for _ in range(2):
        records = [
            SinkRecord("t", 0, n, {"a": "x", "n": n}, value_schema=schemas[n * 7 % 50]) for n in range(200)
        ]
        masked = chain.apply(records)
        assert [(each.value, each.value_schema) for each in masked] == [
            ({"a": "", "n": n}, schemas[n * 7 % 50]) for n in range(200)
        ]
