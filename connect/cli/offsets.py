"""`millstream connect offsets`: show, set and reset a connector's offsets (KIP-875)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from connect.cli.output import print_json, print_table
from connect.cli.remote import DEFAULT_URL, AsJson, RemoteWorker, Url, told_errors

_OF_SINK = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<partition>\d+)=(?P<offset>\d+|null)")


def offsets(
    name: Annotated[str, typer.Argument(metavar="NAME", help="a connector")],
    reset: Annotated[bool, typer.Option("--reset", help="delete all offsets")] = False,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="OFFSET",
            help="topic:partition=offset of a sink, or JSON {partition, offset}; null deletes",
        ),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--set-from", help="JSON {offsets: [...]}, as --json prints it")
    ] = None,
    url: Url = DEFAULT_URL,
    as_json: AsJson = False,
) -> None:
    """Show a connector's offsets, or change those of a stopped connector."""
    changes = [_parsed(text) for text in change or []] + ([] if file is None else _read(file))
    if reset and changes:
        raise typer.BadParameter("--reset goes without --set and --set-from")
    with told_errors():
        worker, path = RemoteWorker(url), ("connectors", name, "offsets")
        if reset:
            answer = worker.call("DELETE", *path)
        elif changes:
            answer = worker.call("PATCH", *path, body={"offsets": changes})
        else:
            answer = worker.call("GET", *path)
    if as_json:
        print_json(answer)
    elif "message" in answer:
        typer.echo(answer["message"])
    else:
        rows = ((json.dumps(each["partition"]), json.dumps(each["offset"])) for each in answer["offsets"])
        print_table(("partition", "offset"), rows)


def _parsed(text: str) -> dict[str, Any]:
    """Return the partition and offset that a text gives."""
    match = _OF_SINK.fullmatch(text)
    if match is not None:
        partition = {"kafka_topic": match["topic"], "kafka_partition": int(match["partition"])}
        offset = None if match["offset"] == "null" else {"kafka_offset": int(match["offset"])}
        return {"partition": partition, "offset": offset}
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict) or "partition" not in document:
        raise typer.BadParameter(f"{text!r} must be topic:partition=offset or JSON {{partition, offset}}")
    return document


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        listed = document["offsets"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise typer.BadParameter(f"{file} must hold JSON {{offsets: [...]}}: {e}") from e
    if not isinstance(listed, list):
        raise typer.BadParameter(f"{file} must hold JSON {{offsets: [...]}}")
    return listed
