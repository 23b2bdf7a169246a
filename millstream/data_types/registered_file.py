"""A Protobuf file in a registry, and the positions of its messages.

The message indexes stand between the schema id and the message, as zigzag varints: first their number, then
the message's position in the file, then its position among the nested messages, and so on. A single 0 means
the first message of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafka_client.errors import CorruptRecordBatch
from kafka_client.records.varint import read_zigzag, varint
from millstream.data_types.data_type import WrongData
from millstream.data_types.registry import Registry, RegistryFailed
from millstream.terminal.status import NotFound

DEPTH_MAX = 100
"""The maximum depth of nested messages, as in protobuf itself."""


class RegisteredFile:
    """A Protobuf file in a registry, with its imports."""

    def __init__(self, registry: Registry, number: int) -> None:
        from google.protobuf import descriptor_pb2, descriptor_pool, message

        self._number = number
        self._pool = descriptor_pool.DescriptorPool()
        try:
            for file in registry.files(number):
                proto = descriptor_pb2.FileDescriptorProto.FromString(file.data)
                proto.name = file.name or f"{number}.proto"
                for imported in proto.dependency:
                    _add_well_known(self._pool, imported)
                self._pool.Add(proto)
        except (message.DecodeError, TypeError) as error:
            raise RegistryFailed(
                f"schema {number} is no Protobuf file with all it imports: {error}"
            ) from None
        self._file = self._pool.FindFileByName(proto.name)
        self._proto = proto

    def message(self, indexes: Sequence[int]) -> Any:
        """Return the class of the message at that position. Raises WrongData if there is none."""
        from google.protobuf import message_factory

        names = [self._proto.package] if self._proto.package else []
        level: Any = self._proto.message_type
        for index in indexes:
            if not 0 <= index < len(level):
                raise WrongData(f"schema {self._number} has no message at {list(indexes)}")
            names.append(level[index].name)
            level = level[index].nested_type
        return message_factory.GetMessageClass(self._pool.FindMessageTypeByName(".".join(names)))

    def indexes_of(self, name: str | None) -> list[int]:
        """Return the position of a message by its full name; None: the first message. Raises NotFound."""
        if name is None:
            return [0]
        inner = name.removeprefix(f"{self._proto.package}.") if self._proto.package else name
        indexes: list[int] = []
        level: Any = self._proto.message_type
        for part in inner.split("."):
            places = [index for index, each in enumerate(level) if each.name == part]
            if not places:
                names = ", ".join(each.full_name for each in self._file.message_types_by_name.values())
                raise NotFound(f"there is no message {name} in schema {self._number}: it has {names}")
            indexes += places
            level = level[places[0]].nested_type
        return indexes


def _add_well_known(pool: Any, name: str) -> None:
    """Add one of Google's own files, which protobuf brings and registries lack, to the pool."""
    from importlib import import_module

    from google.protobuf import descriptor_pb2

    if not name.startswith("google/protobuf/"):
        return
    try:
        pool.FindFileByName(name)
    except KeyError:
        stem = name.removeprefix("google/protobuf/").removesuffix(".proto")
        try:
            descriptor = import_module(f"google.protobuf.{stem}_pb2").DESCRIPTOR
        except ImportError:
            return  # the pool reports the missing file
        for each in descriptor.dependencies:
            _add_well_known(pool, each.name)
        copy = descriptor_pb2.FileDescriptorProto()
        descriptor.CopyToProto(copy)
        pool.Add(copy)


def indexes_read(data: bytes, begin: int) -> tuple[list[int], int]:
    """Return the message indexes and the position of the message. Raises WrongData if they are malformed."""
    numbers: list[int] = []
    try:
        raw, begin = read_zigzag(data, begin)
        count = raw >> 1
        if raw & 1 or count > DEPTH_MAX:
            raise WrongData(f"no Protobuf behind the schema's number: {count} message indexes")
        for _ in range(count):
            raw, begin = read_zigzag(data, begin)
            numbers.append(-1 if raw & 1 else raw >> 1)
    except (IndexError, CorruptRecordBatch):
        raise WrongData(f"no Protobuf behind the schema's number: {len(data)} bytes end too early") from None
    return numbers or [0], begin


def indexes_written(indexes: Sequence[int]) -> bytes:
    """Encode the message indexes."""
    if list(indexes) == [0]:
        return varint(0)
    return b"".join(map(varint, (len(indexes), *indexes)))
