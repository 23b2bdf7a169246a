"""Records in the forms that `millstream consume` prints."""

from __future__ import annotations

import json
import struct

import pytest
import yaml

from kafka_client import TopicPartition
from kafka_client.records import Record
from millstream.commands.consume.columns import RecordPrinter, TypedFields
from millstream.commands.consume.filters import key_filter, parse_pattern
from millstream.commands.consume.format_string import format_printer
from millstream.commands.consume.forms import printer
from millstream.data_types.data_type import WrongData
from millstream.data_types.names import PLAIN_TYPES
from millstream.terminal.output import Format
from millstream.terminal.status import UsageError

TP = TopicPartition("t", 3)
RECORDS: list[Record] = [
    (7, 1000, b"k", b"a\tb\n", (("h", b"1"), ("h", None))),
    (8, 1001, None, b"", ()),
    (9, 1002, b"", None, ()),
]


def fields(key: str = "string", value: str = "string", null: bytes = b"") -> TypedFields:
    return TypedFields(PLAIN_TYPES[key], PLAIN_TYPES[value], PLAIN_TYPES["string"], null)


def test_every_field_of_a_format_string() -> None:
    render = format_printer(r"%t|%p|%o|%T|%k|%K|%s|%S|%h|%%\n", fields(null=b"NULL"))
    assert render(TP, RECORDS) == (
        b"t|3|7|1000|k|1|a\tb\n|4|h=1,h=NULL|%\nt|3|8|1001|NULL|-1||0||%\nt|3|9|1002||0|NULL|-1||%\n"
    )
    framed = format_printer("%R%v", fields())
    assert framed(TP, RECORDS[:1]) == struct.pack(">i", 4) + b"a\tb\n"


def test_a_format_without_a_field_is_printed_once_for_each_record() -> None:
    assert format_printer(".", fields())(TP, RECORDS) == b"..."
    assert format_printer("", fields())(TP, RECORDS) == b""


@pytest.mark.parametrize("form", ["%x", "a%", "% k"])
def test_a_field_that_there_is_not(form: str) -> None:
    with pytest.raises(UsageError, match="there is no field"):
        format_printer(form, fields())


def test_json_lines_hold_everything() -> None:
    for form in (Format.JSON, Format.JSONL):
        first, second, third = (
            json.loads(line) for line in printer(form, fields())(TP, RECORDS).splitlines()
        )
        assert first == {
            "topic": "t",
            "partition": 3,
            "offset": 7,
            "timestamp": 1000,
            "headers": [["h", "1"], ["h", None]],
            "key": "k",
            "value": "a\tb\n",
        }
        assert (second["key"], second["value"]) == (None, "")
        assert (third["key"], third["value"]) == ("", None)


def test_yaml_documents_and_plain_lines() -> None:
    documents = list(yaml.safe_load_all(printer(Format.YAML, fields())(TP, RECORDS)))
    assert [each["value"] for each in documents] == ["a\tb\n", "", None]
    plain = printer(Format.PLAIN, fields(null=b"-"))(TP, RECORDS).splitlines()
    assert plain == [
        b"t\t3\t7\t1000\th=1,h=NULL\tk\ta\\tb\\n",
        b"t\t3\t8\t1001\t\t-\t",
        b"t\t3\t9\t1002\t\t\t-",
    ]


def test_plain_lines_are_the_same_alone_and_together() -> None:
    """Escape records one by one only in batches with something to escape."""
    records: list[Record] = [
        (n, 5, key, value, headers)
        for n, (key, value, headers) in enumerate(
            [
                (b"k", b"v", ()),
                (b"k", b"back\\slash", ()),
                (b"a\r", b"v", ()),
                (None, b"v", (("a\tb", b"\n"),)),
                (b"k", None, ()),
            ]
        )
    ]
    render = printer(Format.PLAIN, fields())
    assert render(TP, records) == b"".join(render(TP, [record]) for record in records)
    assert render(TP, records).splitlines() == [
        b"t\t3\t0\t5\t\tk\tv",
        b"t\t3\t1\t5\t\tk\tback\\\\slash",
        b"t\t3\t2\t5\t\ta\\r\tv",
        b"t\t3\t3\t5\ta\\tb=\\n\t\tv",
        b"t\t3\t4\t5\t\tk\t",
    ]


@pytest.mark.parametrize("make", [lambda f: printer(Format.JSON, f), lambda f: format_printer("%k", f)])
def test_what_is_not_of_its_type_is_named(make) -> None:
    render: RecordPrinter = make(fields(key="int"))
    with pytest.raises(WrongData, match="the key: 1 bytes are not int"):
        render(TP, RECORDS)


def test_filters_by_key() -> None:
    def offsets(*patterns: str | None) -> list[int]:
        keep = key_filter(*patterns, PLAIN_TYPES["string"])
        assert keep is not None
        return [record[0] for record in keep(RECORDS)]

    assert offsets("k", None) == [7]
    assert offsets("", None) == [9]
    assert offsets(None, "^.?$") == [7, 9]
    with pytest.raises(UsageError, match="--key: 'x' is not a whole number"):
        key_filter("x", None, PLAIN_TYPES["int"])
    with pytest.raises(UsageError, match="not both"):
        key_filter("x", "x", PLAIN_TYPES["int"])
    with pytest.raises(UsageError, match="not a regular expression"):
        parse_pattern("(", "--include")
