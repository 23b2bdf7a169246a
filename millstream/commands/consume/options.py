"""The options of `millstream consume`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from kafka_client import IsolationLevel

Topics: TypeAlias = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...", show_default=False)]
Include = Annotated[
    str | None, typer.Option("--include", metavar="REGEX", help="Topics whose whole name matches.")
]
Group = Annotated[
    str | None, typer.Option("--group", "-g", help="Read as a member of this group, which remembers offsets.")
]
Partitions = Annotated[
    list[int] | None, typer.Option("--partition", "-p", min=0, help="Only this partition; may be repeated.")
]
FromBeginning = Annotated[
    bool,
    typer.Option(
        "--from-beginning", help="Begin with the oldest record; with --group, where it has no offset."
    ),
]
Offset = Annotated[
    str | None, typer.Option("--offset", metavar="N|earliest|latest", help="Begin at this offset.")
]
Last = Annotated[
    int | None,
    typer.Option("--last", "-n", min=0, help="Begin so many offsets before the end of each partition."),
]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="TIME", help="Begin at this time: 2026-01-31T12:00, or 10m ago, or ms."),
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="End before the first record of this time.")
]
Exit = Annotated[
    bool,
    typer.Option("--exit", "-e", help="Begin at the beginning and exit at the end, as it is at the start."),
]
MaxMessages = Annotated[int | None, typer.Option("--max-messages", "-c", min=1, help="Exit after so many.")]
TimeoutMs = Annotated[
    int | None, typer.Option("--timeout-ms", min=1, help="Exit if for so long nothing comes.")
]
FormatString = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        help="%t topic, %p partition, %o offset, %T timestamp, %h headers, %k key, %v value, %K and %V their "
        r"bytes, %R the value's as an int32, %%; \n \t \xHH.",
    ),
]
Formatter = Annotated[
    str | None,
    typer.Option(
        "--formatter",
        help="Kafka's own records: OffsetsMessageFormatter, GroupMetadataMessageFormatter or "
        "TransactionLogMessageFormatter.",
    ),
]
Null = Annotated[str, typer.Option("--null-marker", help="What a line shows for null.")]
Key = Annotated[str | None, typer.Option("--key", "-k", help="Only records with this key.")]
KeyPattern = Annotated[
    str | None, typer.Option("--key-pattern", metavar="REGEX", help="Only records whose key has a match.")
]
Isolation: TypeAlias = Annotated[
    IsolationLevel | None,
    typer.Option("--isolation-level", help="read_committed: without aborted transactions."),
]
SkipErrors = Annotated[
    bool,
    typer.Option(
        "--skip-errors", help="Leave out what cannot be decoded or read, and say so; exit status 6."
    ),
]
