"""What Avro gives beyond JSON, as JSON: bytes in base64, times in ISO 8601, decimals and uuids as text."""

from __future__ import annotations

from typing import Any

import msgspec


def json_safe(value: Any) -> Any:
    """The same value in what JSON knows."""
    return msgspec.to_builtins(value, str_keys=True)
