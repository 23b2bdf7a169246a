from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_client.errors import ConfigError
from kafka_client.java_properties import format_properties, parse_overrides, parse_properties, read_properties


def test_comments_separators_and_continuation_lines() -> None:
    text = """
# a comment
! another one
node.id=1
num.partitions: 3
log.dirs   /a,\\
    /b
listeners = PLAINTEXT://127.0.0.1:9092,\\
  EXTERNAL://0.0.0.0:9093
empty=
alone
escaped\\=key=va\\tlue\\u0041
num.partitions=4
trailing=value   \t
"""
    assert parse_properties(text) == {
        "node.id": "1",
        "num.partitions": "4",
        "log.dirs": "/a,/b",
        "listeners": "PLAINTEXT://127.0.0.1:9092,EXTERNAL://0.0.0.0:9093",
        "empty": "",
        "alone": "",
        "escaped=key": "va\tlueA",
        "trailing": "value",
    }


def test_a_doubled_backslash_at_the_end_is_no_continuation() -> None:
    assert parse_properties("a=x\\\\\nb=y") == {"a": "x\\", "b": "y"}


def test_values_as_java_reads_them() -> None:
    """Values are those of `java.util.Properties.load` (Java 17) for the same text, except for trailing
    blanks.
    """
    text = (
        " b : two words\nc 3\np\\\n\nq=c:\\\\d\\te\nr=\\u00e9\\ud83d\\ude00\n"
        's=x\u2028y=z\nt=u\x0cv\x0bw\n\x0cu=1\nk==v\nl : = v\nk\\:3=v\\=4\nx=\\a\\n\\"\n'
        "cr=1\rcr2=2\r\n#c\\\nn=1\nm=a \\\n  # b\nlast=z\\"
    )
    assert parse_properties(text) == {
        "b": "two words",
        "c": "3",
        "p": "",
        "q": "c:\\d\te",
        "r": "é😀",
        "s": "x\u2028y=z",
        "t": "u\x0cv\x0bw",
        "u": "1",
        "k": "=v",
        "l": "= v",
        "k:3": "v=4",
        "x": 'a\n"',
        "cr": "1",
        "cr2": "2",
        "n": "1",
        "m": "a # b",
        "last": "z",
    }


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_bytes("\ufeffname=é\n".encode())
    assert read_properties(path) == {"name": "é"}
    path.write_bytes(b"name=\xe9\n")
    with pytest.raises(ConfigError, match=r"file=.*a\.properties: must be in UTF-8"):
        read_properties(path)
    with pytest.raises(ConfigError, match=r"--config=.*none: cannot be read"):
        read_properties(tmp_path / "none", "--config")


def test_overrides_need_a_key_and_an_equals_sign() -> None:
    assert parse_overrides(["a=b=c", " d = e "]) == {"a": "b=c", "d": "e"}
    for wrong in ("a", "=b"):
        with pytest.raises(ConfigError, match="key=value"):
            parse_overrides([wrong])


@given(st.dictionaries(st.text(min_size=1), st.text()))
def test_what_is_written_is_read_again(properties: dict[str, str]) -> None:
    """Properties survive writing and reading, except trailing blanks of values, which Kafka drops.

    Lone surrogates are not generated: no file can hold them.
    """
    expected = {key: value.rstrip(" \t\f") for key, value in properties.items()}
    assert parse_properties(format_properties(expected)) == expected
