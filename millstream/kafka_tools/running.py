"""A tool as a subcommand of `millstream`, from its raw arguments to its exit status.

    OPTIONS = Options("…", [BOOTSTRAP_SERVER, …])

    def main(arguments: Sequence[str]) -> int: …

    app = tool(OPTIONS, main)

`main` reads the arguments with `read_arguments` and does its work with `Cluster.run`. Its errors end the tool
as in Java: `Ended` with its status, a JavaError as an uncaught exception without its stack.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer
from typer.core import TyperCommand

from millstream.kafka_tools.java.java_errors import COMMON, JavaError, java_error
from millstream.kafka_tools.options.arguments import Ended, Options, OptionValues
from millstream.kafka_tools.options.option import Option

if TYPE_CHECKING:
    from millstream.terminal.servers import Servers
    from millstream.terminal.session import Session

T = TypeVar("T")
Main = Callable[[Sequence[str]], int]

HELP = Option("help", "Print usage information.")
VERSION = Option("version", "Display Kafka version.")
COMMAND_CONFIG = Option(
    "command-config", "A file with properties of the admin client.", "command config property file"
)
VERSION_SHOWN = "4.4.0"
"""The version of the Java tools that these are compared with."""


class _Unparsed(TyperCommand):
    """A command that leaves its arguments unparsed."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.args = list(args)
        return []


def tool(options: Options, main: Main) -> typer.Typer:
    """Return the typer app of a tool."""
    app = typer.Typer(add_completion=False)

    @app.command(cls=_Unparsed, add_help_option=False, help=options.purpose)
    def call(context: typer.Context) -> None:
        raise typer.Exit(run(options, main, context.args))

    return app


def run(options: Options, main: Main, arguments: Sequence[str]) -> int:
    """Run a tool to its end. Return the exit status."""
    try:
        return main(arguments)
    except Ended as end:
        if end.message is not None:
            tell(end.message)
        if end.usage:
            tell(options.usage())
        return end.status
    except JavaError as error:
        return failed(f'Exception in thread "main" {error.full_text}', error)
    except BrokenPipeError:
        # The reader of the output has closed it, as in `… | head`: Python must not try to flush the rest.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (OSError, UnicodeError) as error:
        # A file that cannot be read, say.
        tell(str(error) or type(error).__name__)
        return 1
    except KeyboardInterrupt:
        return 130


def tell(text: str) -> None:
    """Print a line to stderr."""
    print(text, file=sys.stderr)


def failed(text: str, error: JavaError) -> int:
    """Print a text and the error's notes to stderr. Return the exit status."""
    tell(text)
    tell_notes(error)
    return 1


def tell_notes(error: BaseException) -> None:
    """Print the notes of an error, which the Java tools do not have."""
    for note in getattr(error, "__notes__", ()):
        tell(note)


def read_arguments(options: Options, arguments: Sequence[str], bare: str | None = None) -> OptionValues:
    """Parse the arguments. Answer `--version` and `--help`, also if there are no arguments at all.

    `bare` is the text before the usage if there are no arguments.
    """
    values = options.parse(arguments, tell)
    if not arguments:
        values.usage(bare or options.purpose)
    if values.has("help"):
        values.usage(options.purpose)
    if values.has("version"):
        print(VERSION_SHOWN)
        raise Ended(0)
    return values


def read_or_usage(options: Options, arguments: Sequence[str]) -> OptionValues:
    """Parse as `read_arguments` does, for tools that print their usage after joptsimple's errors."""
    try:
        return read_arguments(options, arguments)
    except JavaError as error:
        tell_notes(error)
        raise Ended(1, str(error), usage=True) from None


class Cluster:
    """The cluster of a tool, like a Java admin client before its first request."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers

    @classmethod
    def create(cls, bootstrap: str, file: str | None, properties: Mapping[str, str] | None = None) -> Cluster:
        """Create a client's settings. Raises JavaError if no client can be created with them.

        `file` is the `--command-config` file. `properties` override it.
        """
        from kafka_client.errors import MillstreamError
        from millstream.terminal.servers import Servers

        names = [each.strip() for each in bootstrap.split(",")]
        if any(names) and not all(names):
            raise JavaError(
                f"{COMMON}.config.ConfigException",
                "Configuration 'bootstrap.servers' values must not be empty.",
            )
        named = ",".join(names)
        servers = Servers(named, {**read_client_properties(file), **(properties or {})})
        try:
            servers.client()
        except (MillstreamError, ValueError) as error:
            raise JavaError(f"{COMMON}.KafkaException", "Failed to create new KafkaAdminClient") from error
        return cls(servers)

    def run(self, work: Callable[[Session], Awaitable[T]], call: str = "listTopics", **arguments: Any) -> T:
        """Connect, and do the work. Raises JavaError for what a Java client would throw.

        `call`: the admin client's call that is the first to wait for a broker. `arguments` are the Client's.
        """
        import logging

        from kafka_client.errors import MillstreamError
        from millstream.terminal.command import run_loop
        from millstream.terminal.output import Format
        from millstream.terminal.session import Session

        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s: %(message)s")

        timeout = self._servers.properties.get("default.api.timeout.ms")
        if timeout is not None and timeout.strip().isdecimal():
            # Wait for a broker as long as Java's client does. Our default is shorter.
            arguments = {"connect_timeout_ms": int(timeout), **arguments}

        async def main() -> T:
            async with self._servers.client(**arguments) as client:
                return await work(Session(Format.TABLE, client, self._servers))

        try:
            return run_loop(main())
        except (MillstreamError, TimeoutError, ConnectionError) as error:
            thrown = java_error(error, call)
            thrown.from_future = True
            raise thrown from error


def read_client_properties(file: str | None) -> dict[str, str]:
    """Read a properties file such as `--command-config`. Raises JavaError if it does not exist."""
    from kafka_client.errors import ConfigError
    from kafka_client.java_properties import read_properties

    if file is None:
        return {}
    if not Path(file).exists():
        raise JavaError("java.nio.file.NoSuchFileException", file)
    try:
        return read_properties(Path(file), "--command-config")
    except ConfigError as error:
        raise java_error(error, "") from None
