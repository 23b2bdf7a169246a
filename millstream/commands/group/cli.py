"""`millstream group`: what kafka-consumer-groups.sh does, with its options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from millstream.terminal.command import command
from millstream.terminal.completion import complete_groups, complete_topics
from millstream.terminal.ensemble import SomeZooKeeper, TheZooKeeper, ZooKeeperConfigFile
from millstream.terminal.session import Session, settle
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
IMPORTED = ("group", "topic", "partition", "zookeeper_offset", "current_offset", "new_offset", "left_out")

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


def _check_zookeeper(*, zookeeper: str | None, zk_tls_config_file: Path | None, **_: object) -> None:
    if zk_tls_config_file is not None and zookeeper is None:
        raise UsageError("--zk-tls-config-file says how ZooKeeper is reached: give --zookeeper as well")


@command(app, "list", check=_check_zookeeper, unless="zookeeper")
async def list_groups(
    session: Session,
    *,
    state: Annotated[
        list[str] | None, typer.Option("--state", help="Only groups in this state; repeatable.")
    ] = None,
    zookeeper: SomeZooKeeper = None,
    zk_tls_config_file: ZooKeeperConfigFile = None,
) -> None:
    """List groups."""
    states = {each.lower() for each in state or ()}
    if zookeeper is not None:
        from millstream.commands.group.old_consumers import list_rows

        rows = await list_rows(zookeeper, zk_tls_config_file)
        session.show([row for row in rows if not states or row["state"].lower() in states], LISTED)
        return
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
            if not states or group.state.lower() in states
        ),
        LISTED,
    )


def _check_describe(*, state: bool, **options: Any) -> None:
    _check_zookeeper(**options)
    if state and options["zookeeper"] is not None:
        raise UsageError(
            "--state does not go with --zookeeper: millstream group list has these groups' states"
        )


@command(app, check=_check_describe, unless="zookeeper")
async def describe(
    session: Session,
    *,
    names: SomeNames = None,
    state: Annotated[
        bool, typer.Option("--state", help="The groups themselves instead of their offsets.")
    ] = False,
    zookeeper: SomeZooKeeper = None,
    zk_tls_config_file: ZooKeeperConfigFile = None,
) -> None:
    """Describe groups (all, if none is named): offsets, lag and who has each partition."""
    if zookeeper is not None:
        from millstream.commands.group.old_consumers import find_groups, log_ends, offset_rows

        result = await find_groups(session, zookeeper, zk_tls_config_file, names)
        ends = await log_ends(session, result)
        session.show([row for group in result.groups for row in offset_rows(group, ends)], OFFSETS)
        settle(session, result.errors, result.group_count)
        return
    from millstream.commands.group.describe import lag_rows, read_groups, state_rows

    groups = await read_groups(session, names)
    if state:
        session.show(await state_rows(session, groups), STATES)
    else:
        session.show(await lag_rows(session, groups), OFFSETS)


@command(app, check=_check_zookeeper, unless="zookeeper")
async def members(
    session: Session,
    *,
    names: SomeNames = None,
    zookeeper: SomeZooKeeper = None,
    zk_tls_config_file: ZooKeeperConfigFile = None,
) -> None:
    """List the members of groups (of all, if none is named) and the partitions they have."""
    if zookeeper is not None:
        from millstream.commands.group import old_consumers

        result = await old_consumers.find_groups(session, zookeeper, zk_tls_config_file, names)
        session.show([row for group in result.groups for row in old_consumers.member_rows(group)], MEMBERS)
        settle(session, result.errors, result.group_count)
        return
    from millstream.commands.group.describe import member_rows, read_groups

    session.show(member_rows(await read_groups(session, names)), MEMBERS)


def _check_reset(
    *, topic: list[str] | None, all_topics: bool, dry_run: bool, execute: bool, **options: Any
) -> None:
    from millstream.commands.group.reset import Target

    if dry_run and execute:
        raise UsageError("--dry-run and --execute exclude each other")
    if bool(topic) + all_topics + (options["from_file"] is not None) != 1:
        raise UsageError("which partitions? --topic, --all-topics, or those of --from-file")
    del options["name"]
    Target.of(**options)


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
    from millstream.commands.group.reset import Target, plan, reset_rows, set_offsets

    target = Target.of(
        to_earliest, to_latest, to_current, to_offset, to_datetime, by_duration, shift_by, from_file
    )
    planned = await plan(session, name, topic or [], all_topics, target)
    if execute:
        await set_offsets(session, name, planned)
    session.show(reset_rows(name, planned), RESET)
    if not execute:
        session.tell("nothing was set: give --execute")


def _check_import(*, dry_run: bool, execute: bool, **_: object) -> None:
    if dry_run and execute:
        raise UsageError("--dry-run and --execute exclude each other")


@command(app, "import", check=_check_import, unless="zookeeper")
async def import_offsets(
    session: Session,
    *,
    name: Annotated[str, typer.Argument(metavar="GROUP")],
    zookeeper: TheZooKeeper,
    zk_tls_config_file: ZooKeeperConfigFile = None,
    topic: Topics = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show the offsets and set none.")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Set the offsets.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Also while the group has members in ZooKeeper.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before offsets are replaced.")] = False,
) -> None:
    """Commit the offsets that a group of consumers before Kafka 0.9 has in ZooKeeper. Without --execute they
    are shown and nothing is set.

    Brokers that nobody names are found in ZooKeeper. What is not in the log is left out, and the exit status
    is 6 then.
    """
    from millstream.commands.group import importing

    planned = await importing.import_offsets(
        session, name, zookeeper, zk_tls_config_file, topic or [], execute=execute, force=force, yes=yes
    )
    session.show(importing.import_rows(name, planned), IMPORTED)
    if not execute:
        session.tell("nothing was set: give --execute")
    importing.tell_left_out(session, planned, executed=execute)


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
