"""Finding a data type by the name in an option. Libraries of a type are imported when it is used."""

from __future__ import annotations

from millstream.data_types.data_type import DataType
from millstream.data_types.names import PLAIN_TYPES, TypeName
from millstream.data_types.schema_options import SchemaOptions
from millstream.terminal.status import UsageError


def find_type(name: TypeName, schemas: SchemaOptions) -> DataType:
    """Return the type of that name. Raises UsageError if an option or an extra is missing."""
    if name is TypeName.AVRO:
        from millstream.data_types.avro import avro_type

        return avro_type(schemas)
    if name is TypeName.PROTOBUF:
        from millstream.data_types.protobuf import protobuf_type

        return protobuf_type(schemas)
    if name not in PLAIN_TYPES:
        raise UsageError(f"there is no type {name}")
    return PLAIN_TYPES[name]
