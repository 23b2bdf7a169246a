"""`millstream group`: what kafka-consumer-groups.sh does, with its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from millstream.terminal.command import command
from millstream.terminal.completion import complete_groups, complete_topics
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True)

LISTED = ("group", "state", "type", "protocol_type")
STATES = ("group", "coordinator", "assignment_strategy", "state", "members")
OFFSETS = (
    "group",
    "topic",
    "partition",
    "current_offset",
    "log_end_offset",
    "lag",
    "consumer_id",
    "host",
    "client_id",
)
MEMBERS = ("group", "consumer_id", "host", "client_id", "group_instance_id", "partitions", "assignment")
RESET = ("group", "topic", "partition", "new_offset")

Name = Annotated[str, typer.Argument(metavar="GROUP", autocompletion=complete_groups)]
Names = Annotated[list[str], typer.Argument(metavar="GROUP...", autocompletion=complete_groups)]
SomeNames = Annotated[list[str] | None, typer.Argument(metavar="[GROUP...]", autocompletion=complete_groups)]

Topics = Annotated[
    list[str] | None,
    typer.Option(
        "--topic",
        metavar="TOPIC[:PARTITION,...]",
        help="Only the offsets of these; repeatable.",
        autocompletion=complete_topics,
    ),
]


@app.callback()
def _options() -> None:
    """Groups of consumers: list and describe them, see members and lag, set offsets, delete them."""


@command(app, "list")
async def list_groups(
    session: Session,
    *,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only groups in this state; repeatable.")
    ] = None,
) -> None:
    """List groups."""
    wanted = {each.lower() for each in state or ()}
    groups = sorted(await session.admin.list_groups(), key=lambda group: group.group_id)
    session.show(
        (
            {
                "group": group.group_id,
                "state": group.state or None,
                "type": group.type or None,
                "protocol_type": group.protocol_type or None,
            }
            for group in groups
            if not wanted or group.state.lower() in wanted
        ),
        LISTED,
    )


@command(app)
async def describe(
    session: Session,
    *,
    names: SomeNames = None,
    state: Annotated[
        bool, typer.Option("--state", help="The groups themselves instead of their offsets.")
    ] = False,
) -> None:
    """Describe groups (all, if none is named): offsets, lag and who has each partition."""
    from millstream.group.describe import lag_rows, read_groups, state_rows

    groups = await read_groups(session, names)
    if state:
        session.show(await state_rows(session, groups), STATES)
    else:
        session.show(await lag_rows(session, groups), OFFSETS)


@command(app)
async def members(session: Session, *, names: SomeNames = None) -> None:
    """The members of groups (of all, if none is named) and the partitions they have."""
    from millstream.group.describe import member_rows, read_groups

    session.show(member_rows(await read_groups(session, names)), MEMBERS)


def _check_reset(
    *, topic: list[str] | None, all_topics: bool, dry_run: bool, execute: bool, **given: Any
) -> None:
    from millstream.group.reset import Target

    if dry_run and execute:
        raise UsageError("--dry-run and --execute exclude each other")
    if bool(topic) + all_topics + (given["from_file"] is not None) != 1:
        raise UsageError("which partitions? --topic, --all-topics, or those of --from-file")
    del given["name"]
    Target.of(**given)


@command(app, "reset-offsets", check=_check_reset)
async def reset_offsets(
    session: Session,
    *,
    name: Name,
    topic: Topics = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="All partitions that the group has offsets of.")
    ] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the first record.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the last record.")] = False,
    to_current: Annotated[bool, typer.Option("--to-current", help="To where the group is.")] = False,
    to_offset: Annotated[int | None, typer.Option(min=0, help="To this offset.")] = None,
    to_datetime: Annotated[
        str | None, typer.Option(metavar="TIME", help="To the first record since, as 2013-01-31T12:00:00.")
    ] = None,
    by_duration: Annotated[
        str | None, typer.Option(metavar="PnDTnHnMnS", help="To the first record of as long ago, as PT15M.")
    ] = None,
    shift_by: Annotated[int | None, typer.Option(help="By so many records, back if negative.")] = None,
    from_file: Annotated[
        Path | None, typer.Option(metavar="CSV", help="To lines of topic,partition,offset.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the offsets and set none.")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Set the offsets.")] = False,
) -> None:
    """Set the offsets of a group without members. Without --execute they are shown and nothing is set."""
    from millstream.group.reset import Target, plan, reset_rows, set_offsets

    target = Target.of(
        to_earliest, to_latest, to_current, to_offset, to_datetime, by_duration, shift_by, from_file
    )
    planned = await plan(session, name, topic or [], all_topics, target)
    if execute:
        await set_offsets(session, name, planned)
    session.show(reset_rows(name, planned), RESET)
    if not execute:
        session.tell("nothing was set: give --execute")


@command(app)
async def delete(
    session: Session,
    *,
    names: Names,
    topic: Topics = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete groups without members, or their offsets of topics that no member reads."""
    from millstream.terminal.partitions import find_partitions

    tps = await find_partitions(session, topic) if topic else []
    what = f"the offsets of {', '.join(topic)} in" if topic else "with all offsets"
    session.confirm(
        f"Delete {what} {', '.join(names)}?" if topic else f"Delete {', '.join(names)} {what}?", yes=yes
    )

    async def work(name: str) -> None:
        if topic:
            await session.admin.delete_offsets(name, tps)
        else:
            await session.admin.delete_groups([name])
        session.tell(f"{name}: deleted")

    await session.each(names, work)
