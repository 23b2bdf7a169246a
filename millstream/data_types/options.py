"""The options that say what keys, values and headers are made of; of `produce` and `consume` alike."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from millstream.data_types.names import TypeName

KeyType = Annotated[TypeName, typer.Option("--key-type", help="What keys are made of.")]
ValueType = Annotated[TypeName, typer.Option("--value-type", help="What values are made of.")]
HeaderType = Annotated[TypeName, typer.Option("--header-type", help="What values of headers are made of.")]
Registry = Annotated[
    str | None,
    typer.Option(
        "--schema-registry",
        metavar="URL",
        help="For Avro and Protobuf: where schemas are asked for; user:password@ may stand before the host.",
    ),
]
KeySchema = Annotated[
    Path | None, typer.Option("--key-schema", metavar="FILE", help="Avro schema, or Protobuf descriptor set.")
]
ValueSchema = Annotated[
    Path | None, typer.Option("--value-schema", metavar="FILE", help="The same, of values.")
]
KeySchemaId = Annotated[
    int | None, typer.Option("--key-schema-id", help="The registry's number of the schema.")
]
ValueSchemaId = Annotated[int | None, typer.Option("--value-schema-id", help="The same, of values.")]
KeyMessage = Annotated[
    str | None, typer.Option("--key-message", metavar="NAME", help="The Protobuf message in the set.")
]
ValueMessage = Annotated[
    str | None, typer.Option("--value-message", metavar="NAME", help="The same, of values.")
]
