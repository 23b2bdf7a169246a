"""Messages as JSON, as Kafka's generated JsonConverter classes write them.

Names are in camelCase, bytes are base64, uuids are Kafka's short text. Fields that the version lacks are left
out, and so are tagged fields with their default.
"""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec

from kafka_client.wire.message import Kind, Message
from kafka_client.wire.schema import Array, Shape, fields_of


def as_json(message: Message, version: int) -> dict[str, Any]:
    """Return the fields of `message` at `version`, in the order of its declaration."""
    fields = {field.name: field for field in fields_of(type(message), version)}
    fields_json: dict[str, Any] = {}
    for info in msgspec.structs.fields(type(message)):
        field = fields.get(info.name)
        value = getattr(message, info.name)
        if field is None or (field.tag is not None and value == field.plain_default):
            continue
        fields_json[_camel(field.name)] = _value(value, field.shape, version)
    return fields_json


def json_text(value: object) -> str:
    """Return the text of a JSON value, without spaces."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _value(value: Any, shape: Shape, version: int) -> Any:
    if value is None:
        return None
    if isinstance(shape, Array):
        return [_value(element, shape.element, version) for element in value]
    if shape is Kind.UUID:
        return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
    if shape in (Kind.BYTES, Kind.RECORDS):
        return base64.b64encode(value).decode()
    return as_json(value, version) if isinstance(value, Message) else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.title() for word in others)
