"""`@command`: a coroutine function becomes a command that talks to a cluster.

    @command(app, "list")
    async def list_topics(session: Session, *, internal: Annotated[bool, typer.Option(...)] = False) -> None:
        \"\"\"List topics.\"\"\"
        session.show(rows, ("name", "partitions"))

Besides its own options a command takes `--bootstrap-server`, `--command-config`, `--profile` and `-o`. An
error is printed on stderr, `millstream topic list: …`, and sets the exit status (`status.py`). A noun whose
callback takes these options, as Kafka's tools take them before the verb, passes them on to its verbs.
`@local_command` is for commands that talk to no cluster.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Concatenate, ParamSpec, TypeVar

import typer

from kafka_client.errors import MillstreamError
from millstream.terminal.completion import complete_profiles
from millstream.terminal.output import Format
from millstream.terminal.servers import find_servers
from millstream.terminal.session import Local, Session, described
from millstream.terminal.status import Status, remedy_of, status_of

P = ParamSpec("P")
T = TypeVar("T")
Work = Callable[Concatenate[Session, P], Awaitable[None]]
LocalWork = Callable[Concatenate[Local, P], None]

SHARED: dict[str, tuple[Any, Any]] = {
    "bootstrap_server": (
        Annotated[
            str | None,
            typer.Option("--bootstrap-server", "-b", metavar="HOST:PORT[,HOST:PORT]", help="Brokers to ask."),
        ],
        None,
    ),
    "command_config": (
        Annotated[
            Path | None,
            typer.Option("--command-config", metavar="FILE", help="Properties of the client, as Kafka's."),
        ],
        None,
    ),
    "profile": (
        Annotated[
            str | None,
            typer.Option(
                "--profile",
                help="A cluster named by `millstream profile set`.",
                autocompletion=complete_profiles,
            ),
        ],
        None,
    ),
    "form": (
        Annotated[Format, typer.Option("-o", "--output", help="The form of what is printed.")],
        Format.TABLE,
    ),
}
"""The options of every command that talks to a cluster: their annotations for typer, and their defaults."""


def command(
    app: typer.Typer,
    name: str | None = None,
    *,
    effective: tuple[str, ...] = (),
    check: Callable[..., None] | None = None,
    unless: str | None = None,
    **settings: Any,
) -> Callable[[Work[P]], Work[P]]:
    """Register a coroutine function at `app`; `settings` are those of `typer.Typer.command`.

    `effective`: keys of `--command-config` that the command uses besides those of `Client`. `check`: called
    with the command's own options before connecting; raises UsageError. `unless`: an option with which the
    client is passed unconnected, since the command asks others than the brokers first.
    """

    def register(work: Work[P]) -> Work[P]:
        def run(context: typer.Context, **options: Any) -> None:
            # Options before the verb apply unless they are also after it.
            before = context.parent.params if context.parent is not None else {}
            servers, file, profile = (
                options.pop(key) or before.get(key)
                for key in ("bootstrap_server", "command_config", "profile")
            )
            # Typer converts only the verb's own options to paths.
            file = None if file is None else Path(file)
            form = options.pop("form")

            async def main() -> None:
                if check is not None:
                    check(**options)
                cluster = find_servers(servers, file, profile, *effective)
                client = cluster.client()
                try:
                    if unless is None or options[unless] is None:
                        await client.connect()
                    await work(Session(form, client, cluster), **options)  # type: ignore[call-arg]
                finally:
                    await client.close()

            run_to_end(main(), context.command_path)

        _dress(run, work, tuple(SHARED))
        app.command(name or work.__name__.replace("_", "-"), **settings)(run)
        return work

    return register


def local_command(
    app: typer.Typer, name: str | None = None, **settings: Any
) -> Callable[[LocalWork[P]], LocalWork[P]]:
    """Register a function that talks to no cluster.

    It has `-o`, and the same exit statuses as other commands.
    """

    def register(work: LocalWork[P]) -> LocalWork[P]:
        def run(context: typer.Context, **options: Any) -> None:
            form = options.pop("form")
            with reported(context.command_path):
                work(Local(form), **options)  # type: ignore[call-arg]

        _dress(run, work, ("form",))
        app.command(name or work.__name__.replace("_", "-"), **settings)(run)
        return work

    return register


def noun_options(app: typer.Typer, help: str) -> None:
    """Let a noun take the options of the cluster before its verb, too, as Kafka's tools do."""

    def options(**values: Any) -> None:
        pass

    shared = [
        Parameter(key, Parameter.KEYWORD_ONLY, annotation=SHARED[key][0], default=SHARED[key][1])
        for key in ("bootstrap_server", "command_config", "profile")
    ]
    options.__signature__ = inspect.Signature(shared)  # type: ignore[attr-defined]
    options.__annotations__ = {each.name: each.annotation for each in shared}
    app.callback(help=help)(options)


def _dress(run: Callable[..., None], work: Callable[..., Any], shared: tuple[str, ...]) -> None:
    """Give `run` the signature that typer reads: a context, the options of `work`, and the shared ones."""
    own = inspect.signature(work, eval_str=True)
    parameters = [each.replace(kind=Parameter.KEYWORD_ONLY) for each in list(own.parameters.values())[1:]]
    parameters += [
        Parameter(key, Parameter.KEYWORD_ONLY, annotation=SHARED[key][0], default=SHARED[key][1])
        for key in shared
    ]
    # Typer recognises its context by the annotation.
    parameters.insert(0, Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context))
    run.__signature__ = own.replace(parameters=parameters, return_annotation=None)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__doc__ = work.__doc__


def run_to_end(main: Coroutine[Any, Any, T], name: str) -> T:
    """Run a command's coroutine. An error is printed on stderr and ends the process with its status.

    `name`: the command's whole name, as it was called.
    """
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")
    with reported(name):
        return run_loop(main)


@contextmanager
def reported(name: str) -> Iterator[None]:
    """Print an error of the block on stderr after the command's `name`, and exit with its status."""
    try:
        yield
    except (MillstreamError, OSError, TimeoutError) as error:
        if isinstance(error, BrokenPipeError):
            # The reader has closed the pipe, as in `… | head`: Python must not try to flush the rest.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(Status.OK) from None
        status = status_of(error)
        typer.echo(f"{name}: {described(error)}", err=True)
        if (remedy := remedy_of(error)) is not None:
            typer.echo(f"{name}: {remedy}", err=True)
        raise typer.Exit(status) from None
    except KeyboardInterrupt:
        raise typer.Exit(Status.INTERRUPTED) from None


def run_loop(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine, on uvloop if it is installed, as logd does."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
