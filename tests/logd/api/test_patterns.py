"""Regular expressions from clients: bad ones are refused, and none takes long."""

from __future__ import annotations

import pytest

from kafka_client.errors import ErrorCode, KafkaError
from logd.api.patterns import LENGTH_MAX, matcher


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [("a.*", "abc", "ba"), ("(?i)Txn-[0-9]+", "TXN-12", "txn-x"), ("", "", "a"), ("é|b", "é", "éb")],
)
def test_whole_texts_match(pattern: str, yes: str, no: str) -> None:
    assert matcher(pattern)(yes)
    assert not matcher(pattern)(no)


def test_no_pattern_takes_long() -> None:
    """Expressions that would keep Python's own matcher busy past the tests' timeout are matched soon."""
    assert not matcher("(a+)+b")("a" * 5_000)


@pytest.mark.parametrize(
    "pattern", ["(", "a**", r"(?=a)", r"(a)\1", "((((a{1000}){1000}){1000}))", "a" * (LENGTH_MAX + 1)]
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(KafkaError) as caught:
        matcher(pattern)
    assert caught.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
