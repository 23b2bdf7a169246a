"""`millstream connect dlq`: list, show, retry and drop dead letters."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from connect.dlq.letter import DeadLetter
from connect.dlq.queue import DeadLetterQueue, Retried, queues
from connect.errors import MillstreamError
from kafka_client import Client
from kafka_client.java_properties import read_properties
from kafka_client.properties import ClientProperties

T = TypeVar("T")
app = typer.Typer(help="Dead letters: records that connectors left out.", no_args_is_help=True)

Servers = Annotated[
    str,
    typer.Option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT[,HOST:PORT]",
        envvar="KAFKA_BOOTSTRAP_SERVERS",
        help="Brokers to ask.",
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        "--command-config",
        help="a file of client settings by Kafka's names, such as security.protocol, ssl.*, sasl.*",
    ),
]
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="the topic of the dead letter queue")]
From = Annotated[int, typer.Option("--from", min=0, help="the first offset, of each partition")]
Connector = Annotated[str | None, typer.Option(help="only letters of this connector")]
Stage = Annotated[str | None, typer.Option(help="only letters of this stage, as VALUE_CONVERTER")]
Exception_ = Annotated[
    str | None, typer.Option("--exception", help="only letters whose exception's class name contains this")
]


@app.command("list")
def list_queues(
    topics: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]...")] = None,
    servers: Servers = "localhost:9092",
    command_config: CommandConfig = None,
) -> None:
    """Count dead letters by connector, stage and exception, in these topics or in all that hold some.

    Prints one JSON object a line.
    """

    async def run(client: Client) -> None:
        for queue in await queues(client, topics or ()):
            for (connector, stage, exception), count in (await queue.counts()).most_common():
                counts = {"connector": connector, "stage": stage, "exception": exception, "count": count}
                typer.echo(json.dumps({"topic": queue.topic, **counts}))

    _run(servers, command_config, run)


@app.command()
def show(
    topic: Topic,
    start: From = 0,
    limit: Annotated[int, typer.Option(min=1, help="how many letters at most")] = 10,
    connector: Connector = None,
    stage: Stage = None,
    exception: Exception_ = None,
    servers: Servers = "localhost:9092",
    command_config: CommandConfig = None,
) -> None:
    """Show dead letters with their errors, one JSON object a line."""
    is_chosen = _filter(connector, stage, exception)

    async def run(client: Client) -> None:
        shown = 0
        async for letter in DeadLetterQueue(client, topic).letters(start):
            if is_chosen(letter):
                typer.echo(json.dumps(letter.shown()))
                shown += 1
                if shown == limit:
                    return

    _run(servers, command_config, run)


@app.command()
def retry(
    topic: Topic,
    to: Annotated[str | None, typer.Option(help="write to this topic instead of the original ones")] = None,
    start: From = 0,
    connector: Connector = None,
    stage: Stage = None,
    exception: Exception_ = None,
    drop_retried: Annotated[
        bool, typer.Option("--drop", help="delete what was written back, up to the first letter that was not")
    ] = False,
    servers: Servers = "localhost:9092",
    command_config: CommandConfig = None,
) -> None:
    """Write dead letters back to the topics they come from, without the headers of their errors.

    A second retry writes them again, unless the first has dropped them. The exit status is 1 if a letter
    cannot be written back.
    """
    if drop_retried and start:
        raise typer.BadParameter("--drop with --from would delete letters that were not written back")
    is_chosen = _filter(connector, stage, exception)

    async def run(client: Client) -> Retried:
        queue = DeadLetterQueue(client, topic)
        outcome = await queue.retry(is_chosen, start=start, to=to)
        if drop_retried and outcome.next_offsets:
            await queue.drop({tp.partition: offset for tp, offset in outcome.next_offsets.items()})
        return outcome

    outcome = _run(servers, command_config, run)
    for letter, reason in outcome.refused:
        typer.echo(f"millstream connect dlq: {letter.tp}, offset {letter.offset}: {reason}", err=True)
    typer.echo(json.dumps({"topic": topic, "written": outcome.written, "refused": len(outcome.refused)}))
    raise typer.Exit(1 if outcome.refused else 0)


@app.command()
def drop(
    topic: Topic,
    until: Annotated[
        int | None, typer.Option(min=0, help="delete letters before this offset, in each partition")
    ] = None,
    partition: Annotated[int | None, typer.Option(min=0, help="only in this partition")] = None,
    everything: Annotated[bool, typer.Option("--all", help="delete all letters")] = False,
    servers: Servers = "localhost:9092",
    command_config: CommandConfig = None,
) -> None:
    """Delete dead letters before an offset, or all of them."""
    if (until is None) is not everything:
        raise typer.BadParameter("give either --until OFFSET or --all")

    async def run(client: Client) -> None:
        queue = DeadLetterQueue(client, topic)
        offset = -1 if until is None else until
        before = offset if partition is None else {partition: offset}
        for tp, first in sorted((await queue.drop(before)).items()):
            typer.echo(json.dumps({"topic": topic, "partition": tp.partition, "first_offset": first}))

    _run(servers, command_config, run)


def _filter(connector: str | None, stage: str | None, exception: str | None) -> Callable[[DeadLetter], bool]:
    """Return a function that tells whether a letter is one that the options choose."""

    def is_chosen(letter: DeadLetter) -> bool:
        its_connector, its_stage, its_exception = letter.reason
        return (
            connector in (None, its_connector)
            and (stage is None or stage.upper() == its_stage)
            and (exception is None or exception in its_exception)
        )

    return is_chosen


def _run(servers: str, command_config: Path | None, ask: Callable[[Client], Awaitable[T]]) -> T:
    """Return what `ask` returns for a client of the cluster. Its MillstreamError ends with exit status 2."""

    async def run() -> T:
        properties = read_properties(command_config, "--command-config") if command_config else {}
        arguments = ClientProperties.layered(properties, "").client()
        async with Client(servers, **arguments) as client:
            return await ask(client)

    try:
        return asyncio.run(run())
    except MillstreamError as e:
        typer.echo(f"millstream connect dlq: {e}", err=True)
        raise typer.Exit(2) from e
