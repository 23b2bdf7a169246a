"""Lines of JSON on standard output, by which a test sees what a task did."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

import msgspec


def write_line(document: Mapping[str, Any]) -> None:
    """Write a document as one line. The tasks' threads share the output, so a line is one call."""
    sys.stdout.write(msgspec.json.encode(document).decode() + "\n")
    sys.stdout.flush()


def now_ms() -> int:
    """Return the present, ms since the epoch."""
    return time.time_ns() // 1_000_000
