"""The chain: its configuration, predicates, errors, and transforms from one record to none or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import msgspec
import pytest

from connect.api import (
    Config,
    ConfigError,
    DataError,
    Predicate,
    SinkRecord,
    SourceRecord,
    Transform,
    setting,
)
from connect.config import validate
from connect.config.validation import unknown_keys
from connect.transforms import TransformChain, TransformError, examine

HERE = __name__


class SuffixConfig(Config):
    """Adds a suffix."""

    suffix: str = setting("The suffix.")


class Suffix(Transform):
    """Adds a suffix to the topic."""

    CONFIG = SuffixConfig
    closed: ClassVar[list[str]] = []

    def configure(self, config: Mapping[str, str]) -> None:
        self.suffix = SuffixConfig.parse(config).suffix
        if self.suffix == "-bad":
            raise ConfigError("suffix", self.suffix, "is bad")
        if self.suffix == "-broken":
            raise RuntimeError("broken")

    def apply(self, record: Any) -> Any:
        return msgspec.structs.replace(record, topic=record.topic + self.suffix)

    def close(self) -> None:
        self.closed.append(self.suffix)
        if self.suffix == "-unclosable":
            raise RuntimeError("does not close")


class Split(Transform):
    """Makes a record of each item of the value; anything but a list is refused."""

    def apply(self, record: Any) -> Any:
        if not isinstance(record.value, list):
            raise DataError("the value is no list")
        return [msgspec.structs.replace(record, value=item) for item in record.value]


class Odd(Transform):
    """Returns no record."""

    def apply(self, record: Any) -> Any:
        return "text"


class Positive(Predicate):
    """Is True for values above 0."""

    def test(self, record: Any) -> bool:
        return bool(record.value > 0)


class Unconnected:
    """No transform."""


def chain(*aliases: str, **settings: object) -> TransformChain:
    keys = {key.replace("__", "."): value for key, value in settings.items()}
    return TransformChain.configured({"transforms": ",".join(aliases), **keys})


def names(records: Sequence[Any]) -> list[tuple[str, Any]]:
    return [(r.topic, r.value) for r in records]


def test_without_transforms_the_records_pass() -> None:
    empty = TransformChain.configured({"name": "c"})
    assert empty.is_empty
    assert empty.apply([SourceRecord("t", 1)]) == [SourceRecord("t", 1)]
    assert not chain("a", transforms__a__type="HoistField$Value", transforms__a__field="f").is_empty


@pytest.mark.parametrize("name", ["HoistField$Value", "org.apache.kafka.connect.transforms.HoistField$Value"])
def test_kafkas_class_names(name: str) -> None:
    hoist = chain("h", transforms__h__type=name, transforms__h__field="f")
    assert hoist.apply([SourceRecord("t", 1)]) == [SourceRecord("t", {"f": 1})]


def test_transforms_apply_in_order_and_close() -> None:
    Suffix.closed.clear()
    both = chain(
        "a",
        "b",
        transforms__a__type=f"{HERE}:Suffix",
        transforms__a__suffix="-unclosable",
        transforms__b__type=f"{HERE}:Suffix",
        transforms__b__suffix="-2",
    )
    assert names(both.apply([SourceRecord("t", 1)])) == [("t-unclosable-2", 1)]
    both.close()
    both.close()
    assert Suffix.closed == ["-unclosable", "-2"]


@pytest.mark.parametrize(("negate", "topics"), [("false", ["t-p", "t"]), ("true", ["t", "t-p"])])
def test_a_predicate_says_where_a_transform_applies(negate: str, topics: list[str]) -> None:
    conditional = chain(
        "a",
        transforms__a__type=f"{HERE}:Suffix",
        transforms__a__suffix="-p",
        transforms__a__predicate="positive",
        transforms__a__negate=negate,
        predicates="positive",
        predicates__positive__type=f"{HERE}:Positive",
    )
    records = [SourceRecord("t", 1), SourceRecord("t", -1)]
    assert [r.topic for r in conditional.apply(records)] == topics


def split_then_suffix() -> TransformChain:
    return chain(
        "s",
        "t",
        "a",
        transforms__s__type=f"{HERE}:Split",
        transforms__t__type=f"{HERE}:Split",
        transforms__a__type=f"{HERE}:Suffix",
        transforms__a__suffix="-1",
    )


def test_one_record_becomes_none_or_many() -> None:
    records = [SourceRecord("t", [[1, 2], [], [3]]), SourceRecord("u", [])]
    assert names(split_then_suffix().apply(records)) == [("t-1", 1), ("t-1", 2), ("t-1", 3)]


def test_a_failure_names_transform_and_record() -> None:
    record = SinkRecord("t", 2, 7, [[1], 2])
    with pytest.raises(TransformError) as raised:
        split_then_suffix().apply([record])
    error = raised.value
    assert (error.stage, error.alias, error.transform.__name__, error.record) == (
        "TRANSFORMATION",
        "t",
        "Split",
        record,
    )
    assert isinstance(error.__cause__, DataError)
    assert str(error) == (
        "transform t (Split) failed on a record of topic t, partition 2, offset 7: the value is no list"
    )


def test_a_failed_record_is_handed_over_whole_and_the_others_pass() -> None:
    records = [
        SourceRecord("t", [[1]]),
        SourceRecord("t", [[1], 2]),
        SourceRecord("t", 3),
        SourceRecord("t", [[4]]),
    ]
    failed: list[Any] = []
    results = split_then_suffix().apply(records, lambda error, record: failed.append((error.alias, record)))
    assert names(results) == [("t-1", 1), ("t-1", 4)]
    assert failed == [("t", records[1]), ("s", records[2])]


def test_a_predicate_that_fails_is_the_transforms_failure() -> None:
    conditional = chain(
        "a",
        transforms__a__type=f"{HERE}:Suffix",
        transforms__a__suffix="-p",
        transforms__a__predicate="p",
        predicates="p",
        predicates__p__type=f"{HERE}:Positive",
    )
    with pytest.raises(TransformError, match=r"transform a .*TypeError"):
        conditional.apply([SourceRecord("t", "text")])


def test_a_result_that_is_no_record_is_a_failure() -> None:
    with pytest.raises(TransformError, match="SourceRecord, several of them or None; it is 'text'"):
        chain("o", transforms__o__type=f"{HERE}:Odd").apply([SourceRecord("t", 1)])


SUFFIX = {"transforms": "a", "transforms.a.type": f"{HERE}:Suffix", "transforms.a.suffix": "-1"}


@pytest.mark.parametrize(
    ("settings", "key", "words"),
    [
        ({"transforms.a.type": ""}, "transforms.a.type", "is required"),
        (
            {"transforms.a.type": "Suffix"},
            "transforms.a.type",
            "is no transform; there are .*HoistField.Value",
        ),
        ({"transforms.a.type": "nowhere:Suffix"}, "transforms.a.type", "cannot be loaded"),
        ({"transforms.a.type": f"{HERE}:Unconnected"}, "transforms.a.type", "is no transform"),
        ({"transforms.a.type": f"{HERE}:Positive"}, "transforms.a.type", "is no transform"),
        ({"transforms.a.suffix": ""}, "transforms.a.suffix", "is required"),
        ({"transforms.a.suffix": "-bad"}, "transforms.a.suffix", "is bad"),
        (
            {"transforms.a.suffix": "-broken"},
            "transforms.a.type",
            "cannot be configured: RuntimeError: broken",
        ),
        ({"transforms": "a,a"}, "transforms", "Duplicate alias"),
        ({"transforms": "a,b"}, "transforms.b.type", "is required"),
        ({"transforms.a.negate": "true"}, "transforms.a.negate", "needs a predicate"),
        ({"transforms.a.negate": "maybe"}, "transforms.a.negate", "true or false"),
        (
            {"transforms.a.predicate": "p"},
            "transforms.a.predicate",
            "is no alias in `predicates`, which has none",
        ),
        ({"predicates": "p"}, "predicates.p.type", "is required"),
        ({"predicates": "p", "predicates.p.type": f"{HERE}:Suffix"}, "predicates.p.type", "is no predicate"),
    ],
)
def test_invalid_settings_name_their_key(settings: Mapping[str, str], key: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words) as raised:
        TransformChain.configured({**SUFFIX, **settings})
    assert raised.value.key == key


def test_what_was_made_before_an_invalid_setting_is_closed() -> None:
    Suffix.closed.clear()
    second = {"transforms": "a,b", "transforms.b.type": f"{HERE}:Suffix", "transforms.b.suffix": "-bad"}
    with pytest.raises(ConfigError):
        TransformChain.configured({**SUFFIX, **second})
    assert Suffix.closed == ["-1", "-bad"]


def test_all_errors_are_reported_at_once() -> None:
    settings = {"transforms": "a,b", "transforms.a.type": f"{HERE}:Suffix", "transforms.a.negate": "true"}
    keys = [e.key for e in examine(settings).errors]
    assert keys == ["transforms.a.suffix", "transforms.b.type", "transforms.a.negate"]


def test_validation_lists_the_keys_of_each_alias() -> None:
    settings = {**SUFFIX, "transforms.a.sufix": "typing error"}
    answer = validate("c", examine(settings).configs(), settings)
    assert answer["error_count"] == 0
    values = {c["value"]["name"]: c["value"]["value"] for c in answer["configs"]}
    assert values["transforms.a.suffix"] == "-1"
    assert {"transforms", "predicates", "transforms.a.type", "transforms.a.predicate"} <= values.keys()
    assert {c["definition"]["group"] for c in answer["configs"]} == {
        "Transforms",
        "Predicates",
        "transforms.a",
    }
    assert unknown_keys(examine(settings).configs(), settings) == {
        "transforms.a.sufix": "transforms.a.suffix"
    }


def test_numbers_and_lists_of_json_are_texts_for_transforms() -> None:
    settings = {**SUFFIX, "transforms": ["a"], "transforms.a.suffix": 5}
    assert names(TransformChain.configured(settings).apply([SourceRecord("t", 1)])) == [("t5", 1)]
