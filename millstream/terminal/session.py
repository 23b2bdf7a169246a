"""The session of a running command: its cluster, its output, and its questions to the user."""

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
    """The output of a command that talks to no cluster (`millstream.terminal.command`).

    Data goes to stdout by `show` and `show_one`, all else to stderr by `tell`.
    """

    form: Format

    def show(self, rows: Iterable[Row], columns: Columns) -> None:
        """Print rows in the requested form."""
        show(rows, self.form, columns)

    def show_one(self, row: Row, columns: Columns) -> None:
        """Print the only row."""
        show_one(row, self.form, columns)

    def tell(self, text: str) -> None:
        """Print a line on stderr."""
        typer.echo(text, err=True)

    def confirm(self, question: str, *, yes: bool) -> None:
        """Ask before something is destroyed. Raises Declined unless `yes` is set or the user agrees.

        Without a terminal as stdin `--yes` is required.
        """
        if yes:
            return
        if not sys.stdin.isatty():
            raise Declined(f"{question} Nobody is here to be asked: give --yes.")
        if not typer.confirm(question, err=True):
            raise Declined("nothing was done")

    @contextmanager
    def progress(self, what: str, total: float | None = None, *, unit: str = "") -> Iterator[Progress]:
        """Show a bar on stderr with rate and remaining time, if stderr is a terminal;

        `total` None: unknown.
        """
        with Progress.shown(what, total, unit) as progress:
            yield progress

    def tell_error(self, what: str, error: BaseException) -> None:
        """Print a line on stderr about a part of the work that failed."""
        self.tell(f"{what}: {described(error)}")


@dataclass(slots=True)
class Session(Local):
    """The session of a command that talks to a cluster; `client` is connected."""

    client: Client
    servers: Servers

    @property
    def admin(self) -> Admin:
        """An admin client of the cluster."""
        from kafka_client import Admin

        return Admin(self.client)

    async def each(self, names: Iterable[str], work: Callable[[str], Awaitable[object]]) -> None:
        """Do `work` on every name concurrently.

        If some fail, their errors are printed and Partly is raised; if all fail, the first error is raised.
        """
        import asyncio

        distinct = list(dict.fromkeys(names))
        outcomes = await asyncio.gather(*(_outcome(work(name)) for name in distinct))
        errors = {name: error for name, error in zip(distinct, outcomes, strict=True) if error is not None}
        settle(self, errors, len(distinct))


async def _outcome(work: Awaitable[object]) -> MillstreamError | None:
    try:
        await work
    except MillstreamError as error:
        return error
    return None


def settle(local: Local, errors: Mapping[str, MillstreamError], count: int) -> None:
    """Report the errors of a command on `count` items, by item.

    Raises Partly if some failed, and the first error if all failed.
    """
    if not errors:
        return
    (_, first), *others = errors.items()
    if len(errors) == count:
        for name, error in others:
            local.tell_error(name, error)
        raise first
    for name, error in errors.items():
        local.tell_error(name, error)
    raise Partly(f"{len(errors)} of {count} failed: {', '.join(errors)}")


def described(error: BaseException) -> str:
    """Return an error's text for the user; never empty."""
    text: Any = str(error)
    return text or type(error).__name__
