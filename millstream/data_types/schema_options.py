"""The options of a command about schemas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """The sources of the schemas of Avro and Protobuf.

    `registry`: the address of a registry with Confluent's API. `file`: an Avro schema (.avsc), or a compiled
    set of descriptors (protoc --descriptor_set_out --include_imports). `message`: the Protobuf message in the
    file. `schema_id`: the id of the schema to write with. `subject`: without an id, its newest schema is
    used, or the schema in `file` is registered there; None: nothing is written.
    """

    registry: str | None = None
    file: Path | None = None
    message: str | None = None
    schema_id: int | None = None
    subject: str | None = None
