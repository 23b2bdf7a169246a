"""The options of `millstream produce`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer


class Input(StrEnum):
    """The forms of input, for `-i`."""

    LINES = "lines"
    """A value a line; with -K a key before it."""
    JSON = "json"
    """An object a line, as `millstream consume -o jsonl` prints them."""
    FILES = "files"
    """Each file is the value of one record."""


Topic = Annotated[str, typer.Argument(metavar="TOPIC", show_default=False)]
Files: TypeAlias = Annotated[
    list[Path] | None, typer.Argument(metavar="[FILE]...", show_default=False, help="Instead of stdin.")
]
InputForm = Annotated[
    Input,
    typer.Option("--input", "-i", help="A value a line, a JSON object a line, or a record a file."),
]
KeySeparator = Annotated[
    str | None,
    typer.Option("--key-separator", "-K", metavar="TEXT", help="Ends the key in front of a value."),
]
HeadersSeparator = Annotated[
    str | None,
    typer.Option(
        "--headers-separator",
        metavar="TEXT",
        help="Ends the headers, name:value,name:value, in front of all.",
    ),
]
Delimiter = Annotated[str, typer.Option("--delimiter", "-D", metavar="TEXT", help="Ends a line.")]
Key = Annotated[str | None, typer.Option("--key", "-k", help="The key of records that have none.")]
Header = Annotated[
    list[str] | None,
    typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header of every record; may be repeated."),
]
Partition = Annotated[
    int | None, typer.Option("--partition", "-p", min=0, help="The partition; otherwise by the key's hash.")
]
NullMarker = Annotated[
    str | None,
    typer.Option(
        "--null-marker", "-Z", metavar="TEXT", help="Stands for null as key, value or header's value."
    ),
]
Compression: TypeAlias = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
    typer.Option("--compression-type", "-z", help="How batches are compressed."),
]
Acks: TypeAlias = Annotated[
    Literal["all", "-1", "0", "1"] | None,
    typer.Option(
        "--acks", help="Who has to have a record: all in-sync replicas, the leader (1), nobody (0)."
    ),
]
TransactionalId = Annotated[
    str | None,
    typer.Option(
        "--transactional-id", metavar="ID", help="Write all in one transaction: all of it or nothing."
    ),
]
TransactionTimeoutMs = Annotated[
    int, typer.Option("--transaction-timeout-ms", min=1, help="How long the transaction may take.")
]
SkipErrors = Annotated[
    bool, typer.Option("--skip-errors", help="Leave out lines that do not parse, and say so; exit status 6.")
]
KeySubject = Annotated[
    str | None,
    typer.Option("--key-subject", metavar="NAME", help="The registry's subject; TOPIC-key otherwise."),
]
ValueSubject = Annotated[
    str | None,
    typer.Option("--value-subject", metavar="NAME", help="The same, of values; TOPIC-value otherwise."),
]
