"""Fields of made-up records: from a specification in JSON, or from an Avro schema with `arg.properties`.

    {"id": {"type": "long", "iteration": {"start": 1, "step": 1}},
     "name": {"options": ["Ada", "Grace"]},
     "code": {"regex": "[A-Z]{3}"},
     "price": {"type": "double", "range": {"min": 0.5, "max": 99}},
     "address": {"type": "record", "fields": {"city": {"options": ["Ulm", "Bonn"]}}},
     "tags": {"type": "array", "length": 2, "items": {"options": ["a", "b"]}}}

The rules `iteration`, `range`, `options` and `regex` are those of Confluent's Avro random generator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from connect.api import DataError, Schema, schema
from plugins.datagen.patterns import text_maker

Field = Callable[[Random, int], Any]
"""A function from a source of randomness and the record's number to a value."""

_SCALARS: dict[str, Callable[..., Schema]] = {
    "int": schema.int32,
    "long": schema.int64,
    "float": schema.float32,
    "double": schema.float64,
    "boolean": schema.boolean,
    "string": schema.string,
}
_DEFAULT_RANGES = {"int": (0, 1 << 31), "long": (0, 1 << 53), "float": (0.0, 1.0), "double": (0.0, 1.0)}
_RULES = frozenset(("type", "iteration", "range", "options", "regex", "length", "items", "fields", "name"))
_LENGTH_MAX = 10_000


def record_of(fields: Mapping[str, Any], name: str | None = None) -> tuple[Schema, Field]:
    """Return the schema and the maker of a record. Raises ValueError, with the field, if a rule is wrong."""
    if not isinstance(fields, Mapping) or not fields:
        raise ValueError("must be a JSON object of fields")
    makers: dict[str, Field] = {}
    schemas: dict[str, Schema] = {}
    for key, rules in fields.items():
        try:
            schemas[key], makers[key] = _field(rules)
        except (ValueError, TypeError, AttributeError, KeyError, DataError) as e:
            raise ValueError(f"field {key}: {e}") from e
    items = list(makers.items())
    return schema.struct(schemas, name=name), lambda random, number: {k: m(random, number) for k, m in items}


def _field(rules: Any) -> tuple[Schema, Field]:
    if isinstance(rules, str):
        rules = {"type": rules}
    if not isinstance(rules, Mapping):
        raise ValueError(f"{rules!r} is neither a type nor an object of rules")
    if odd := sorted(rules.keys() - _RULES):
        raise ValueError(f"no such rule: {', '.join(odd)}; there are {', '.join(sorted(_RULES))}")
    kind = rules.get("type", "string")
    if kind == "record":
        return record_of(rules.get("fields", {}), rules.get("name"))
    if kind == "array":
        return _array(rules)
    if kind not in _SCALARS:
        raise ValueError(f"type {kind!r} is none of {', '.join((*_SCALARS, 'record', 'array'))}")
    return _SCALARS[kind](), _scalar(kind, rules)


def _array(rules: Mapping[str, Any]) -> tuple[Schema, Field]:
    item_schema, item = _field(rules.get("items", "string"))
    length = rules.get("length", 3)
    low, high = (length["min"], length["max"]) if isinstance(length, Mapping) else (length, length)
    if not 0 <= low <= high <= _LENGTH_MAX:
        raise ValueError(f"length {length!r} must be between 0 and {_LENGTH_MAX}")
    return schema.array(item_schema), lambda random, number: [
        item(random, number) for _ in range(random.randint(low, high))
    ]


def _scalar(kind: str, rules: Mapping[str, Any]) -> Field:
    if "iteration" in rules:
        return _iteration(kind, rules["iteration"])
    if "options" in rules:
        options = list(rules["options"])
        if not options:
            raise ValueError("options are empty")
        for option in options:
            _SCALARS[kind]().check(option, "an option")
        return lambda random, number: random.choice(options)
    if "regex" in rules:
        pattern = rules["regex"]
        maker = text_maker(pattern)
        return lambda random, number: maker(random)
    if kind == "boolean":
        return lambda random, number: random.random() < 0.5
    if kind == "string":
        maker = text_maker("[a-z]{8}")
        return lambda random, number: maker(random)
    return _in_range(kind, rules.get("range", {}))


def _in_range(kind: str, bounds: Mapping[str, Any]) -> Field:
    """Return a maker of numbers from `min` (included) to `max` (excluded)."""
    low, high = _DEFAULT_RANGES[kind]
    low, high = bounds.get("min", low), bounds.get("max", high)
    if not low < high:
        raise ValueError(f"range: min {low} must be below max {high}")
    if kind in ("int", "long"):
        return lambda random, number: random.randrange(int(low), int(high))
    return lambda random, number: low + (high - low) * random.random()


def _iteration(kind: str, rule: Mapping[str, Any]) -> Field:
    """Return a counter from `start` by `step`; behind `restart` it goes back to `start`."""
    if kind not in _DEFAULT_RANGES:
        raise ValueError(f"iteration needs a number, not {kind}")
    start, step, restart = rule.get("start", 0), rule.get("step", 1), rule.get("restart")
    if restart is None:
        return lambda random, number: start + step * number
    period = -(-(restart - start) // step) if step else 0
    if period < 1:
        raise ValueError(f"iteration: {step} does not lead from {start} to {restart}")
    return lambda random, number: start + step * (number % int(period))


def fields_of_avro(document: Any) -> tuple[dict[str, Any], str | None]:
    """Return the fields and the name of a record in an Avro schema with `arg.properties`.

    Raises ValueError for what has no counterpart here.
    """
    if not isinstance(document, Mapping) or document.get("type") != "record":
        raise ValueError("must be an Avro schema of a record")
    fields = {field["name"]: _rules_of_avro(field["type"]) for field in document.get("fields", [])}
    return fields, document.get("name")


def _rules_of_avro(declared: Any) -> dict[str, Any]:
    if isinstance(declared, str):
        return {"type": declared}
    if not isinstance(declared, Mapping):
        raise ValueError(f"the Avro type {declared!r} is not supported: name one type")
    rules = dict(declared.get("arg.properties", {}))
    kind = declared["type"]
    if kind == "record":
        return {"type": "record", "fields": fields_of_avro(declared)[0], "name": declared.get("name")}
    if kind == "array":
        return {"type": "array", "items": _rules_of_avro(declared["items"]), **rules}
    return _rules_of_avro(kind) if isinstance(kind, Mapping) else {"type": kind, **rules}
