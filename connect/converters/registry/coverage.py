"""The check that values of one schema can be written by another, which somebody else registered."""

from __future__ import annotations

from connect.api.schema import Schema, Type
from connect.errors import DataError


def check_covered(schema: Schema, registered: Schema, path: str = "value") -> None:
    """Raise DataError if the registered schema lacks a field, so that the field's values would be lost."""
    if schema.type is Type.STRUCT and registered.type is Type.STRUCT:
        for name, of in schema.fields.items():
            if name not in registered.fields:
                raise DataError(
                    f"{path}.{name} has no field in the registry's schema. Register one that has it, or "
                    "set latest.compatibility.strict=false (id.compatibility.strict=false) to leave it out"
                )
            check_covered(of, registered.fields[name], f"{path}.{name}")
    elif schema.type is registered.type:
        for part, of_part in ((schema.keys, registered.keys), (schema.values, registered.values)):
            if part is not None and of_part is not None:
                check_covered(part, of_part, f"{path}[]")
