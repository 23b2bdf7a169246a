"""JSON with numbers that begin with zeros, which Kafka accepts (KAFKA-15012) and JSON does not."""

from __future__ import annotations

import re

_STRING_OR_ZEROS = re.compile(rb'"(?:[^"\\]|\\.)*+"|(?<![\w.+-])(-?)0+(?=\d)', re.DOTALL)


def without_leading_zeros(data: bytes) -> bytes | None:
    """Return the JSON without its numbers' leading zeros, or None if no number has any."""
    changed = _STRING_OR_ZEROS.sub(lambda match: match[0] if match[1] is None else match[1], data)
    return None if changed == data else changed
