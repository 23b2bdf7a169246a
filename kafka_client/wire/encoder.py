"""Encoders generated as straight-line Python, one per message class and version.

What comes out for a version of Metadata reads, in part, like this:

    def parts(m):
        out = []
        ...
        for m1 in v2:
            out += (
                S3(m1.error_code, m1.partition_index, m1.leader_id, m1.leader_epoch),
                A4(m1.replica_nodes),
                A4(m1.isr_nodes),
                A4(m1.offline_replicas),
                b'\\0',
            )

Runs of fixed-size fields are one pack; parts are joined once. Values that cannot be encoded (a number out of
range, null if the version has none) fail in the packing. The traceback's line then shows the field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import Any, cast

from kafka_client.wire import primitives
from kafka_client.wire.message import Kind, Message
from kafka_client.wire.schema import FIXED, SHORT_ARRAY, Array, Field, Shape, fields_of
from kafka_client.wire.source import Source

_FAILURES = (struct.error, TypeError, ValueError, AttributeError, OverflowError)


def compile_encoder(cls: type[Message], version: int) -> Callable[[Message], bytes]:
    """Return a function from a message to its bytes; its ValueError names the field that cannot be
    written.
    """
    writer = _EncoderWriter(version, flexible=version >= cls.FLEXIBLE)
    source = writer.source
    labels: list[str] = []

    def unwritable(error: Exception) -> ValueError:
        line = error.__traceback__.tb_lineno if error.__traceback__ else 0
        return ValueError(f"{cls.__name__} v{version}, cannot write {labels[line] or 'it'}: {error}")

    source.constants |= {"unwritable": unwritable, "Failures": _FAILURES}
    with source.block("def encode(m):"):
        with source.block("try:"):
            source.line("out = []")
            writer.struct(cls, "m", "")
            writer.flush()
            source.line("return b''.join(out)")
        with source.block("except Failures as error:"):
            source.line("raise unwritable(error) from error")
    encode, line_labels = source.compile("encode", f"{cls.__name__} v{version} encoder")
    labels += line_labels
    return cast(Callable[[Message], bytes], encode)


class _EncoderWriter:
    """Writes the statements that append one value after the other to `out`.

    Expressions of bytes are collected in `pending` and appended together by `flush`, which has to
    come before every statement that is no such expression.
    """

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.out = "out"
        self.pending: list[tuple[str, str]] = []
        self.source = Source()
        self.source.constants |= {"uvarint": primitives.uvarint, "uuid": primitives.uuid}

    def flush(self) -> None:
        """Write the pending expressions, each on its own line for the sake of its label."""
        pending, self.pending = self.pending, []
        if len(pending) == 1:
            self.source.line(f"{self.out}.append({pending[0][0]})", pending[0][1])
        elif pending:
            self.source.line(f"{self.out} += (")
            for expression, label in pending:
                self.source.line(f"{expression},", label)
            self.source.line(")")

    def add(self, expression: str, label: str) -> None:
        """Append an expression of bytes to the message."""
        self.pending.append((expression, label))

    def call(self, function: Callable[..., Any]) -> str:
        """Return the name of a helper inside the generated code."""
        return self.source.constant(function, "F")

    def struct(self, cls: type[Message], variable: str, path: str) -> None:
        """Write a struct held by `variable`."""
        fields = fields_of(cls, self.version)
        plain = [field for field in fields if field.tag is None]
        for fixed, run in groupby(plain, _is_fixed):
            if fixed:
                self.fixed_run(list(run), variable, path)
            else:
                for field in run:
                    self.value(field, f"{variable}.{field.name}", path + field.name)
        if self.flexible:
            self.tags([field for field in fields if field.tag is not None], variable, path)

    def fixed_run(self, run: Sequence[Field], variable: str, path: str) -> None:
        """Write neighbouring fixed-size fields with one pack."""
        layout = struct.Struct(">" + "".join(FIXED[cast(Kind, field.shape)][0] for field in run))
        values = [_fixed(cast(Kind, field.shape), f"{variable}.{field.name}") for field in run]
        label = path + ", ".join(field.name for field in run)
        self.add(f"{self.source.constant(layout.pack, 'S')}({', '.join(values)})", label)

    def value(self, field: Field, expression: str, label: str) -> None:
        """Write one value that `expression` gives."""
        shape, nullable = field.shape, field.nullable
        if isinstance(shape, Array):
            self.array(shape.element, expression, label, nullable)
        elif not isinstance(shape, Kind):
            self.nested(shape, expression, label, nullable, null="\\0" if field.tag is not None else "\\xff")
        elif shape in FIXED:
            layout = struct.Struct(">" + FIXED[shape][0])
            self.add(f"{self.source.constant(layout.pack, 'S')}({_fixed(shape, expression)})", label)
        elif shape is Kind.STRING:
            self.add(f"{self.call(_STRING[self.flexible, nullable])}({expression})", label)
        else:
            self.add(f"{self.call(_LENGTH[self.flexible, nullable])}({expression})", label)
            self.add(f"{expression} or b''" if nullable else expression, label)

    def nested(
        self, cls: type[Message], expression: str, label: str, nullable: bool, null: str = "\\xff"
    ) -> None:
        """Write a struct inside a struct; a nullable one behind an int8 (KIP-893), or `null`."""
        self.flush()
        variable = self.source.name("m")
        self.source.line(f"{variable} = {expression}", label)
        if not nullable:
            self.struct(cls, variable, f"{label}.")
            return
        with self.source.block(f"if {variable} is None:"):
            self.source.line(f"{self.out}.append(b'{null}')")
        with self.source.block("else:"):
            self.add("b'\\1'", label)
            self.struct(cls, variable, f"{label}.")
            self.flush()

    def array(self, element: Shape, expression: str, label: str, nullable: bool) -> None:
        """Write an array."""
        if isinstance(element, Kind) and element in FIXED and element is not Kind.UUID:
            self.add(f"{self.call(_fixed_array(element, self.flexible, nullable))}({expression})", label)
            return
        variable, each = self.source.name("v"), self.source.name("m")
        self.flush()
        self.source.line(f"{variable} = {expression}", label)
        self.add(f"{self.call(_LENGTH[self.flexible, nullable])}({variable})", label)
        self.flush()
        with self.source.block(f"for {each} in {variable}{' or ()' if nullable else ''}:", label):
            if isinstance(element, Kind | Array):
                self.value(Field.bare(element), each, label)
            else:
                self.struct(element, each, f"{label}.")
            self.flush()

    def tags(self, tagged: Sequence[Field], variable: str, path: str) -> None:
        """Write the tagged fields that are not at their default."""
        if not tagged:
            self.add("b'\\0'", path)
            return
        self.flush()
        count, parts = self.source.name("n"), self.source.name("t")
        self.source.line(f"{count} = 0")
        self.source.line(f"{parts} = []")
        for field in tagged:
            value, label = self.source.name("v"), path + field.name
            self.source.line(f"{value} = {variable}.{field.name}", label)
            with self.source.block(f"if {value} != {self.source.constant(field.plain_default)}:", label):
                body = self.source.name("t")
                self.source.line(f"{body} = []")
                with self.into(body):
                    self.value(field, value, label)
                self.source.line(f"{body} = b''.join({body})", label)
                self.source.line(f"{count} += 1")
                self.source.line(f"{parts} += (uvarint({field.tag}), uvarint(len({body})), {body})", label)
        self.source.line(f"{self.out}.append(uvarint({count}))")
        self.source.line(f"{self.out} += {parts}")

    @contextmanager
    def into(self, out: str) -> Iterator[None]:
        """Append to another list meanwhile."""
        before, self.out = self.out, out
        yield
        self.flush()
        self.out = before


_STRING = {
    (False, False): primitives.string,
    (False, True): primitives.nullable_string,
    (True, False): primitives.compact_string,
    (True, True): primitives.nullable_compact_string,
}
"""By (flexible, nullable)."""
_LENGTH: dict[tuple[bool, bool], Callable[[Any], bytes]] = {
    (False, False): primitives.length,
    (False, True): primitives.nullable_length,
    (True, False): primitives.compact_length,
    (True, True): primitives.nullable_compact_length,
}


@cache
def _fixed_array(kind: Kind, flexible: bool, nullable: bool) -> Callable[[Any], bytes]:
    """Return a function from a sequence of fixed-size values to the whole array, with its length."""
    character, _ = FIXED[kind]
    prefix, extra = ("B", 1) if flexible else ("i", 0)
    short = [struct.Struct(f">{prefix}{count}{character}").pack for count in range(SHORT_ARRAY)]
    long_length = _LENGTH[flexible, False]

    def write(values: Sequence[Any]) -> bytes:
        count = len(values)
        if count < SHORT_ARRAY:
            return short[count](count + extra, *values)
        return long_length(values) + struct.pack(f">{count}{character}", *values)

    def write_nullable(values: Sequence[Any] | None) -> bytes:
        if values is None:
            return b"\0" if flexible else b"\xff\xff\xff\xff"
        return write(values)

    return write_nullable if nullable else write


def _fixed(kind: Kind, expression: str) -> str:
    return f"uuid({expression})" if kind is Kind.UUID else expression


def _is_fixed(field: Field) -> bool:
    return isinstance(field.shape, Kind) and field.shape in FIXED
