"""Mappers of (value) and of (key, value): which one a function is."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any

import pytest

from streams import StreamsBuilder, TopologyError
from streams.dsl.arity import takes_key
from streams.testing import TopologyTestDriver


@dataclass
class Order:
    item: str
    pieces: int = 1


@dataclass
class Sale:
    item: str
    pieces: int


class Shop:
    def price(self, item: str) -> int:
        return len(item)

    def sale(self, key: str, item: str) -> int:
        return len(key + item)

    def __call__(self, key: str, item: str) -> str:
        return key + item


def joined(*words: str, between: str = "") -> str:
    return between.join(words)


@pytest.mark.parametrize(
    "function",
    [
        lambda value: value,
        lambda value, more=None: value,
        str.split,
        str.upper,
        str,
        int,
        dict,
        list,
        len,
        round,
        math.sqrt,
        print,
        joined,
        Order,
        Shop().price,
        functools.partial(Shop().sale, "k"),
    ],
)
def test_of_values(function: Any) -> None:
    assert not takes_key(function, "map_values")


@pytest.mark.parametrize(
    "function", [lambda key, value: value, Sale, Shop.price, Shop().sale, Shop(), math.pow, divmod]
)
def test_of_keys_and_values(function: Any) -> None:
    assert takes_key(function, "map_values")


def three(a: int, b: int, c: int) -> int:
    return a


def keyword(value: str, *, shift: int) -> str:
    return value


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: 1, r"with \(value\) or with \(key, value\); .*<lambda>\(\) takes neither"),
        (three, r"three\(a: 'int', b: 'int', c: 'int'\) -> 'int' takes neither"),
        (keyword, "takes neither"),
        ("text", "takes a function of .*, not 'text'"),
    ],
)
def test_what_fits_neither_is_refused_where_it_is_said(function: Any, message: str) -> None:
    stream = StreamsBuilder(key_serde=str, value_serde=str).stream("in")
    with pytest.raises(TopologyError, match=rf"^map_values\(\) .*{message}"):
        stream.map_values(function)


def test_both_forms_run() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    words = builder.stream("in").flat_map_values(str.split)
    words.flat_map_values(lambda key, word: [key, word]).map_values(lambda key, word: key + word).to(
        "out", value_serde=str
    )
    table = builder.table("t").map_values(lambda key, value: key + value).map_values(str.upper)
    table.to_stream().to("upper", value_serde=str)
    with TopologyTestDriver(builder) as driver:
        driver.input_topic("t").pipe_input("k", "v")
        assert driver.output_topic("upper").read_key_values() == [("k", "KV")]
        driver.input_topic("in").pipe_input("k", "a b")
        assert driver.output_topic("out").read_key_values() == [
            (("k"), each) for each in ("kk", "ka", "kk", "kb")
        ]
