"""Regular expressions from clients, for RE2, which matches in time linear in the text.

Python's own matcher backtracks: `(a+)+b` would block the event loop practically for ever. For the same reason
Kafka uses RE2 for patterns from outside (KIP-848, KIP-1152).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kafka_client.errors import ErrorCode, KafkaError

LENGTH_MAX: Final = 1_000
"""Characters a pattern may have."""
MEMORY_MAX: Final = 1024 * 1024
"""Bytes a compiled pattern may take."""


def matcher(pattern: str) -> Callable[[str], bool]:
    """Return a function that tells if a whole text matches.

    Raises KafkaError(INVALID_REGULAR_EXPRESSION) for an invalid pattern.
    """
    import re2  # here, since the first pattern may pay for it, but not every start

    if len(pattern) > LENGTH_MAX:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"longer than {LENGTH_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_MAX
    try:
        compiled = re2.compile(pattern, options)
    except re2.error as error:
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, f"{pattern!r}: {error}") from None
    return lambda text: compiled.fullmatch(text) is not None
