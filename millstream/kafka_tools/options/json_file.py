"""JSON files named on the command line."""

from __future__ import annotations

from pathlib import Path

from millstream.kafka_tools.java.java_errors import JavaError


def read_file(file: str) -> str:
    """Return the file's text. Raises JavaError if it cannot be read."""
    try:
        return Path(file).read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise JavaError("java.io.IOException", f"Unable to read file {file}") from None
