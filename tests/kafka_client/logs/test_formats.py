"""The formats of a log, and that names in messages neither forge lines nor write to a terminal."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from kafka_client.escape import escape_controls
from kafka_client.logs.formats import JsonFormatter, LogFormat, TextFormatter, formatter_for
from kafka_client.topic_partition import TopicPartition

FORGED = "c\n2026-11-30 09:00:00,000 INFO logd: all is well\r\x1b[2J\x9b1m\u202e"


def record(message: str, *arguments: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("logd.api", logging.WARNING, __file__, 1, message, arguments, None)
    vars(made).update(fields)
    return made


def failed(text: str) -> logging.LogRecord:
    made = record("a request failed")
    try:
        raise ValueError(text)
    except ValueError:
        made.exc_info = sys.exc_info()
    return made


def test_a_name_cannot_begin_a_line_or_write_escapes() -> None:
    line = TextFormatter().format(record("client %s is slow", FORGED))
    assert line.isprintable()
    shown = r"c\n2026-11-30 09:00:00,000 INFO logd: all is well\r\x1b[2J\x9b1m\u202e"
    assert line.endswith(f" WARNING logd.api: client {shown} is slow")


def test_an_error_cannot_forge_lines_in_its_traceback() -> None:
    lines = TextFormatter().format(failed(FORGED)).split("\n")
    assert lines[1] == "Traceback (most recent call last):"
    assert lines[-2:] == [
        "ValueError: c",
        "\t2026-11-30 09:00:00,000 INFO logd: all is well\\r\\x1b[2J\\x9b1m\\u202e",
    ]


def test_a_partition_that_a_message_names_is_in_fields() -> None:
    tp, other = TopicPartition("a-b", 3), TopicPartition("a-b", 4)

    def fields(*arguments: object) -> dict[str, object]:
        line = JsonFormatter({}).format(record("%s " * len(arguments), *arguments))
        return {key: value for key, value in json.loads(line).items() if key in ("topic", "partition")}

    assert fields(tp, "disk", tp) == {"topic": "a-b", "partition": 3}
    assert fields(tp, other) == fields("a-b-3") == fields() == {}


def test_json_has_the_fields_of_the_log_and_of_the_call() -> None:
    line = JsonFormatter({"broker": 7}).format(record("client %s", FORGED, topic="t\n", partition=3))
    assert line.isascii()
    assert line.isprintable()
    fields = json.loads(line)
    assert fields.pop("time").endswith("Z")
    assert fields == {
        "level": "WARNING",
        "logger": "logd.api",
        "message": f"client {FORGED}",
        "broker": 7,
        "topic": "t\n",
        "partition": 3,
    }
    assert "ValueError: no" in json.loads(JsonFormatter({}).format(failed("no")))["exception"]


def test_auto_is_text_on_a_terminal_and_json_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    assert isinstance(formatter_for(LogFormat.AUTO, stream, fields={}, mark=""), JsonFormatter)
    monkeypatch.setattr(stream, "isatty", lambda: True)
    formatter = formatter_for(LogFormat.AUTO, stream, fields={}, mark="[100%]")
    assert " WARNING [100%] logd.api: hello" in formatter.format(record("hello"))


def test_printable_text_stays() -> None:
    assert escape_controls("ü 語 -> \\n 🙂") == "ü 語 -> \\n 🙂"
    assert escape_controls("a\tb\u2028\x7f") == r"a\tb\u2028\x7f"
