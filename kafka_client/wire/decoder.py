"""Decoders generated as straight-line Python, one per message class and version.

What comes out for a version of Heartbeat reads like this:

    def decode(b, p):
        try:
            end = len(b)
            n1 = b[p]
            ...
            v2, = S3(b, p); p += 4
            return HeartbeatRequest(group_id=v1, generation_id=v2), p
        except Failures as error:
            raise malformed(error) from None

Runs of fixed-size fields are one unpack. Reading past the end is an IndexError or a struct.error by
itself; lengths of strings, bytes and arrays are compared with the bytes left before anything is
sliced or looped over. Arrays and tagged fields have Kafka's bounds, too. The traceback's line tells
the field.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import Any, TypeVar, cast

from kafka_client.errors import MalformedMessage
from kafka_client.wire.message import Kind, Message
from kafka_client.wire.primitives import (
    ARRAY_LENGTH_MAX,
    FAILURES,
    TAGGED_FIELDS_MAX,
    Nonsense,
    check_length,
    check_tagged,
    read_tag,
    read_uvarint,
    skip_tagged,
)
from kafka_client.wire.schema import FIXED, SHORT_ARRAY, Array, Field, Shape, fields_of, size_min
from kafka_client.wire.source import Source

M = TypeVar("M", bound=Message)

_INT16 = struct.Struct(">h").unpack_from
_INT32 = struct.Struct(">i").unpack_from


def compile_decoder(cls: type[M], version: int) -> Callable[[bytes, int], tuple[M, int]]:
    """Return a function from (bytes, position) to (message, position after it); it raises
    MalformedMessage.
    """
    writer = _DecoderWriter(version, flexible=version >= cls.FLEXIBLE)
    source = writer.source
    labels: list[str] = []

    def malformed(error: Exception) -> MalformedMessage:
        line = error.__traceback__.tb_lineno if error.__traceback__ else 0
        reason = str(error) if isinstance(error, Nonsense | UnicodeDecodeError) else "the message is cut off"
        return MalformedMessage(f"{cls.__name__} v{version}, {labels[line] or 'at its end'}: {reason}")

    source.constants |= {"malformed": malformed, "Failures": FAILURES}
    with source.block("def decode(b, p):"):
        with source.block("try:"):
            source.line("end = len(b)")
            result = writer.struct(cls, "")
            source.line(f"return {result}, p")
        with source.block("except Failures as error:"):
            source.line("raise malformed(error) from None")
    decode, line_labels = source.compile("decode", f"{cls.__name__} v{version} decoder")
    labels += line_labels
    return cast(Callable[[bytes, int], tuple[M, int]], decode)


class _DecoderWriter:
    """Writes the statements that read one value after the other, from `b` at `p`."""

    def __init__(self, version: int, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source()
        self.source.constants |= {
            "uvarint": read_uvarint,
            "read_tag": read_tag,
            "skip_tagged": skip_tagged,
            "check_length": check_length,
            "check_tagged": check_tagged,
            "int16": _INT16,
            "int32": _INT32,
            "unpack": struct.unpack_from,
            "Nonsense": Nonsense,
        }

    def struct(self, cls: type[Message], path: str) -> str:
        """Read a struct; return the expression that makes it."""
        fields = fields_of(cls, self.version)
        plain = [field for field in fields if field.tag is None]
        tagged = [field for field in fields if field.tag is not None]
        values: list[tuple[str, str]] = []
        for fixed, run in groupby(plain, _is_fixed):
            if fixed:
                values += self.fixed_run(list(run), path)
            else:
                values += [(field.name, self.value(field, path)) for field in run]
        if self.flexible:
            values += self.tags(tagged, f"{path}tagged fields", path)
        arguments = ", ".join(f"{name}={value}" for name, value in values)
        return f"{self.source.constant(cls, cls.__name__)}({arguments})"

    def fixed_run(self, run: Sequence[Field], path: str) -> list[tuple[str, str]]:
        """Read neighbouring fixed-size fields with one unpack."""
        kinds = [cast(Kind, field.shape) for field in run]
        layout = struct.Struct(">" + "".join(FIXED[kind][0] for kind in kinds))
        label = path + (run[0].name if len(run) == 1 else f"{run[0].name}..{run[-1].name}")
        names = [self.source.name("v") for _ in run]
        unpack = self.source.constant(layout.unpack_from, "S")
        self.source.line(f"{', '.join(names)}, = {unpack}(b, p)", label)
        self.source.line(f"p += {layout.size}")
        return list(zip([field.name for field in run], names, strict=True))

    def value(self, field: Field, path: str) -> str:
        """Read one field; return the variable or expression that holds it."""
        label = path + field.name
        if isinstance(field.shape, Array):
            return self.array(field.shape.element, label, field.nullable)
        if isinstance(field.shape, Kind):
            if field.shape in FIXED:
                return self.fixed_run([field], path)[0][1]
            return self.text_or_bytes(field.shape, label, field.nullable)
        if not field.nullable:
            return self.struct(field.shape, f"{label}.")
        return self.nullable_struct(field.shape, label, tagged=field.tag is not None)

    def nullable_struct(self, cls: type[Message], label: str, *, tagged: bool) -> str:
        """Read a struct after an int8: negative is null (KIP-893); in a tagged field 0 is null as well."""
        result = self.source.name("v")
        self.source.line("p += 1")
        with self.source.block("if b[p - 1] != 1:" if tagged else "if b[p - 1] > 127:", label):
            self.source.line(f"{result} = None")
        with self.source.block("else:"):
            self.source.line(f"{result} = {self.struct(cls, f'{label}.')}", label)
        return result

    def text_or_bytes(self, kind: Kind, label: str, nullable: bool) -> str:
        """Read a string, bytes or records."""
        line, size = self.source.line, self.length(label, nullable, short=kind is Kind.STRING)
        result = self.source.name("v")
        read = "b[p:q].decode()" if kind is Kind.STRING else "b[p:q]"
        with self.unless_null(size, result, nullable):
            line(f"q = p + {size}")
            with self.source.block("if q > end:"):
                line(f"raise Nonsense(f'{{{size}}} bytes, {{end - p}} are left')", label)
            line(f"{result} = {read}", label)
            line("p = q")
        return result

    @contextmanager
    def unless_null(self, size: str, result: str, nullable: bool) -> Iterator[None]:
        """Run the statements added inside unless `size` says null.

        A field that is not nullable needs no check here.
        """
        if not nullable:
            yield
            return
        with self.source.block(f"if {size} < 0:"):
            self.source.line(f"{result} = None")
        with self.source.block("else:"):
            yield

    def length(self, label: str, nullable: bool, *, short: bool) -> str:
        """Read a length, -1 for null; return its variable. Null is refused if it is not allowed."""
        line, size = self.source.line, self.source.name("n")
        if self.flexible:
            self.uvarint(size, label)
            line(f"{size} -= 1")
        else:
            line(f"{size} = int{16 if short else 32}(b, p)[0]", label)
            line(f"p += {2 if short else 4}")
        if not nullable:
            with self.source.block(f"if {size} < 0:"):
                line(f"raise Nonsense(f'a length of {{{size}}}')", label)
        elif not self.flexible:
            with self.source.block(f"if {size} < -1:"):
                line(f"raise Nonsense(f'a length of {{{size}}}')", label)
        return size

    def uvarint(self, variable: str, label: str) -> None:
        """Read an unsigned varint, the one-byte case in place."""
        self.source.line(f"{variable} = b[p]", label)
        with self.source.block(f"if {variable} < 128:"):
            self.source.line("p += 1")
        with self.source.block("else:"):
            self.source.line(f"{variable}, p = uvarint(b, p)", label)

    def array(self, element: Shape, label: str, nullable: bool) -> str:
        """Read an array into a list."""
        line, size = self.source.line, self.length(label, nullable, short=False)
        result = self.source.name("v")
        smallest = max(1, size_min(element, self.version, self.flexible))
        with self.unless_null(size, result, nullable):
            with self.source.block(f"if {size} * {smallest} > end - p or {size} > {ARRAY_LENGTH_MAX}:"):
                line(f"check_length({size}, {smallest}, end - p)", label)
            if isinstance(element, Kind) and element in FIXED and element is not Kind.UUID:
                character, width = FIXED[element]
                short = self.source.constant(_short_arrays(character), "L")
                with self.source.block(f"if {size} < {SHORT_ARRAY}:"):
                    line(f"{result} = list({short}[{size}](b, p))", label)
                with self.source.block("else:"):
                    line(f"{result} = list(unpack(f'>{{{size}}}{character}', b, p))", label)
                line(f"p += {size} * {width}")
            else:
                append = self.source.name("a")
                line(f"{result} = []")
                line(f"{append} = {result}.append")
                with self.source.block(f"for _ in range({size}):"):
                    line(f"{append}({self.value(Field.bare(element), label)})", label)
        return result

    def tags(self, tagged: Sequence[Field], label: str, path: str) -> list[tuple[str, str]]:
        """Read the tagged fields after a struct; unknown ones are skipped."""
        line = self.source.line
        values = [(field.name, self.source.name("v")) for field in tagged]
        for field, (_, variable) in zip(tagged, values, strict=True):
            if field.make_default:
                line(f"{variable} = {self.source.constant(field.make_default)}()")
            else:
                line(f"{variable} = {self.source.constant(field.default)}")
        count, tag, size, after = (self.source.name(stem) for stem in ("n", "t", "n", "q"))
        self.uvarint(count, label)
        if not tagged:
            with self.source.block(f"if {count}:"):
                line(f"p = skip_tagged(b, p, {count})", label)
            return values
        with self.source.block(f"if {count} > {TAGGED_FIELDS_MAX}:"):
            line(f"check_tagged({count})", label)
        with self.source.block(f"for _ in range({count}):", label):
            line(f"{tag}, {size}, p = read_tag(b, p)", label)
            line(f"{after} = p + {size}")
            for index, (field, (_, variable)) in enumerate(zip(tagged, values, strict=True)):
                word = "elif" if index else "if"
                with self.source.block(f"{word} {tag} == {field.tag}:"):
                    line(f"{variable} = {self.value(field, path)}", path + field.name)
            with self.source.block("else:"):
                line(f"p = {after}")
            with self.source.block(f"if p != {after}:"):
                line(f"raise Nonsense(f'tag {{{tag}}} does not end where its size says')", label)
        return values


@cache
def _short_arrays(character: str) -> list[Callable[[bytes, int], tuple[Any, ...]]]:
    """Return unpackers of 0, 1, 2 … values."""
    return [struct.Struct(f">{count}{character}").unpack_from for count in range(SHORT_ARRAY)]


def _is_fixed(field: Field) -> bool:
    return isinstance(field.shape, Kind) and field.shape in FIXED
