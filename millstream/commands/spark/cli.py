"""`millstream spark`: list, verify, compact and backfill the tables of the Spark sink."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from millstream.terminal.command import command, local_command
from millstream.terminal.session import Local, Session
from millstream.terminal.status import NotFound, Unhealthy, UsageError

if TYPE_CHECKING:
    from plugins.spark.sink_table import SinkTable

app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Tables of the Spark sink: list, verify, compact them."
)

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help="The table's folder.")]


@local_command(app)
def tables(
    local: Local,
    *,
    folders: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="Tables, or folders that have tables in them.")
    ],
) -> None:
    """List tables with their rows, files and last commit."""
    from millstream.commands.spark.tables import COLUMNS, table_row, tables_in

    local.show([table_row(table) for folder in folders for table in tables_in(folder)], COLUMNS)


@command(app)
async def verify(session: Session, *, table: TablePath) -> None:
    """Check against the log that a table has each offset once; the exit status is 7 if it has not.

    The records in the log are compared with the rows in the files. Offsets that retention has removed from
    the log are only checked for repetitions.
    """
    from millstream.commands.spark.tables import VERIFIED, offsets_expected, verified_row
    from plugins.spark.verification import verify_table

    opened = _opened(table)
    with session.progress("read", offsets_expected(opened), unit=" offsets") as progress:
        results = await verify_table(session.client, opened, advance=progress.advance)
    session.show(map(verified_row, results), VERIFIED)
    different = [f"{each.topic}-{each.partition}" for each in results if not each.is_exact]
    if different:
        raise Unhealthy(f"{table}: not each offset once: {', '.join(different)}")


@local_command(app)
def compact(
    local: Local,
    *,
    table: TablePath,
    target_bytes: Annotated[
        int, typer.Option(min=1, help="Size of the files to make; larger than half of it is left alone.")
    ] = 128 << 20,
    delete_after: Annotated[
        str,
        typer.Option(
            metavar="DURATION", help="Delete files that were replaced longer ago, such as P7D or PT1H."
        ),
    ] = "P7D",
) -> None:
    """Rewrite small files as larger ones, in one commit, also while the sink is at work."""
    from millstream.commands.spark.tables import COMPACTED
    from millstream.terminal.times import duration_ms
    from plugins.spark.compaction import compact as compact_table

    opened = _opened(table)
    before_ms = int(time.time() * 1000) - duration_ms(delete_after, "--delete-after")
    done = compact_table(opened, target_bytes=target_bytes)
    deleted = opened.delete_removed(before_ms)
    row = {
        "rows": done.rows,
        "files_before": done.files_before,
        "files_after": done.files_after,
        "bytes_before": done.bytes_before,
        "bytes_after": done.bytes_after,
        "deleted": deleted,
    }
    local.show_one(row, COMPACTED)


@command(app)
async def backfill(
    session: Session,
    *,
    table: TablePath,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Add records from this time on: 2013-01-31T12:00Z.")
    ],
) -> None:
    """Have the table's sink add records from before the table's first offsets, beside its live flow.

    The sink, which must be running, adds them batch by batch. `spark tables` shows how many are left.
    """
    from millstream.commands.spark.tables import BACKFILLED
    from millstream.terminal.times import timestamp_ms
    from plugins.spark.backfilling import request_backfill

    opened = _opened(table)
    moment = timestamp_ms(since, "--from")
    try:
        requested = await request_backfill(session.client, opened, moment, int(time.time() * 1000))
    except ValueError as e:
        raise UsageError(str(e)) from None
    rows = [
        {"topic": tp.topic, "partition": tp.partition, "start": each.start, "end": each.end}
        for tp, each in sorted(requested.items())
    ]
    session.show(rows, BACKFILLED)
    if not rows:
        session.tell(f"{table}: no records from {since} on before the table's first offsets")


def _opened(path: Path) -> SinkTable:
    from plugins.spark.formats import open_table

    table = open_table(path.absolute())
    if table.latest() is None:
        raise NotFound(f"{path}: no table of the Spark sink: it has no commit of one")
    return table
