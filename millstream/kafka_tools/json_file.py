"""JSON files of the tools that take partitions from one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from millstream.kafka_tools.java_errors import JavaError

TOOLS = "org.apache.kafka.tools"


def read_json(file: str) -> Any:
    """What is in the file, None where that is no JSON; JavaError for one that cannot be read."""
    try:
        text = Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise JavaError("java.io.IOException", f"Unable to read file {file}") from None
    try:
        return json.loads(text)
    except ValueError:
        return None


def operation_failed(message: str) -> JavaError:
    """AdminOperationException."""
    return JavaError(f"{TOOLS}.AdminOperationException", message)


def command_failed(message: str) -> JavaError:
    """AdminCommandFailedException."""
    return JavaError(f"{TOOLS}.AdminCommandFailedException", message)


def of_type(value: Any, kind: type, named: str) -> Any:
    """The value; JavaError where it is of another type, or not there."""
    if not isinstance(value, kind) or isinstance(value, bool):
        shown = "null" if value is None else json.dumps(value)
        raise operation_failed(f"Expected {named} value, received {shown}")
    return value
