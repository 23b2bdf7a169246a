"""Random schemas, values and records, from a seed."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from random import Random
from typing import Any

from connect.api import SinkRecord
from connect.api import schema as s
from connect.api.schema import DATE, DECIMAL, TIME, TIMESTAMP, Schema, Type
from connect.transforms.java_numbers import as_float32

EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
NAMES = ("a", "b", "c", "d")
"""Names of fields."""
STRINGS = (
    *("", "12", "-7", "+5", "300", "1.5", " 5 ", "1e3", "true", "TRUE", "abc", "NaN", "-Infinity", "0x1p3"),
    *(
        "5f",
        "99999999999999999999",
        "2024-01-02",
        "2024-1-2 3:4",
        "12:30",
        "1_0",
        "inf",
        "\u0661\u0662",
        "1.",
    ),
    *("2024-13-45", "24-02-30", "2024-01-02T03:04:05.006Z", "Feb 3, 2024", "february 3, 2024", "2024-01-0x"),
)
FLOATS = (
    0.0,
    -0.0,
    0.5,
    300.75,
    -1e10,
    1e7,
    9999999.0,
    1.5e-5,
    0.001,
    3.4e38,
    1e300,
    float("nan"),
    float("inf"),
    2.0**33,
)
INTS = (
    0,
    1,
    -1,
    127,
    128,
    -129,
    32768,
    2**31 - 1,
    -(2**31),
    2**31,
    2**63 - 1,
    -(2**63),
    1709209815250,
    86399999,
)
BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
PRIMITIVES = (s.int8, s.int16, s.int32, s.int64, s.float32, s.float64, s.boolean, s.string, s.bytes_)


def moment(random: Random) -> dt.datetime:
    """Return a datetime of 1900 to 2100, with milliseconds."""
    millis = random.choice((0, 1, -1, 86_400_000, random.randrange(-2_208_988_800_000, 4_102_444_800_000)))
    return EPOCH + dt.timedelta(milliseconds=millis)


def a_schema(random: Random, depth: int = 0) -> Schema:
    """Return a schema; below the top also of logical types, and with defaults."""
    kind = random.randrange(10 if depth < 2 else 8)
    if kind < 6:
        schema = random.choice(PRIMITIVES)(doc=random.choice((None, "doc")))
    elif kind < 8:
        schema = random.choice((s.date(), s.time(), s.timestamp(), s.decimal_(2)))
    elif kind == 8:
        item = random.choice(PRIMITIVES)()
        schema = random.choice((s.array(item), s.map_(s.string(), item)))
    else:
        schema = a_struct(random, depth + 1)
    default = a_value(random, schema) if schema.type is not Type.STRUCT and random.random() < 0.25 else None
    return dataclasses.replace(schema, optional=random.random() < 0.4, default=default)


def a_struct(random: Random, depth: int = 0) -> Schema:
    """Return a struct's schema with up to four fields."""
    names = random.sample(NAMES, random.randrange(1, len(NAMES) + 1))
    name, version = random.choice(((None, None), ("n", 1)))
    return s.struct({n: a_schema(random, depth) for n in names}, name=name, version=version)


def a_value(random: Random, schema: Schema) -> Any:
    """Return a value that fits the schema and is not null."""
    logical = {
        DATE: lambda: moment(random).date(),
        TIME: lambda: moment(random).time(),
        TIMESTAMP: lambda: moment(random),
        DECIMAL: lambda: Decimal(random.choice(("0.00", "1.50", "-300.25", "12345678901234567890.12"))),
    }.get(schema.name or "")
    if logical is not None:
        return logical()
    match schema.type:
        case Type.STRUCT:
            return {n: a_field(random, f) for n, f in schema.fields.items() if not is_missing(random, f)}
        case Type.ARRAY:
            assert schema.values is not None
            return [a_value(random, schema.values) for _ in range(random.randrange(3))]
        case Type.MAP:
            assert schema.values is not None
            return {n: a_value(random, schema.values) for n in random.sample(NAMES, random.randrange(3))}
        case Type.FLOAT32 | Type.FLOAT64:
            value = random.choice(FLOATS)
            return as_float32(value) if schema.type is Type.FLOAT32 else value
        case Type.BOOLEAN:
            return random.random() < 0.5
        case Type.STRING:
            return random.choice(STRINGS)
        case Type.BYTES:
            return random.randbytes(random.randrange(4))
        case _:
            half = 1 << (BITS[schema.type] - 1)
            return random.choice([i for i in INTS if -half <= i < half])


def is_missing(random: Random, schema: Schema) -> bool:
    """Return True, sometimes, for a field that may be null."""
    return (schema.optional or schema.default is not None) and random.random() < 0.4


def a_field(random: Random, schema: Schema) -> Any:
    """Return the value of a field that is there: null where it may be, sometimes."""
    return None if is_missing(random, schema) else a_value(random, schema)


def a_plain_value(random: Random, depth: int = 0) -> Any:
    """Return a value without schema, perhaps null."""
    kind = random.randrange(10 if depth < 2 else 8)
    if kind < 2:
        return random.choice(INTS)
    if kind >= 8:
        return {n: a_plain_value(random, depth + 1) for n in random.sample(NAMES, random.randrange(4))}
    rest: tuple[Any, ...] = (
        random.choice(FLOATS),
        random.choice(STRINGS),
        random.choice(STRINGS),
        random.random() < 0.5,
        random.randbytes(2),
        [1, "x"],
        moment(random),
        Decimal("1.50"),
        None,
    )
    return random.choice(rest)


def a_record(random: Random) -> SinkRecord:
    """Return a record whose value, with a schema or without, is mostly a struct or map."""
    record = SinkRecord("topic", 3, 9, timestamp=random.choice((-1, 0, 1709209815250)))
    record.headers = [("h", s.int8(), 1), ("g", None, "x"), ("h", s.string(), "y")]
    if random.random() < 0.5:
        record.value = a_plain_value(random, random.choice((0, 9)))
        if random.random() < 0.7:
            record.value = {n: a_plain_value(random, 1) for n in NAMES if random.random() < 0.7}
        return record
    schema = a_struct(random) if random.random() < 0.7 else a_schema(random)
    if random.random() < 0.2:
        schema = dataclasses.replace(schema, optional=True)
    record.value_schema = schema
    record.value = None if schema.optional and random.random() < 0.3 else a_value(random, schema)
    return record
