"""``millstream streams``: the commands that print and run a topology; `tools.commands` has the others.

A topology is named ``module:name``. It is a Topology, a StreamsBuilder, or a function that returns one and
may take the settings, a StreamsConfig, with which builders are built. ``run`` writes a JSON object a line to
stdout when its state changes, and every ``--status-interval`` seconds:

    {"event": "status", "state": "RUNNING", "tasks": ["0_0", ...], "records_in": ..., "records_out": ...,
     "dropped_records": ..., "late_records": ..., "lag": 0}

and at the end ``{"event": "stopped", ...}`` with the same fields. Only the timed lines have ``lag``. With
several workers, each line has the ``worker`` that wrote it. Warnings and errors go to stderr by ``logging``.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from inspect import Parameter, signature
from typing import Annotated, Any

import typer

from kafka_client.errors import MillstreamError
from kafka_client.logs.formats import LogFormat
from kafka_client.logs.stderr import LogForm, LogLevels, LogOptions, log_to_stderr
from kafka_client.private_files import hide_from_others
from streams.config import StreamsConfig
from streams.dsl import StreamsBuilder
from streams.runtime.app import KafkaStreams
from streams.runtime.status import State
from streams.runtime.threads.event_loop import run_in_new_loop
from streams.tools import commands
from streams.tools.commands import end
from streams.tools.properties import (
    ApplicationId,
    BootstrapServer,
    CommandConfig,
    CommandOptions,
    ConfigFile,
    Override,
    Profile,
    settings_of,
)
from streams.tools.workers import config_of, ends_with, raise_open_files_limit, run_workers
from streams.topology import Topology

app = typer.Typer(
    help="Streams: describe and run stream topologies.", no_args_is_help=True, add_completion=False
)

GC_THRESHOLD = 50_000
"""Allocations between two collections: records in flight are many, and almost never in cycles."""

TopologyName = Annotated[str, typer.Argument(metavar="MODULE:NAME", help="where the topology is")]


class Form(StrEnum):
    """The output format of a topology."""

    TEXT = "text"
    JSON = "json"
    MERMAID = "mermaid"
    SVG = "svg"


@app.command()
def describe(
    topology: TopologyName,
    form: Annotated[
        Form, typer.Option("--format", help="text as Kafka's Topology.describe(), or a picture")
    ] = Form.TEXT,
    config: ConfigFile = None,
    override: Override = None,
) -> None:
    """Print a topology: as Kafka's Topology.describe() does, as JSON, or as a picture."""
    try:
        settings = None
        if config is not None or override:
            id = None if config is not None else "unknown"
            options = CommandOptions(config=config, override=override, application_id=id, is_local=True)
            settings, _ = settings_of(options)
        loaded = _load(topology, settings)
        match form:
            case Form.TEXT:
                text = loaded.describe()
            case Form.JSON:
                text = json.dumps(loaded.outline(), indent=2) + "\n"
            case Form.MERMAID:
                text = loaded.mermaid()
            case Form.SVG:
                text = loaded.svg()
        typer.echo(text, nl=False)
    except MillstreamError as error:
        end(error)


@app.command()
def run(
    topology: TopologyName,
    bootstrap_server: BootstrapServer = None,
    application_id: ApplicationId = None,
    config: ConfigFile = None,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1, help="processes, each with its own tasks and state; num.stream.threads unless given"
        ),
    ] = None,
    override: Override = None,
    command_config: CommandConfig = None,
    profile: Profile = None,
    http: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="serve the HTTP view there: http.listener; a worker's is its number on"
        ),
    ] = None,
    exit_when_caught_up: Annotated[
        bool, typer.Option(help="end once all there is in the inputs is processed and committed")
    ] = False,
    status_interval: Annotated[float, typer.Option(help="seconds between status lines; 0: only changes")] = 0,
    log_level: LogLevels = None,
    log_format: LogForm = LogFormat.AUTO,
) -> None:
    """Run an application. Ends cleanly on SIGTERM or Ctrl-C, everything committed."""
    gc.set_threshold(GC_THRESHOLD)
    hide_from_others()
    raise_open_files_limit()
    try:
        log_to_stderr(LogOptions(log_level, log_format), default="WARN")
        settings, threads = settings_of(
            CommandOptions(
                config=config,
                command_config=command_config,
                profile=profile,
                override=override,
                bootstrap_server=bootstrap_server,
                application_id=application_id,
            )
        )
        count = workers or threads
        if http is not None:
            settings = replace(settings, http_listener=http)
        loaded = _load(topology, settings)

        def work(worker: int, pipe: int) -> int:
            streams = KafkaStreams(loaded, config_of(settings, worker))
            labels = {} if count == 1 else {"worker": worker}
            run = _run(
                streams,
                pipe,
                exit_when_caught_up=exit_when_caught_up,
                status_interval=status_interval,
                labels=labels,
            )
            try:
                run_in_new_loop(run)
            except MillstreamError as error:
                end(error)
            return 0

        if count == 1:
            work(0, -1)
        else:
            raise typer.Exit(run_workers(count, work))
    except MillstreamError as error:
        end(error)


for command in (commands.reset, commands.lag, commands.state):
    app.command()(command)


def _load(name: str, settings: StreamsConfig | None) -> Topology:
    module, colon, attribute = name.partition(":")
    if not colon:
        raise typer.BadParameter(f"{name!r} is not module:name")
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        topology: Any = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise typer.BadParameter(f"{name}: {error}") from error
    if not isinstance(topology, Topology | StreamsBuilder) and callable(topology):
        topology = topology(settings) if _takes_settings(topology) else topology()
    if isinstance(topology, StreamsBuilder):
        topology = topology.build(settings)
    if not isinstance(topology, Topology):
        raise typer.BadParameter(f"{name} is no topology but {type(topology).__name__}")
    return topology


def _takes_settings(function: Callable[..., Any]) -> bool:
    """Return True if a function has a required positional parameter."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return any(
        each.kind in kinds and each.default is Parameter.empty
        for each in signature(function).parameters.values()
    )


async def _run(
    streams: KafkaStreams,
    pipe: int,
    *,
    exit_when_caught_up: bool,
    status_interval: float,
    labels: dict[str, Any],
) -> None:
    """Run an instance until a signal, or the end of ``pipe`` (-1: none). ``labels`` are part of each line."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    if pipe >= 0:
        ends_with(pipe, stop)
    streams.add_state_listener(lambda new, old: _say("status", streams, new, **labels))
    reporter = asyncio.create_task(_report(streams, status_interval, labels)) if status_interval else None
    try:
        await streams.run_until(stop, when_caught_up=exit_when_caught_up)
    finally:
        if reporter is not None:
            reporter.cancel()
            await asyncio.gather(reporter, return_exceptions=True)
    _say("stopped", streams, streams.state, **labels)


async def _report(streams: KafkaStreams, interval: float, labels: dict[str, Any]) -> None:
    while True:
        await asyncio.sleep(interval)
        try:
            more = {"lag": await streams.lag()}
        except MillstreamError:
            more = {}  # no broker answers
        _say("status", streams, streams.state, **labels, **more)


def _say(event: str, streams: KafkaStreams, state: State, **more: Any) -> None:
    facts = {"event": event, "state": state.value, **streams.summary(), **more}
    typer.echo(json.dumps(facts))
