"""`millstream partition`: what kafka-leader-election.sh and kafka-reassign-partitions.sh do."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from millstream.terminal.command import command
from millstream.terminal.completion import complete_topics
from millstream.terminal.session import Session
from millstream.terminal.status import UsageError

app = typer.Typer(add_completion=False, no_args_is_help=True)

ELECTED = ("topic", "partition", "result", "error")
MOVES = ("topic", "partition", "replicas", "adding", "removing")


class Election(StrEnum):
    """Kafka's election types."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


SomePartitions = Annotated[
    list[str] | None,
    typer.Argument(metavar="[TOPIC[:PARTITION,...]...]", autocompletion=complete_topics),
]


@app.callback()
def _options() -> None:
    """Partitions: elect their leaders, move them to other brokers."""


def _check_elect(*, partitions: list[str] | None, all_topic_partitions: bool, **_: object) -> None:
    if bool(partitions) == all_topic_partitions:
        raise UsageError("which partitions? Name them, or give --all-topic-partitions")


@command(app, check=_check_elect)
async def elect(
    session: Session,
    *,
    partitions: SomePartitions = None,
    election_type: Annotated[
        Election,
        typer.Option(help="preferred: the first replica, if in sync; unclean: any, what it lacks is lost."),
    ] = Election.PREFERRED,
    all_topic_partitions: Annotated[
        bool, typer.Option("--all-topic-partitions", help="Wherever it is needed.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before an unclean election.")] = False,
) -> None:
    """Have leaders elected."""
    from millstream.commands.partition.elect import elect_leaders

    if election_type is Election.UNCLEAN:
        session.confirm("Elect unclean leaders? Records that they lack are lost.", yes=yes)
    await elect_leaders(session, election_type, partitions, ELECTED)


def _check_reassign(
    *,
    moves: list[str] | None,
    reassignment_json_file: Path | None,
    cancel: bool,
    throttle: int | None,
    **_: object,
) -> None:
    from millstream.commands.partition.reassign import read_moves

    if cancel and throttle is not None:
        raise UsageError("--throttle goes with moves, not with --cancel")
    if bool(moves) == (reassignment_json_file is not None):
        raise UsageError("what moves where? TOPIC:PARTITION=BROKER,... or --reassignment-json-file")
    read_moves(moves or [], reassignment_json_file, cancel=cancel)


@command(app, check=_check_reassign)
async def reassign(
    session: Session,
    *,
    moves: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC:PARTITION=BROKER,...]...")] = None,
    reassignment_json_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Moves in the JSON of Kafka's tool.")
    ] = None,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Stop the moves under way of these partitions: TOPIC:PARTITION.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would move where, and do nothing.")
    ] = False,
    wait: Annotated[bool, typer.Option("--wait", help="End when all moves are done.")] = False,
    throttle: Annotated[
        int | None,
        typer.Option(
            metavar="BYTES",
            min=1,
            help="Copy so many a second at most, each broker: with --wait until all is done, else until "
            "`partition unthrottle`.",
        ),
    ] = None,
) -> None:
    """Move partitions to other brokers, the preferred leader first; or cancel moves."""
    from millstream.commands.partition.reassign import begin, planned, read_moves, throttled, wait_for

    requested = read_moves(moves or [], reassignment_json_file, cancel=cancel)
    rows = await planned(session, requested)
    if not dry_run:
        async with throttled(session, requested, rows, throttle, until_end=wait):
            await begin(session, requested)
            if wait:
                await wait_for(session, list(requested))
    session.show(rows, ("topic", "partition", "replicas", "new_replicas"))


@command(app)
async def unthrottle(
    session: Session,
    *,
    topics: Annotated[list[str], typer.Argument(metavar="TOPIC...", autocompletion=complete_topics)],
) -> None:
    """Take away the throttles of moves: of these topics, and of all brokers."""
    from millstream.commands.partition.reassign import unthrottle_all

    await unthrottle_all(session, topics)


@command(app)
async def reassignments(session: Session) -> None:
    """List the moves under way."""
    under_way = await session.admin.list_partition_reassignments()
    session.show(
        (
            {
                "topic": tp.topic,
                "partition": tp.partition,
                "replicas": list(move.replicas),
                "adding": list(move.adding),
                "removing": list(move.removing),
            }
            for tp, move in sorted(under_way.items())
        ),
        MOVES,
    )
