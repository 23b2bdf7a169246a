"""Random schemas and values, to Protobuf and back."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from connect.api import schema
from connect.api.schema import Schema, Type
from connect.converters.protobuf import ProtobufConverter
from connect.converters.registry import RegisteredSchema
from connect.errors import DataError

NAMES = st.sampled_from(["a", "b_c", "D9", "class", "message", "optional", "int32", "key", "value", "self"])
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
MS = st.integers(0, 999).map(lambda ms: ms * 1000)
SCALARS: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (schema.int8, st.integers(-128, 127)),
    (schema.int16, st.integers(-(1 << 15), (1 << 15) - 1)),
    (schema.int32, st.integers(-(1 << 31), (1 << 31) - 1)),
    (schema.int64, st.integers(-(1 << 63), (1 << 63) - 1)),
    (schema.float32, st.floats(width=32, allow_nan=False)),
    (schema.float64, st.floats(allow_nan=False)),
    (schema.boolean, st.booleans()),
    (schema.string, TEXT),
    (schema.bytes_, st.binary(max_size=5)),
    (schema.date, st.dates()),
    (schema.time, st.builds(lambda t, us: t.replace(microsecond=us), st.times(), MS)),
    (
        schema.timestamp,
        st.builds(lambda t, us: t.replace(microsecond=us, tzinfo=dt.UTC), st.datetimes(), MS),
    ),
    (
        lambda *, optional=False: schema.decimal_(3, optional=optional),
        st.integers(-(1 << 200), 1 << 200).map(
            lambda n: decimal.Decimal(((n < 0), tuple(map(int, str(abs(n)))), -3))
        ),
    ),
]


@st.composite
def scalars(draw, *, may_be_null=True):
    """Draw a schema that has no parts, and a value of it."""
    make, values = draw(st.sampled_from(SCALARS))
    if may_be_null and draw(st.booleans()):
        return make(optional=True), draw(st.none() | values)
    return make(), draw(values)


@st.composite
def structs(draw, depth=0):
    """Draw the schema of a struct, and a value of it."""
    fields: dict[str, Schema] = {}
    value: dict[str, Any] = {}
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        kind = draw(st.sampled_from(["scalar", "scalar", "array", "map", "struct"]))
        if kind == "struct" and depth < 3:
            fields[name], value[name] = draw(structs(depth=depth + 1))
        elif kind == "array":
            of, item = draw(scalars(may_be_null=False))
            fields[name], value[name] = schema.array(of), [item] * draw(st.integers(0, 3))
        elif kind == "map":
            of, item = draw(scalars(may_be_null=False))
            keys = draw(st.lists(TEXT, unique=True, max_size=3))
            fields[name], value[name] = schema.map_(schema.string(), of), dict.fromkeys(keys, item)
        else:
            fields[name], value[name] = draw(scalars())
    return schema.struct(fields), value


class Memory:
    """A registry in memory."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def register(self, subject: str, kind: str, text: str) -> int:
        self.texts.append(text)
        return len(self.texts)

    def by_id(self, schema_id: int) -> RegisteredSchema:
        if not 0 < schema_id <= len(self.texts):
            raise DataError(f"schema {schema_id} cannot be read")
        return RegisteredSchema(schema_id, "PROTOBUF", self.texts[schema_id - 1], ())


def converter(option: str) -> ProtobufConverter:
    config = {"schema.registry.url": "http://x", option: "true"}
    return ProtobufConverter(config, is_key=False, registry=Memory())  # type: ignore[arg-type]


@given(structs(), st.sampled_from(["optional.for.nullables", "wrapper.for.nullables"]))
@settings(max_examples=80, deadline=None)
def test_values_come_back_and_are_written_the_same_again(of_value, option):
    of, value = of_value
    protobuf = converter(option)
    data = protobuf.from_connect("t", of, value)
    read = protobuf.to_connect("t", data)
    assert read.value == value
    assert read.schema is not None
    read.schema.check(read.value)
    if option == "optional.for.nullables":
        assert [f.type for f in read.schema.fields.values()] == [f.type for f in of.fields.values()]
    again = protobuf.to_connect("t", protobuf.from_connect("t", *read))
    assert again.value == value
    # As with Confluent's converter, items of lists are read as optional, and wrappers have no int8.
    assert again.schema == read.schema or option == "wrapper.for.nullables"


@given(scalars(may_be_null=False))
@settings(max_examples=100, deadline=None)
def test_values_that_are_no_structs(of_value):
    of, value = of_value
    protobuf = converter("optional.for.nullables")
    if of.name is not None:
        return
    read = protobuf.to_connect("t", protobuf.from_connect("t", of, value))
    assert read.value == value
    assert read.schema is not None
    # Wrappers have no smaller whole numbers than int32.
    assert read.schema.type is (Type.INT32 if of.type in (Type.INT8, Type.INT16) else of.type)
