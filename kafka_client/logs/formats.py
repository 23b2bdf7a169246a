"""The formats of a log: lines of text for people, lines of JSON for programs.

A partition among a call's arguments, as in `log.warning("%s is offline", tp)`, is also in fields `topic` and
`partition` in JSON. Other fields are given by the call's `extra`.

A message may have names in it that clients choose. In both formats such a name can neither begin a line of
its own nor write escape sequences to a terminal.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

from kafka_client.escape import escape_controls, escape_controls_in_lines
from kafka_client.topic_partition import TopicPartition

_LIKE_A_RECORD = re.compile(r"^(?=\d{4}-\d\d-\d\d )", re.MULTILINE)
_STANDARD = frozenset((*vars(logging.makeLogRecord({})), "message", "asctime", "taskName", "color_message"))
"""Attributes of every record. The others are fields of the call, by its argument `extra`.

`color_message` is a copy of the message, with colours, in records of uvicorn.
"""


class LogFormat(StrEnum):
    """A format of a log."""

    AUTO = "auto"
    """Text on a terminal, otherwise JSON."""
    TEXT = "text"
    JSON = "json"


def formatter_for(
    form: LogFormat, stream: TextIO, *, fields: Mapping[str, Any], mark: str
) -> logging.Formatter:
    """Return the formatter of a log on this stream.

    ``fields`` are those of all records in JSON, ``mark`` stands in all lines of text.
    """
    if form is LogFormat.AUTO:
        form = LogFormat.TEXT if stream.isatty() else LogFormat.JSON
    return TextFormatter(mark) if form is LogFormat.TEXT else JsonFormatter(fields)


class TextFormatter(logging.Formatter):
    """Lines of text: time, level, `mark`, logger, message."""

    def __init__(self, mark: str = "") -> None:
        shown = f" {mark}".rstrip().replace("%", "%%")
        super().__init__(f"%(asctime)s %(levelname)s{shown} %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the record's line, with control characters escaped."""
        return escape_controls(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the record's line, and the traceback in further lines."""
        text = escape_controls_in_lines(super().format(record))
        first, end, traceback = text.partition("\n")
        # The text of an error may have lines that look like records. They are indented.
        return first + end + _LIKE_A_RECORD.sub("\t", traceback)


class JsonFormatter(logging.Formatter):
    """An object a line: time, level, logger, message, then `fields`, then those of the message."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__()
        self._fields = dict(fields)

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON; it has no character but ASCII's printable ones."""
        time = datetime.fromtimestamp(record.created, UTC)
        fields = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **self._fields,
            **_partition_fields(record.args),
            **{key: value for key, value in vars(record).items() if key not in _STANDARD},
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            fields["stack"] = record.stack_info
        return json.dumps(fields, default=str)


def _partition_fields(arguments: object) -> dict[str, Any]:
    """Return the fields of the partition among a message's arguments; none if it is about several."""
    partitions = (
        {each for each in arguments if isinstance(each, TopicPartition)} if type(arguments) is tuple else ()
    )
    if len(partitions) != 1:
        return {}
    (tp,) = partitions
    return {"topic": tp.topic, "partition": tp.partition}
