"""`millstream topic`: what kafka-topics.sh and kafka-get-offsets.sh do, with their options."""

from __future__ import annotations

from typing import Annotated

import typer

from millstream.terminal.command import command
from millstream.terminal.completion import complete_topics
from millstream.terminal.session import Session
from millstream.terminal.status import NotFound, UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True)

LISTED = ("topic", "partitions", "replication_factor", "internal")
BOUNDS = ("topic", "partition", "earliest", "latest", "records")
OFFSETS = ("topic", "partition", "offset", "timestamp")

Name = Annotated[str, typer.Argument(metavar="TOPIC", autocompletion=complete_topics)]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC...", autocompletion=complete_topics)]
SomeNames = Annotated[list[str] | None, typer.Argument(metavar="[TOPIC...]", autocompletion=complete_topics)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Have the cluster check it, and do nothing.")]


@app.callback()
def _options() -> None:
    """Topics: create, list, describe, grow and delete them, and ask for their offsets."""


def _check_create(
    *, partitions: int | None, replication_factor: int | None, replica_assignment: str | None, **_: object
) -> None:
    if replica_assignment is not None and (partitions, replication_factor) != (None, None):
        raise UsageError("--replica-assignment says how many partitions and replicas: leave these out")


@command(app, check=_check_create)
async def create(
    session: Session,
    *,
    names: Annotated[list[str], typer.Argument(metavar="TOPIC...")],
    partitions: Annotated[
        int | None, typer.Option(min=1, help="How many partitions; the broker's num.partitions otherwise.")
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="How many replicas of each; the broker's default otherwise.")
    ] = None,
    config: Annotated[
        list[str] | None, typer.Option("--config", metavar="KEY=VALUE", help="A setting; repeatable.")
    ] = None,
    replica_assignment: Annotated[
        str | None,
        typer.Option(
            metavar="1:2,2:3", help="Brokers of each partition, with colons; partitions, with commas."
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="One that is there is fine.")
    ] = False,
    dry_run: DryRun = False,
) -> None:
    """Create topics."""
    from millstream.commands.topic.create import new_topic, refused

    async def work(name: str) -> None:
        topic = new_topic(name, partitions, replication_factor, config or [], replica_assignment)
        with refused(topic):
            await session.admin.create_topics([topic], validate_only=dry_run, exist_ok=if_not_exists)
        session.tell(f"{name}: could be created" if dry_run else f"{name}: created")

    await session.each(names, work)


@command(app, "list")
async def list_topics(
    session: Session,
    *,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Without those that the brokers keep for themselves.")
    ] = False,
) -> None:
    """List topics."""
    topics = await session.admin.list_topics()
    session.show(
        (
            {
                "topic": name,
                "partitions": topic.partition_count,
                "replication_factor": max((len(p.replicas) for p in topic.partitions.values()), default=0),
                "internal": topic.is_internal,
            }
            for name, topic in sorted(topics.items())
            if not (exclude_internal and topic.is_internal)
        ),
        LISTED,
    )


@command(app)
async def describe(
    session: Session,
    *,
    names: SomeNames = None,
    under_replicated_partitions: Annotated[
        bool,
        typer.Option("--under-replicated-partitions", help="Only partitions that lack in-sync replicas."),
    ] = False,
    under_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--under-min-isr-partitions",
            help="Only partitions with less in-sync replicas than min.insync.replicas.",
        ),
    ] = False,
    at_min_isr_partitions: Annotated[
        bool,
        typer.Option(
            "--at-min-isr-partitions", help="Only partitions with just as many as min.insync.replicas."
        ),
    ] = False,
    unavailable_partitions: Annotated[
        bool,
        typer.Option(
            "--unavailable-partitions", help="Only partitions without a leader, or whose leader is away."
        ),
    ] = False,
    exclude_internal: Annotated[
        bool, typer.Option("--exclude-internal", help="Without those that the brokers keep for themselves.")
    ] = False,
) -> None:
    """Describe topics (all, if none is named): id, settings of their own, leaders and replicas."""
    from millstream.commands.topic.describe import Only, describe_topics, show_topics

    only = Only(
        under_replicated=under_replicated_partitions,
        under_min_isr=under_min_isr_partitions,
        at_min_isr=at_min_isr_partitions,
        unavailable=unavailable_partitions,
    )
    show_topics(session, await describe_topics(session, names or None, only, exclude_internal), only)


@command(app)
async def alter(
    session: Session,
    *,
    names: Names,
    partitions: Annotated[int, typer.Option(min=1, help="How many partitions there are to be.")],
    dry_run: DryRun = False,
) -> None:
    """Give topics more partitions. Keys may go to others from then on. Settings: millstream config alter."""

    async def work(name: str) -> None:
        await session.admin.create_partitions({name: partitions}, validate_only=dry_run)
        session.tell(f"{name}: {'could have' if dry_run else 'has'} {partitions} partitions")

    await session.each(names, work)


@command(app)
async def delete(
    session: Session,
    *,
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="One that is not there is fine.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Delete topics with all their records."""
    existing = (await session.client.metadata(names, refresh=True, allow_missing=True)).topics
    missing = [name for name in names if name not in existing]
    if missing and not if_exists:
        raise NotFound(f"there is no topic {', '.join(missing)}; nothing was deleted")
    if not existing:
        return
    session.confirm(f"Delete {', '.join(sorted(existing))} with all records?", yes=yes)

    async def work(name: str) -> None:
        await session.admin.delete_topics([name], missing_ok=if_exists)
        session.tell(f"{name}: deleted")

    await session.each(sorted(existing), work)


@command(app)
async def offsets(
    session: Session,
    *,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[TOPIC[:PARTITION,...]...]", autocompletion=complete_topics),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="earliest, latest, max-timestamp, ms, or 2013-01-31T12:00:00[Z|+01:00]."
        ),
    ] = None,
) -> None:
    """Show offsets of topics (all, if none is named): the first and the next one, or those of a time."""
    from millstream.commands.topic.offsets import at, first_and_next, wanted_partitions

    tps = await wanted_partitions(session, names)
    if time is None:
        session.show(await first_and_next(session, tps), BOUNDS)
    else:
        session.show(await at(session, tps, time), OFFSETS)
