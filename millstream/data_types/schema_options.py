"""What a command was told of schemas."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
