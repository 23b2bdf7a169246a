"""Tests of what the tools imitate of Java: texts of errors, versions of APIs, numbers, times."""

from __future__ import annotations

import pytest

from kafka_client.errors import ErrorCode
from millstream.kafka_tools.java.error_texts import ERROR_TEXTS
from millstream.kafka_tools.java.java_apis import APIS, Api
from millstream.kafka_tools.java.java_errors import JavaError
from millstream.kafka_tools.java.java_numbers import shown_double
from millstream.kafka_tools.java.java_times import date_time_ms, duration_ms
from tests.support import java
from tests.support.depth import deep


def test_every_code_has_its_exception() -> None:
    assert ERROR_TEXTS.keys() == {code.name for code in ErrorCode} - {"NONE"}


@deep
@java.needs_javac
def test_java_says_the_same() -> None:
    sections = java.run_sections("JavaFacts")

    texts = [line.split("\t") for line in sections["errors"].splitlines()]
    assert {name: (kind, text) for name, kind, text in texts} == ERROR_TEXTS
    apis = [line.split("\t") for line in sections["apis"].splitlines()]
    assert {
        int(key): Api(name, int(lowest), int(highest), of_clients == "true")
        for key, name, lowest, highest, of_clients in apis
    } == APIS
    doubles = [line.split("\t") for line in sections["doubles"].splitlines()]
    assert {text: shown_double(float(text)) for text, _ in doubles} == dict(doubles)


@pytest.mark.parametrize(
    ("text", "shown"), [("0", "0.0"), ("12.5", "12.5"), ("1e7", "1.0E7"), ("0.0001", "1.0E-4")]
)
def test_doubles(text: str, shown: str) -> None:
    assert shown_double(float(text)) == shown


def test_times() -> None:
    assert date_time_ms("2013-01-31T12:00:00.500") == 1359633600500
    assert date_time_ms("2013-01-31T12:00:00.500+01:00") == 1359630000500
    assert date_time_ms("2013-01-31T12:00:00.500-0130") == 1359639000500
    for wrong in ("2013-01-31T12:00:00", "2013-01-31T25:00:00.000", "2013-01-31 12:00:00.000"):
        with pytest.raises(JavaError):
            date_time_ms(wrong)


def test_durations() -> None:
    assert duration_ms("P1DT2H3M4.5S") == 93784500
    assert duration_ms("-PT1H") == -3600000
    for wrong in ("P", "PT", "1H", "P1H"):
        with pytest.raises(JavaError, match="Text cannot be parsed to a Duration"):
            duration_ms(wrong)
