"""What the Java tools write to their log, which their scripts show on stderr."""

from __future__ import annotations

import sys


def log_error(text: str) -> None:
    """A line that the transcripts do not compare: it says what is wrong where the output does not."""
    print(f"[error] {text}", file=sys.stderr)
