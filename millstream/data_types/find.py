"""From the options' names to data types; what needs a library of its own is imported when it is named."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from millstream.data_types.data_type import DataType
from millstream.data_types.names import PLAIN_TYPES, TypeName
from millstream.terminal.status import UsageError


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """Where the schemas of Avro and Protobuf are.

    `registry`: the address of a registry that speaks Confluent's API; `file`: an Avro schema (.avsc), or a
    compiled set of descriptors (protoc --descriptor_set_out --include_imports); `message`: the Protobuf
    message in it; `schema_id`: the registry's number of the schema to write with. `subject`: where there is
    none, its newest schema is written with, or the file's, which is registered there; None: nothing is
    written.
    """

    registry: str | None = None
    file: Path | None = None
    message: str | None = None
    schema_id: int | None = None
    subject: str | None = None


def find_type(name: TypeName, schemas: SchemaOptions) -> DataType:
    """The type of that name; UsageError says what it lacks, and which extra to install."""
    if name is TypeName.AVRO:
        from millstream.data_types.avro import avro_type

        return avro_type(schemas)
    if name is TypeName.PROTOBUF:
        from millstream.data_types.protobuf import protobuf_type

        return protobuf_type(schemas)
    if name not in PLAIN_TYPES:
        raise UsageError(f"there is no type {name}")
    return PLAIN_TYPES[name]
