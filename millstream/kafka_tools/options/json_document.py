"""JSON as Kafka's tools read it, with their error messages."""

from __future__ import annotations

import json
from typing import Any

from millstream.kafka_tools.java.java_errors import JavaError, admin_operation


def parse_json(text: str, invalid: str) -> JsonValue:
    """Parse a document. Raises JavaError with the message `invalid` if the text is not JSON."""
    try:
        return JsonValue(json.loads(text))
    except json.JSONDecodeError:
        raise admin_operation(invalid) from None


class JsonValue:
    """A value of a document. Its methods raise Jackson's JsonMappingException for another type."""

    def __init__(self, node: Any) -> None:
        self.node = node

    def get(self, name: str) -> JsonValue | None:
        """Return the field `name` of this object, or None if it has no such field."""
        if not isinstance(self.node, dict):
            raise _mapping(f"Expected JSON object, received {self}")
        return JsonValue(self.node[name]) if name in self.node else None

    def field(self, name: str) -> JsonValue:
        """Return the field `name` of this object. Raises JavaError, with Jackson's text, if it has none."""
        if (value := self.get(name)) is None:
            raise _mapping(f"No such field exists: `{name}`")
        return value

    def elements(self) -> list[JsonValue]:
        """Return the elements of an array."""
        if not isinstance(self.node, list):
            raise _mapping(f"Expected JSON array, received {self}")
        return [JsonValue(each) for each in self.node]

    def text(self) -> str:
        """Return the string."""
        if not isinstance(self.node, str):
            raise _mapping(f"Expected `String` value, received {self}")
        return self.node

    def integer(self, bits: int = 32) -> int:
        """Return the integer of `bits` bits."""
        if type(self.node) is not int or not -(1 << (bits - 1)) <= self.node < 1 << (bits - 1):
            raise _mapping(f"Expected `{'Integer' if bits == 32 else 'Long'}` value, received {self}")
        return self.node

    def __str__(self) -> str:
        return json.dumps(self.node, separators=(",", ":"), ensure_ascii=False)


def _mapping(message: str) -> JavaError:
    return JavaError("com.fasterxml.jackson.databind.JsonMappingException", message)
