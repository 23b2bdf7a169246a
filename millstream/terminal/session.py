"""A command under way: its cluster, what it prints, and what it asks the person before the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer

from logd.client import Admin, Client
from millstream.terminal.output import Format, Row, show, show_one
from millstream.terminal.progress import Progress
from millstream.terminal.servers import Servers
from millstream.terminal.status import Declined


@dataclass(slots=True)
class Session:
    """Handed to every command that talks to a cluster (`millstream.terminal.command`).

    `client` is connected. Data goes to stdout by `show` and `show_one`, all else to stderr by `tell`.
    """

    client: Client
    servers: Servers
    form: Format

    @property
    def admin(self) -> Admin:
        """Admin calls to the cluster."""
        return Admin(self.client)

    def show(self, rows: Iterable[Row], columns: Sequence[str]) -> None:
        """Print rows in the form that was asked for."""
        show(rows, self.form, columns)

    def show_one(self, row: Row, columns: Sequence[str]) -> None:
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


def described(error: BaseException) -> str:
    """What an error says, for a person: never empty."""
    text: Any = str(error)
    return text or type(error).__name__
