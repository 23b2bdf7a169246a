"""Files of Protobuf definitions: their imports, and the descriptors of their messages."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

from connect.converters.protobuf.parser import parse_proto
from connect.errors import DataError

_IMPORTS_MAX = 1000
"""The most files that one imports, with the imports of its imports."""
_GOOGLES = re.compile(r"google/(protobuf|type)/([a-z_]+)\.proto")
_DECIMAL = """
syntax = "proto3";
package confluent.type;
message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }
"""
_KNOWN = {
    "confluent/meta.proto": """
syntax = "proto3";
package confluent;
message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }
""",
    "confluent/type/decimal.proto": _DECIMAL,
    "confluent/types/decimal.proto": 'syntax = "proto3"; import public "confluent/type/decimal.proto";',
    "google/type/date.proto": """
syntax = "proto3";
package google.type;
message Date { int32 year = 1; int32 month = 2; int32 day = 3; }
""",
    "google/type/timeofday.proto": """
syntax = "proto3";
package google.type;
message TimeOfDay { int32 hours = 1; int32 minutes = 2; int32 seconds = 3; int32 nanos = 4; }
""",
}
"""Files that every reader of Confluent's schemas has, beside Google's own in the package protobuf."""


def file_of(text: str, name: str) -> Any:
    """Return the FileDescriptorProto of a schema: .proto text, or a descriptor in base64 as clients send.

    Raises DataError if the text is neither.
    """
    try:
        return parse_proto(text, name)
    except DataError:
        try:
            file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(text, validate=True))
        except (binascii.Error, ValueError, message.DecodeError):
            file = None
        if file is None or not file.message_type:
            raise
        file.name = name
        return file


@cache
def known_file(name: str) -> Any:
    """Return the FileDescriptorProto of a file that every reader has, or None."""
    if name in _KNOWN:
        return parse_proto(_KNOWN[name], name)
    match = _GOOGLES.fullmatch(name)
    if match is None:
        return None
    try:
        # google.type is there if googleapis-common-protos is installed.
        descriptor = import_module(f"google.{match[1]}.{match[2]}_pb2").DESCRIPTOR
    except ImportError:
        return None
    file = descriptor_pb2.FileDescriptorProto()
    descriptor.CopyToProto(file)
    return file


class ProtobufFile:
    """A file with its imports in a pool of descriptors of its own."""

    def __init__(self, file: Any, imports: Mapping[str, Any]) -> None:
        """Create the descriptors. `imports` has the FileDescriptorProtos of imported files by name.

        Raises DataError for an import that is missing, and for definitions that make no sense.
        """
        self._file = file
        self._pool = descriptor_pool.DescriptorPool()
        self._added: set[str] = set()
        self._add(file, imports, ())

    def _add(self, file: Any, imports: Mapping[str, Any], path: tuple[str, ...]) -> None:
        """Add a file to the pool, behind its imports."""
        if file.name in path or len(path) > 100:
            raise DataError(f"Protobuf file {file.name} imports itself")
        for name in file.dependency:
            if name in self._added:
                continue
            imported = imports.get(name) or known_file(name)
            if imported is None:
                raise DataError(
                    f"Protobuf file {file.name} imports {name}, which is none of its references in the "
                    "registry"
                )
            self._add(imported, imports, (*path, file.name))
        if len(self._added) >= _IMPORTS_MAX:
            raise DataError(f"Protobuf file {file.name} has more than {_IMPORTS_MAX} imports")
        self._added.add(file.name)
        try:
            self._pool.Add(file)
        except (TypeError, message.EncodeError, UnicodeError) as e:
            raise DataError(f"Protobuf file {file.name} cannot be used: {e}") from e

    @property
    def proto(self) -> Any:
        """The FileDescriptorProto with its full names of types."""
        file = descriptor_pb2.FileDescriptorProto()
        self._pool.FindFileByName(self._file.name).CopyToProto(file)
        return file

    def message(self, indexes: Sequence[int]) -> Any:
        """Return the class of the message at these message indexes. Raises DataError if there is none."""
        names = [self._file.package] if self._file.package else []
        level = self._file.message_type
        for index in indexes:
            if not 0 <= index < len(level):
                raise DataError(f"the Protobuf schema has no message at the indexes {list(indexes)}")
            names.append(level[index].name)
            level = level[index].nested_type
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(".".join(names)))

    def indexes_of(self, full_name: str) -> list[int]:
        """Return the message indexes of a message. Raises DataError if the file does not define it."""
        prefix = f"{self._file.package}." if self._file.package else ""
        indexes: list[int] = []
        level = self._file.message_type
        if not full_name.startswith(prefix):
            raise DataError(f"the Protobuf schema is of package {self._file.package} and has no {full_name}")
        for part in full_name[len(prefix) :].split("."):
            names = [each.name for each in level]
            if part not in names:
                raise DataError(f"the Protobuf schema has no message {full_name}; it has {', '.join(names)}")
            indexes.append(names.index(part))
            level = level[indexes[-1]].nested_type
        return indexes

    def indexes_like(self, full_name: str) -> list[int]:
        """Return the message indexes of a message, or [0] if the file has a single one, of another name."""
        try:
            return self.indexes_of(full_name)
        except DataError:
            if len(self._file.message_type) == 1:
                return [0]
            raise
