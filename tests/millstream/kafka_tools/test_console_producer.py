"""What the console producer says of lines that are no records, in Java's words: transcripts leave these lines
out, since they name an exception.
"""

from __future__ import annotations

import pytest

from millstream.data_types.data_type import WrongData
from millstream.kafka_tools.java_errors import JavaError
from millstream.kafka_tools.line_reader import LineReader


@pytest.mark.parametrize(
    ("properties", "line", "said"),
    [
        (["parse.key=true"], b"none", "No key separator found on line number 3: 'none'"),
        (["parse.headers=true"], b"none", "No headers delimiter found on line number 3: 'none'"),
        (
            ["parse.headers=true"],
            b"name\tvalue",
            "No header key separator found in pair 'name' on line number 3",
        ),
        (
            ["parse.headers=true", "null.marker=N"],
            b"N:x\tvalue",
            "Header keys should not be equal to the null marker 'N' as they can't be null",
        ),
    ],
)
def test_a_line_that_is_no_record(properties: list[str], line: bytes, said: str) -> None:
    reader = LineReader(dict(each.split("=") for each in properties))

    with pytest.raises(WrongData) as caught:
        reader.record(line, 3, 0)

    assert str(caught.value) == said


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"key.separator": ":", "null.marker": ":"}, "null.marker and key.separator may not be equal"),
        ({"headers.separator": ":"}, "headers.separator and headers.key.separator may not be equal"),
        ({"headers.delimiter": ","}, "headers.delimiter and headers.separator may not be equal"),
    ],
)
def test_separators_that_are_the_same(properties: dict[str, str], said: str) -> None:
    with pytest.raises(JavaError) as caught:
        LineReader(properties)

    assert caught.value.told == f"org.apache.kafka.common.KafkaException: {said}"
