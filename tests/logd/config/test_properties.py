from __future__ import annotations

import pytest

from logd.config.properties import parse_overrides, parse_properties
from logd.errors import ConfigError


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


def test_overrides_need_a_key_and_an_equals_sign() -> None:
    assert parse_overrides(["a=b=c", " d = e "]) == {"a": "b=c", "d": "e"}
    for wrong in ("a", "=b"):
        with pytest.raises(ConfigError, match="key=value"):
            parse_overrides([wrong])
