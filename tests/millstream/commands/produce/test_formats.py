"""Lines and JSON lines as records."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.commands.produce.json_format import JsonFormat
from millstream.commands.produce.line_format import LineFormat
from millstream.commands.produce.source import FileSource, LineSource
from millstream.commands.produce.splitter import Splitter
from millstream.data_types.data_type import WrongData
from millstream.data_types.names import PLAIN_TYPES

NOW = 1_000


def lines(keys: str = "string", values: str = "string", **options) -> LineFormat:
    return LineFormat(
        key_type=PLAIN_TYPES[keys],
        value_type=PLAIN_TYPES[values],
        header_type=PLAIN_TYPES["string"],
        **options,
    )


def json_lines(keys: str = "string", values: str = "string", **options) -> JsonFormat:
    return JsonFormat(
        key_type=PLAIN_TYPES[keys],
        value_type=PLAIN_TYPES[values],
        header_type=PLAIN_TYPES["string"],
        **options,
    )


@given(st.binary(max_size=60), st.lists(st.integers(1, 9)), st.sampled_from([b"\n", b"\0", b"ab", b"\n\n"]))
def test_lines_are_the_same_however_they_come(data: bytes, sizes: list[int], delimiter: bytes) -> None:
    splitter = Splitter(delimiter)
    lines_read, pos = [], 0
    for size in itertools.chain(sizes, itertools.repeat(7)):
        if pos >= len(data):
            break
        lines_read += splitter.feed(data[pos : pos + size])
        pos += size
    lines_read += splitter.finish()
    parts = data.split(delimiter)
    assert lines_read == (parts if parts[-1] else parts[:-1])


def test_a_line_is_a_value() -> None:
    assert lines()([b"a", b""], NOW) == [(NOW, None, b"a", ()), (NOW, None, b"", ())]
    assert lines(values="int", key=b"k")([b"7"], NOW) == [(NOW, b"k", b"\0\0\0\7", ())]


def test_keys_headers_and_nulls() -> None:
    make = lines(keys="int", key_separator=b":", null=b"NULL", headers=(("x", b"1"),))
    assert make([b"1:a:b", b"NULL:NULL"], NOW) == [
        (NOW, b"\0\0\0\1", b"a:b", (("x", b"1"),)),
        (NOW, None, None, (("x", b"1"),)),
    ]
    make = lines(key_separator=b"\t", headers_separator=b"\t", null=b"-")
    assert make([b"h:1,g:-\tk\tv", b"-\tk\t-", b"\tk\tv"], NOW) == [
        (NOW, b"k", b"v", (("h", b"1"), ("g", None))),
        (NOW, b"k", None, ()),
        (NOW, b"k", b"v", ()),
    ]


@pytest.mark.parametrize(
    ("make", "line", "message"),
    [
        (lines(key_separator=b":"), b"a", "no key separator ':'"),
        (lines(keys="int", key_separator=b":"), b"a:b", "the key: 'a' is not a whole number"),
        (lines(values="int"), b"a", "the value: 'a' is not"),
        (lines(headers_separator=b"\t"), b"a", "no headers separator"),
        (lines(headers_separator=b"\t"), b"a\tb", "no ':' in the header 'a'"),
        (json_lines(), b"{", "truncated"),
        (json_lines(), b"", "empty line"),
        (json_lines(), b"{}", "required field `value`"),
        (json_lines(), b'{"value": 1, "kye": 2}', "unknown field `kye`"),
        (json_lines(values="int"), b'{"value": "x"}', "not a whole number"),
    ],
)
def test_lines_that_are_no_records(make, line: bytes, message: str) -> None:
    with pytest.raises(WrongData, match=message):
        make([line], NOW)


def test_json_lines() -> None:
    make = json_lines(keys="long", key=b"K", headers=(("x", b"1"),))
    assert make(
        [
            b'{"key": 1, "value": "a", "headers": [["h", "1"], ["h", null]], "timestamp": 5, "offset": 3}',
            b'{"value": null, "headers": {"h": "1"}}',
            b'{"value": {"a": 1}}',
        ],
        NOW,
    ) == [
        (5, b"\0\0\0\0\0\0\0\1", b"a", (("h", b"1"), ("h", None))),
        (NOW, b"K", None, (("h", b"1"),)),
        (NOW, b"K", b'{"a":1}', (("x", b"1"),)),
    ]


def test_no_line_is_kept_that_never_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("millstream.commands.produce.source.RECORD_BYTES_MAX", 10)
    file = tmp_path / "endless"
    file.write_bytes(b"a\n" + b"x" * 20)
    first, last = LineSource([file], b"\n", lines(), skip=True)
    assert (first.error, [record[2] for record in first.records]) == (None, [b"a"])
    assert last.error is not None and last.error.startswith(f"line 2 of {file}: more than")
    (whole,) = FileSource([file], lines())
    assert whole.error is not None and whole.error.startswith(f"{file}: more than")
