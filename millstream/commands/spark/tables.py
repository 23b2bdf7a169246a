"""The rows that `millstream spark` shows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from millstream.terminal.output import Row
from plugins.spark.formats import format_of, open_table
from plugins.spark.sink_table import SinkTable

if TYPE_CHECKING:
    from plugins.spark.verification import VerifiedPartition

COLUMNS = ("table", "rows", "files", "bytes", "topics", "commits", "committed_at", "backfill_left")
VERIFIED = (
    "topic",
    "partition",
    "start",
    "end",
    "records",
    "rows",
    "missing",
    "repeated",
    "foreign",
    "purged",
    "result",
)
COMPACTED = ("rows", "files_before", "files_after", "bytes_before", "bytes_after", "deleted")
BACKFILLED = ("topic", "partition", "start", "end")


def tables_in(folder: Path) -> Iterator[SinkTable]:
    """Yield the table in the folder, or those in its subfolders."""
    if format_of(folder) is not None:
        yield open_table(folder.absolute())
    elif folder.is_dir():
        for each in sorted(folder.iterdir()):
            if format_of(each) is not None:
                yield open_table(each.absolute())


def table_row(table: SinkTable) -> Row:
    """Return what `spark tables` says of a table."""
    state = table.latest()
    files = table.files(state) if state is not None else []
    committed = None if state is None else datetime.fromtimestamp(state.committed_at_ms / 1000, UTC)
    positions = {} if state is None else state.positions
    return {
        "table": str(table.path),
        "rows": 0 if state is None else state.rows,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "topics": ",".join(positions),
        "commits": 0 if state is None else state.number,
        "committed_at": None if committed is None else committed.isoformat(timespec="milliseconds"),
        "backfill_left": sum(
            each.end - each.next for position in positions.values() for each in position.backfills.values()
        ),
    }


def offsets_expected(table: SinkTable) -> int:
    """Return how many offsets the table should have."""
    from plugins.spark.verification import spans

    state = table.latest()
    positions = {} if state is None else state.positions
    return sum(
        end - start
        for position in positions.values()
        for partition in position.offsets
        for start, end in spans(position, partition)
    )


def verified_row(result: VerifiedPartition) -> Row:
    """Return what `spark verify` says of a partition."""
    differences = result.differences
    reasons = [
        f"{name}, first at {first}"
        for name, count, first in (
            ("missing", differences.missing, differences.first_missing),
            ("repeated", differences.repeated, differences.first_repeated),
            ("foreign", differences.foreign, differences.first_foreign),
        )
        if count
    ]
    return {
        "topic": result.topic,
        "partition": result.partition,
        "start": result.start,
        "end": result.end,
        "records": result.records,
        "rows": result.rows,
        "missing": differences.missing,
        "repeated": differences.repeated,
        "foreign": differences.foreign,
        "purged": result.purged,
        "result": "; ".join([*filter(None, [result.problem]), *reasons]) or "each offset once",
    }
