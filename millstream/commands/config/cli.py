"""`millstream config`: what kafka-configs.sh does for topics, brokers and groups."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.commands.config.kind import Kind
from millstream.terminal.command import command
from millstream.terminal.completion import complete_groups, complete_topics
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True)

COLUMNS = ("key", "value", "source", "default", "read_only", "sensitive")


def _complete_names(context: typer.Context, incomplete: str) -> list[str]:
    match context.params.get("kind"):
        case Kind.TOPIC:
            return complete_topics(context, incomplete)
        case Kind.GROUP:
            return complete_groups(context, incomplete)
        case _:
            return []


KindArgument = Annotated[Kind, typer.Argument(metavar="topic|broker|group|broker-logger")]
Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        help="A topic, a group, or a broker's id; `default` for all brokers.",
        autocompletion=_complete_names,
    ),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Have the cluster check it, and do nothing.")]


@app.callback()
def _options() -> None:
    """Settings of topics, brokers and groups: describe, alter and delete them."""


@command(app)
async def describe(
    session: Session,
    *,
    kind: KindArgument,
    name: Name,
    all_keys: Annotated[
        bool, typer.Option("--all", help="Defaults, too, not only what somebody has set.")
    ] = False,
    key: Annotated[list[str] | None, typer.Option("--key", help="Only this key; repeatable.")] = None,
) -> None:
    """Show settings, where each comes from, and the default."""
    from millstream.commands.config.settings import described

    session.show(await described(session, kind, name, key, everything=all_keys), COLUMNS)


def _check_alter(
    *, settings: list[str] | None, append: list[str] | None, subtract: list[str] | None, **_: object
) -> None:
    from millstream.commands.config.settings import changes

    if not changes(settings or [], append or [], subtract or []):
        raise UsageError("nothing to do: give KEY=VALUE, --append or --subtract")


@command(app, check=_check_alter)
async def alter(
    session: Session,
    *,
    kind: KindArgument,
    name: Name,
    settings: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE...]")] = None,
    append: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Add to a list; repeatable.")
    ] = None,
    subtract: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Take out of a list; repeatable.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Set keys, or add to and take from those that are lists."""
    from millstream.commands.config.settings import change, changes

    requested = changes(settings or [], append or [], subtract or [])
    await change(session, kind, name, requested, dry_run=dry_run)


@command(app)
async def delete(
    session: Session,
    *,
    kind: KindArgument,
    name: Name,
    keys: Annotated[list[str], typer.Argument(metavar="KEY...")],
    dry_run: DryRun = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Take keys' own values away, so that the defaults hold again."""
    from millstream.commands.config.settings import change

    session.confirm(
        f"Have the defaults of {', '.join(keys)} hold for {kind.value} {name}?", yes=yes or dry_run
    )
    await change(session, kind, name, dict.fromkeys(keys), dry_run=dry_run)
