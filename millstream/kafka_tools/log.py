"""The log lines of the Java tools, which their scripts print on stderr."""

from __future__ import annotations

import sys


def log_error(text: str) -> None:
    """Print a log line to stderr. The transcripts do not compare such lines."""
    print(f"[error] {text}", file=sys.stderr)
