"""Records, schemas and values as the JSON of tests/java/ConnectTransforms.java."""

from __future__ import annotations

import base64
import datetime as dt
import json
import subprocess
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from connect.api import DataError, SinkRecord
from connect.api.schema import Schema, Type
from connect.errors import ConfigError
from connect.transforms import transform_class
from connect.transforms.times import to_millis
from tests.support.java import SECONDS, program

JAVA_NAMES = {kind: kind.name for kind in Type}
OPTIONS = (
    "-Duser.timezone=UTC",
    "-Duser.language=en",
    "-Duser.country=US",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
)


def schema_json(schema: Schema | None) -> Any:
    """Return the schema as Java's described()."""
    if schema is None:
        return None
    return {
        "type": JAVA_NAMES[schema.type],
        "optional": schema.optional,
        "name": schema.name,
        "version": schema.version,
        "doc": schema.doc,
        "parameters": dict(schema.parameters),
        "fields": [[name, schema_json(field)] for name, field in schema.fields.items()],
        "keys": schema_json(schema.keys),
        "values": schema_json(schema.values),
        "default": value_json(schema.default, schema),
    }


def value_json(value: Any, schema: Schema | None) -> Any:
    """Return the value as [tag, payload]; of a struct, every field in the schema's order."""
    if value is None:
        return None
    if isinstance(value, bool):
        return ["bool", value]
    if isinstance(value, (int, float)):
        is_float = isinstance(value, float)
        return ["float", java_float(value)] if is_float else ["int", str(value)]
    if isinstance(value, str):
        return ["str", value]
    if isinstance(value, Decimal):
        return ["dec", str(value)]
    if isinstance(value, bytes):
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, (dt.date, dt.time)):
        return ["date", to_millis(value)]
    if isinstance(value, list):
        return ["list", [value_json(item, schema and schema.values) for item in value]]
    if schema is not None and schema.type is Type.STRUCT:
        undeclared = value.keys() - schema.fields.keys()
        assert not undeclared
        return ["map", [[["str", n], value_json(value.get(n), f)] for n, f in schema.fields.items()]]
    keys = schema and schema.keys
    items = schema and schema.values
    return ["map", [[value_json(k, keys), value_json(v, items)] for k, v in value.items()]]


def java_float(value: float) -> str:
    """Return a text that both languages parse."""
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def record_json(record: SinkRecord) -> dict[str, Any]:
    """Return the record as Java's program reads it."""
    return {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp": None if record.timestamp < 0 else record.timestamp,
        "key_schema": schema_json(record.key_schema),
        "key": value_json(record.key, record.key_schema),
        "value_schema": schema_json(record.value_schema),
        "value": value_json(record.value, record.value_schema),
        "headers": [[n, schema_json(s), value_json(v, s)] for n, s, v in record.headers],
    }


def normal(node: Any) -> Any:
    """Return an answer in a form that does not depend on the order of maps, or on how floats are written."""
    if isinstance(node, dict):
        return {key: normal(item) for key, item in node.items()}
    if isinstance(node, list) and len(node) == 2 and node[0] == "float":
        return ["float", repr(float(node[1]))]
    if isinstance(node, list) and len(node) == 2 and node[0] == "map":
        return ["map", sorted((normal(entry) for entry in node[1]), key=repr)]
    return [normal(item) for item in node] if isinstance(node, list) else node


def ours(name: str, config: Mapping[str, str], record: SinkRecord) -> Any:
    """Return our answer: the record, or the kind of error."""
    transform = transform_class("type", name)()
    try:
        transform.configure(config)
    except ConfigError as e:
        return f"config error: {e}"
    try:
        result = transform.apply(record)
    except DataError as e:
        return f"error: {e}"
    assert isinstance(result, SinkRecord)
    described = record_json(result)
    for key in ("partition", "offset", "timestamp"):
        del described[key]
    return normal(described)


def javas(cases: Sequence[tuple[str, Mapping[str, str], SinkRecord]]) -> list[Any]:
    """Return Java's answers."""
    lines = [
        json.dumps({"transform": name, "config": dict(config), "record": record_json(record)})
        for name, config, record in cases
    ]
    command = program("ConnectTransforms", options=OPTIONS)
    stdin = "\n".join(lines)
    done = subprocess.run(command, input=stdin, capture_output=True, encoding="utf-8", timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    kinds = {"config_error": "config error", "error": "error"}
    errors = [next((f"{kinds[k]}: {answer[k]}" for k in kinds if k in answer), None) for answer in answers]
    return [error or normal(answer) for error, answer in zip(errors, answers, strict=True)]


def is_same(expected: Any, answer: Any) -> bool:
    """Return True if both answers are the same record, or errors of the same kind."""
    if isinstance(expected, str) and isinstance(answer, str):
        return expected.partition(":")[0] == answer.partition(":")[0]
    return bool(expected == answer)
