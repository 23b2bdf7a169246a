"""Parser of .proto text: proto2, proto3 and editions, to protobuf's own FileDescriptorProto.

Names of types stay as they are written; protobuf's pool of descriptors finds them. Services, extensions and
reserved numbers are passed over, since no value is read by them.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, text_encoding

from connect.converters.protobuf.indexes import DEPTH_MAX
from connect.converters.protobuf.options import set_option
from connect.converters.protobuf.tokens import Tokens
from connect.errors import DataError

_Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    name: _Field.Type.Value(f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
        *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}
"""Protobuf's types that are no messages or enums, by name."""
_LABELS = {
    "optional": _Field.LABEL_OPTIONAL,
    "required": _Field.LABEL_REQUIRED,
    "repeated": _Field.LABEL_REPEATED,
}
_SKIPPED = ("extensions", "reserved", "extend", "service", "export", "local")


def parse_proto(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a .proto text. Raises DataError, with the line, for invalid text."""
    return _Parser(text, name).file


class _Parser:
    """A parser of one text; `file` has the result."""

    def __init__(self, text: str, name: str) -> None:
        self._tokens = Tokens(text)
        self.file: Any = descriptor_pb2.FileDescriptorProto(name=name)
        while self._tokens.token.kind != "end":
            self._top_level()

    def _top_level(self) -> None:
        tokens, file = self._tokens, self.file
        match tokens.token.text:
            case "syntax" | "edition" as word:
                tokens.next()
                tokens.expect("=")
                self._syntax(word, tokens.string())
                tokens.expect(";")
            case "package":
                tokens.next()
                file.package = tokens.full_name()
                tokens.expect(";")
            case "import":
                tokens.next()
                if tokens.accept("public"):
                    file.public_dependency.append(len(file.dependency))
                else:
                    tokens.accept("weak")
                file.dependency.append(tokens.string())
                tokens.expect(";")
            case "message":
                self._message(file.message_type.add(), 1)
            case "enum":
                self._enum(file.enum_type.add())
            case _:
                if not self._common(file.options):
                    tokens.fail("message, enum or another definition")

    def _syntax(self, word: str, value: str) -> None:
        if word == "syntax" and value in ("proto2", "proto3"):
            self.file.syntax = value
        elif word == "edition" and f"EDITION_{value}" in dict(descriptor_pb2.Edition.items()):
            self.file.syntax = "editions"
            self.file.edition = descriptor_pb2.Edition.Value(f"EDITION_{value}")
        else:
            raise DataError(f'the .proto text is of {word} "{value}", which is not supported')

    def _common(self, options: Any) -> bool:
        """Read what stands anywhere: an option, an empty statement, or one that is passed over."""
        tokens = self._tokens
        if tokens.accept(";"):
            return True
        if tokens.accept("option"):
            self._option(options)
            tokens.expect(";")
            return True
        if tokens.token.kind == "name" and tokens.token.text in _SKIPPED:
            tokens.skip_statement()
            return True
        return False

    def _option(self, options: Any) -> None:
        """Read an option's name and value."""
        tokens = self._tokens
        path = []
        while True:
            if tokens.accept("("):
                path.append(f"({tokens.full_name()})")
                tokens.expect(")")
            else:
                path.append(tokens.name())
            if not tokens.accept("."):
                break
        tokens.expect("=")
        in_braces = tokens.token.text == "{"
        set_option(options, path, tokens.constant(), in_braces=in_braces)

    def _message(self, message: Any, depth: int) -> None:
        self._tokens.expect("message")
        message.name = self._tokens.name()
        self._body(message, depth)

    def _body(self, message: Any, depth: int) -> None:
        tokens = self._tokens
        if depth > DEPTH_MAX:
            raise DataError(f"message {message.name} is nested deeper than {DEPTH_MAX}")
        tokens.expect("{")
        while not tokens.accept("}"):
            match tokens.token.text:
                case "message":
                    self._message(message.nested_type.add(), depth + 1)
                case "enum":
                    self._enum(message.enum_type.add())
                case "oneof":
                    self._oneof(message, depth)
                case _:
                    if not self._common(message.options):
                        self._field(message, depth)
        _add_synthetic_oneofs(message)

    def _oneof(self, message: Any, depth: int) -> None:
        tokens = self._tokens
        tokens.expect("oneof")
        index = len(message.oneof_decl)
        oneof = message.oneof_decl.add(name=tokens.name())
        tokens.expect("{")
        while not tokens.accept("}"):
            if not self._common(oneof.options):
                self._field(message, depth, oneof=index)

    def _field(self, message: Any, depth: int, oneof: int | None = None) -> None:
        tokens = self._tokens
        label = tokens.next().text if oneof is None and tokens.token.text in _LABELS else None
        type_name = tokens.full_name()
        if type_name == "map" and tokens.accept("<"):
            self._map(message)
            return
        field = message.field.add(label=_LABELS[label or "optional"])
        field.name = tokens.name()
        if oneof is not None:
            field.oneof_index = oneof
        elif label == "optional" and self.file.syntax == "proto3":
            field.proto3_optional = True
        tokens.expect("=")
        field.number = self._number()
        if type_name == "group":
            self._group(message, field, depth)
            return
        if type_name in SCALARS:
            field.type = SCALARS[type_name]
        else:
            field.type_name = type_name
        self._field_options(field)
        tokens.expect(";")

    def _number(self) -> int:
        """Return the number of a field or of an enum's value."""
        number = self._tokens.integer()
        if not -(1 << 31) <= number < 1 << 31:
            raise DataError(f"{number} in the .proto text is no number of 32 bits")
        return number

    def _group(self, message: Any, field: Any, depth: int) -> None:
        group = message.nested_type.add(name=field.name)
        field.type, field.type_name, field.name = _Field.TYPE_GROUP, field.name, field.name.lower()
        self._field_options(field)
        self._body(group, depth + 1)

    def _map(self, message: Any) -> None:
        """Read a map field: a repeated message with the fields `key` and `value`."""
        tokens = self._tokens
        key = tokens.full_name()
        if key not in SCALARS:
            raise DataError(f"{key} in the .proto text is no type of a map's keys")
        tokens.expect(",")
        value = tokens.full_name()
        tokens.expect(">")
        name = tokens.name()
        entry = message.nested_type.add(name=entry_name(name))
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, label=_Field.LABEL_OPTIONAL, type=SCALARS[key])
        of_value = entry.field.add(name="value", number=2, label=_Field.LABEL_OPTIONAL)
        if value in SCALARS:
            of_value.type = SCALARS[value]
        else:
            of_value.type_name = value
        tokens.expect("=")
        field = message.field.add(name=name, label=_Field.LABEL_REPEATED, number=self._number())
        field.type, field.type_name = _Field.TYPE_MESSAGE, entry.name
        self._field_options(field)
        tokens.expect(";")

    def _field_options(self, field: Any) -> None:
        tokens = self._tokens
        if not tokens.accept("["):
            return
        while True:
            if tokens.token.text == "default":
                tokens.next()
                tokens.expect("=")
                field.default_value = self._default(field)
            elif tokens.token.text == "json_name":
                tokens.next()
                tokens.expect("=")
                field.json_name = tokens.string()
            else:
                self._option(field.options)
            if not tokens.accept(","):
                break
        tokens.expect("]")

    def _default(self, field: Any) -> str:
        """Return a default as descriptors have it: bytes escaped, everything else plain."""
        if self._tokens.token.kind == "string":
            text = self._tokens.string()
            if field.type == _Field.TYPE_BYTES:
                return text
            try:
                return text_encoding.CUnescape(text).decode()  # type: ignore[no-any-return]
            except UnicodeError as e:
                raise DataError(f"the default of field {field.name} is no UTF-8") from e
        if field.HasField("type") and field.type not in (
            _Field.TYPE_FLOAT,
            _Field.TYPE_DOUBLE,
            _Field.TYPE_BOOL,
        ):
            return str(self._tokens.integer())
        return self._tokens.constant()

    def _enum(self, enum: Any) -> None:
        tokens = self._tokens
        tokens.expect("enum")
        enum.name = tokens.name()
        tokens.expect("{")
        while not tokens.accept("}"):
            if self._common(enum.options):
                continue
            value = enum.value.add(name=tokens.name())
            tokens.expect("=")
            value.number = self._number()
            self._field_options(value)
            tokens.expect(";")


def entry_name(field: str) -> str:
    """Return protoc's name for the entries of a map field: `map_field` has `MapFieldEntry`."""
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _add_synthetic_oneofs(message: Any) -> None:
    """Put each `optional` field of proto3 into a oneof of its own, behind the real ones, as protoc does."""
    names = {field.name for field in message.field} | {oneof.name for oneof in message.oneof_decl}
    for field in message.field:
        if field.proto3_optional:
            name = f"_{field.name.removeprefix('_')}"
            while name in names:
                name = "X" + name
            names.add(name)
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=name)
