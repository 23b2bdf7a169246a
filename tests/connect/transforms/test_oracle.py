"""Our transforms beside Kafka's Java classes, on the same random records: same values, or both an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import pytest

from connect.api import SinkRecord
from tests.connect.transforms.oracle import is_same, javas, ours
from tests.connect.transforms.random_records import NAMES, STRINGS, a_record
from tests.support.java import needs_jar

pytestmark = needs_jar("connect-transforms")
RECORDS = 400
TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")
PATTERNS = (
    *(
        "yyyy-MM-dd",
        "yyyy-MM-dd'T'HH:mm:ss.SSSXXX",
        "yyyyMMddHHmmss",
        "MMM d, yyyy",
        "EEEE, d MMMM yyyy h:mm a",
    ),
    *("yy-M-d", "D/yyyy", "k 'o''clock' K", "HH:mm", "Z z zzzz X XX u LLL", "SSSS"),
)
Config = Mapping[str, str]


def names(random: Random, most: int = 2) -> str:
    return ",".join(random.sample(NAMES, random.randrange(1, most + 1)))


def fill(random: Random) -> Config:
    return random.choice(({}, {}, {"replace.null.with.default": "false"}))


def paths(random: Random) -> Config:
    return random.choice(({}, {"field.syntax.version": "V1"}, {"field.syntax.version": "V2"}))


def path(random: Random) -> str:
    return random.choice((*NAMES, "a.b", "a.b.c", "`a`.b", "b.a", "`a.b`", "a.", "`a"))


def cast(random: Random) -> Config:
    if random.random() < 0.3:
        return {"spec": random.choice(TYPES), **fill(random)}
    pairs = [f"{n}:{random.choice(TYPES)}" for n in random.sample(NAMES, 2)]
    return {"spec": ",".join(pairs), **fill(random)}


def header_from(random: Random) -> Config:
    fields = random.sample(NAMES, random.randrange(1, 3))
    headers = ",".join(f"h{i}" for i, _ in enumerate(fields))
    operation = random.choice(("move", "copy"))
    return {"fields": ",".join(fields), "headers": headers, "operation": operation, **fill(random)}


def insert_field(random: Random) -> Config:
    keys = random.sample(("topic", "partition", "offset", "timestamp", "static"), 3)
    suffixes = ("", "!", "?")
    config = {f"{key}.field": random.choice(("x", "y", "z", "a")) + random.choice(suffixes) for key in keys}
    return {**config, "static.value": "constant", **fill(random)}


def mask_field(random: Random) -> Config:
    replacement = random.choice(({}, {"replacement": random.choice(("5", "-1.5", "x", "4294967299", "1e3"))}))
    return {"fields": names(random), **replacement, **fill(random)}


def replace_field(random: Random) -> Config:
    renames = random.choice(({}, {"renames": "a:x,b:y"}, {"renames": "c:x"}))
    exclude = random.choice(({}, {"exclude": names(random)}))
    return {**renames, **exclude, **random.choice(({}, {"include": names(random, 3)})), **fill(random)}


def timestamp_converter(random: Random) -> Config:
    target = random.choice(("string", "unix", "Date", "Time", "Timestamp"))
    config = {"target.type": target, "format": random.choice(PATTERNS), **fill(random)}
    if random.random() < 0.6:
        config["field"] = random.choice(NAMES)
    config["unix.precision"] = random.choice(("seconds", "milliseconds", "microseconds", "nanoseconds"))
    return config


LITERALS = (
    *(
        "",
        "null",
        "nullx",
        "true",
        "TRUE",
        " true ",
        "1",
        "-129",
        "40000",
        "3000000000",
        "1e3",
        "1e25",
        "0.5",
        "1.0",
    ),
    *("99999999999999999999", "1e400", "+5", "12abc", "[1, 2, 300]", "[1, 2.5]", "[]", "[null]", "[1, null]"),
    *(
        '["a", "b"]',
        "[1, 'x']",
        '[1, "x"]',
        "[1,,2]",
        "[1",
        '{"a": 1, "b": 300}',
        "{}",
        '{"a": null}',
        "{1: 2}",
    ),
    *(
        "[[1], [2]]",
        '{"a": [1]}',
        "2024-01-02",
        "12:30:00.000Z",
        "2024-01-02T03:04:05.006Z",
        "a:b",
        "1,2",
        " ",
    ),
    *(
        '"quoted"',
        "a\\:b",
        '["2024-01-02"]',
        "[true, false]",
        "[true, 1]",
        "{a: 1}",
        "0.1e1",
        "1 2",
        "-",
        "[1] 2",
    ),
)
CONFIGS: dict[str, Callable[[Random], Config]] = {
    "Cast$Value": cast,
    "DropHeaders": lambda random: {"headers": random.choice(("h", "g", "h,g", "x"))},
    "ExtractField$Value": lambda random: {"field": path(random), **paths(random), **fill(random)},
    "Flatten$Value": lambda random: random.choice(({}, {"delimiter": "_"})),
    "HeaderFrom$Value": header_from,
    "HoistField$Value": lambda random: {"field": "f"},
    "InsertField$Value": insert_field,
    "InsertHeader": lambda random: {"header": "i", "value.literal": random.choice((*LITERALS, *STRINGS))},
    "MaskField$Value": mask_field,
    "RegexRouter": lambda random: {
        "regex": random.choice(
            ("t(.*)", "(?<x>to)(pic)?", "o", "to|topic", r"\w+", r"\Qtopic\E", "(a)?topic")
        ),
        "replacement": random.choice(("r", "$1-x", "\\$1", "a$0b", "$12")),
    },
    "ReplaceField$Value": replace_field,
    "SetSchemaMetadata$Value": lambda random: {
        **random.choice(
            ({"schema.name": "s"}, {"schema.version": "7"}, {"schema.name": "s", "schema.version": "7"})
        ),
        **fill(random),
    },
    "TimestampConverter$Value": timestamp_converter,
    "TimestampRouter": lambda random: {
        "timestamp.format": random.choice(PATTERNS),
        "topic.format": random.choice(("${topic}-${timestamp}", "x${timestamp}")),
    },
    "ValueToKey": lambda random: {"fields": path(random), **paths(random), **fill(random)},
}


def as_key(name: str, record: SinkRecord) -> tuple[str, SinkRecord]:
    """Return the `$Key` variant, with the record's value as its key."""
    moved = SinkRecord(
        "topic", 3, 9, None, record.value, record.timestamp, record.headers, record.value_schema
    )
    return name.replace("$Value", "$Key"), moved


@pytest.mark.parametrize("name", CONFIGS)
def test_same_as_java(name: str) -> None:
    random = Random(name)
    cases: list[tuple[str, Config, SinkRecord]] = []
    for _ in range(RECORDS):
        record = a_record(random)
        variant = name
        if "$" in name and random.random() < 0.3:
            variant, record = as_key(name, record)
        cases.append((variant, CONFIGS[name](random), record))
    answers = javas(cases)
    differ = [
        (case, expected, answer)
        for case, expected in zip(cases, answers, strict=True)
        if not is_same(expected, answer := ours(*case)) and not is_known(case, expected, answer)
    ]
    assert not differ, f"{len(differ)} of {len(cases)} differ; the first:\n{shown(*differ[0])}"
    assert sum(isinstance(answer, dict) for answer in answers) > RECORDS // 20
    assert len({str(answer) for answer in answers}) > 2


def is_known(case: tuple[str, Config, SinkRecord], expected: Any, answer: Any) -> bool:
    """Return True for a difference that docs/transforms.md names."""
    name = case[0]
    if name == "RegexRouter":  # a group that the expression lacks
        return isinstance(answer, str) and "there is no group" in answer
    if name.startswith("SetSchemaMetadata"):  # Java's lists the fields of any schema
        return isinstance(expected, str) and "Cannot list fields on non-struct type" in expected
    if name.startswith("Timestamp"):  # Python's dates are those of the years 1 to 9999
        return isinstance(answer, str) and "outside the years 1 to 9999" in answer
    if name.startswith("Cast"):  # the schema keeps the name of a date, and its default is a number
        return isinstance(expected, str) and "Invalid default value" in expected
    return case[1].get("value.literal") == ""  # a required setting is not empty here


def shown(case: tuple[str, Config, SinkRecord], expected: Any, answer: Any) -> str:
    name, config, record = case
    return f"{name} {dict(config)}\n{record}\nJava: {expected}\nours: {answer}"
