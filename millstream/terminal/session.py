"""A command under way: its cluster, what it prints, and what it asks the person before the terminal."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from kafka_client.errors import MillstreamError
from millstream.terminal.output import Columns, Format, Row, show, show_one
from millstream.terminal.progress import Progress
from millstream.terminal.servers import Servers
from millstream.terminal.status import Declined, Partly

if TYPE_CHECKING:
    from kafka_client import Admin, Client


@dataclass(slots=True)
class Local:
    """Handed to every command that talks to no cluster (`millstream.terminal.command`).

    Data goes to stdout by `show` and `show_one`, all else to stderr by `tell`.
    """

    form: Format

    def show(self, rows: Iterable[Row], columns: Columns) -> None:
        """Print rows in the form that was asked for."""
        show(rows, self.form, columns)

    def show_one(self, row: Row, columns: Columns) -> None:
        """Print the one row there can be."""
        show_one(row, self.form, columns)

    def tell(self, text: str) -> None:
        """A line on stderr."""
        typer.echo(text, err=True)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something is destroyed; Declined unless `yes` was given or is answered.

        Nobody is asked where stdin is no terminal: there `--yes` is needed.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise Declined(f"{question} Nobody is here to be asked: give --yes.")
        if not typer.confirm(question, err=True):
            raise Declined("nothing was done")

    @contextmanager
    def progress(self, what: str, total: float | None = None, *, unit: str = "") -> Iterator[Progress]:
        """A bar on stderr with rate and time left, if stderr is a terminal; `total` None: not known."""
        with Progress.shown(what, total, unit) as progress:
            yield progress

    def tell_error(self, what: str, error: BaseException) -> None:
        """A line on stderr on what could not be done, where the others still are."""
        self.tell(f"{what}: {described(error)}")


@dataclass(slots=True)
class Session(Local):
    """Handed to every command that talks to a cluster; `client` is connected."""

    client: Client
    servers: Servers

    @property
    def admin(self) -> Admin:
        """Admin calls to the cluster."""
        from kafka_client import Admin

        return Admin(self.client)

    async def each(self, names: Iterable[str], work: Callable[[str], Awaitable[object]]) -> None:
        """Do `work` on every name, side by side. Some fail: those are told, and Partly is raised; all fail:
        the first one's error.
        """
        import asyncio

        wanted = list(dict.fromkeys(names))
        outcomes = await asyncio.gather(*(_outcome(work(name)) for name in wanted))
        errors = {name: error for name, error in zip(wanted, outcomes, strict=True) if error is not None}
        settle(self, errors, len(wanted))


async def _outcome(work: Awaitable[object]) -> MillstreamError | None:
    try:
        await work
    except MillstreamError as error:
        return error
    return None


def settle(local: Local, errors: Mapping[str, MillstreamError], asked: int) -> None:
    """What a command that did the same to many ends with: `errors` by what they were about, of so many."""
    if not errors:
        return
    (_, first), *others = errors.items()
    if len(errors) == asked:
        for name, error in others:
            local.tell_error(name, error)
        raise first
    for name, error in errors.items():
        local.tell_error(name, error)
    raise Partly(f"{len(errors)} of {asked} failed: {', '.join(errors)}")


def described(error: BaseException) -> str:
    """What an error says, for a person: never empty."""
    text: Any = str(error)
    return text or type(error).__name__
