"""`@command`: a coroutine function becomes a command that talks to a cluster.

    @command(app, "list")
    async def list_topics(session: Session, *, internal: Annotated[bool, typer.Option(...)] = False) -> None:
        \"\"\"List topics.\"\"\"
        session.show(rows, ("name", "partitions"))

Besides its own options it takes `--bootstrap-server`, `--command-config`, `--profile` and `-o`. What it
raises is told on stderr, `millstream topic list: …`, and becomes the exit status (`status.py`). A noun whose
own callback takes options by these names (as Kafka's tools take them before the verb) has them count as well.
`@local_command` is for what talks to no cluster.
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
"""Options of every command that talks to a cluster: how typer sees them, and their defaults."""


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

    `effective`: keys of `--command-config` that the command acts on besides those of `Client`. `check`: is
    given the command's own options before anything is connected to, and raises UsageError. `unless`: an
    option with which the client is handed over unconnected, since brokers are not all that is asked then.
    """

    def register(work: Work[P]) -> Work[P]:
        def run(context: typer.Context, **given: Any) -> None:
            # What the noun's own callback took counts where the verb has nothing.
            before = context.parent.params if context.parent is not None else {}
            servers, file, profile = (
                given.pop(key) or before.get(key) for key in ("bootstrap_server", "command_config", "profile")
            )
            # Typer makes paths of the verb's own only.
            file = None if file is None else Path(file)
            form = given.pop("form")

            async def main() -> None:
                if check is not None:
                    check(**given)
                found = find_servers(servers, file, profile, *effective)
                client = found.client()
                try:
                    if unless is None or given[unless] is None:
                        await client.connect()
                    await work(Session(form, client, found), **given)  # type: ignore[call-arg]
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
    """Register a function that talks to no cluster: it has `-o`, and exit statuses as the others."""

    def register(work: LocalWork[P]) -> LocalWork[P]:
        def run(context: typer.Context, **given: Any) -> None:
            form = given.pop("form")
            with told(context.command_path):
                work(Local(form), **given)  # type: ignore[call-arg]

        _dress(run, work, ("form",))
        app.command(name or work.__name__.replace("_", "-"), **settings)(run)
        return work

    return register


def noun_options(app: typer.Typer, help: str) -> None:
    """Have a noun take the servers before its verb, as Kafka's tools do, besides after it."""

    def options(**given: Any) -> None:
        pass

    shared = [
        Parameter(key, Parameter.KEYWORD_ONLY, annotation=SHARED[key][0], default=SHARED[key][1])
        for key in ("bootstrap_server", "command_config", "profile")
    ]
    options.__signature__ = inspect.Signature(shared)  # type: ignore[attr-defined]
    options.__annotations__ = {each.name: each.annotation for each in shared}
    app.callback(help=help)(options)


def _dress(run: Callable[..., None], work: Callable[..., Any], shared: tuple[str, ...]) -> None:
    """Give `run` the signature that typer makes options of: a context, those of `work`, and shared ones."""
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
    """Run a command's coroutine; an error is told on stderr and ends the process with its status.

    `name`: the command's whole name, as it was called.
    """
    import logging

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")
    with told(name):
        return run_loop(main)


@contextmanager
def told(name: str) -> Iterator[None]:
    """Tell an error of the block on stderr, behind the command's `name`, and end with its exit status."""
    try:
        yield
    except (MillstreamError, OSError, TimeoutError) as error:
        if isinstance(error, BrokenPipeError):
            # Whoever read our output has enough, as in `… | head`: Python must not try to flush the rest.
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
    """On uvloop where it installs, as logd runs."""
    import asyncio

    try:
        from uvloop import new_event_loop
    except ImportError:
        return asyncio.run(main)
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(main)
