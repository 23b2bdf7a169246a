"""A table that the sink writes, whatever its format: what the sink and its tools ask of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from plugins.spark.manifest import DataFile, Manifest

DATA = "data"
"""The folder of the files that the sink writes, below the table's."""


class SinkTable(Protocol):
    """A table with positions, in a local folder, that one writer at a time adds to."""

    @property
    def path(self) -> Path:
        """The table's folder."""

    @property
    def batch_column(self) -> str:
        """The name in the batches' folders: `data/<name>=00000002-1f3a9c`."""

    def create(self, columns: Callable[[], str], partition_by: Sequence[str]) -> None:
        """Create the table if it is missing. `columns` returns them in Spark's JSON form, hidden ones too."""

    def latest(self) -> Manifest | None:
        """Return the table's state and positions, or None if no sink has claimed it."""

    def files(self, state: Manifest | None = None) -> list[DataFile]:
        """Return the files of the table as of `state`, or of now."""

    def newest_files(self, count: int) -> list[DataFile]:
        """Return at most `count` of the table's files, those that were committed last."""

    def folders(self, file: DataFile) -> tuple[str, ...]:
        """Return the folders that name the file's partition: `month=2013-01` …"""

    def partition_columns(self) -> list[str] | None:
        """Return the columns in the folder names of the table's files, or None if none are settled."""

    def claim(self) -> Manifest:
        """Become the table's writer: from now on no other writer's commit succeeds. Returns the new state."""

    def update(self, writer: str, build: Callable[[Manifest], Manifest]) -> Manifest:
        """Commit what `build` makes of the newest state. Raises Fenced if another writer has a claim."""

    def batch_directory(self, number: int) -> Path:
        """Return a new folder's path, not created yet, for the files of commit `number`."""

    def collect_orphans(self, claim: Manifest) -> int:
        """Remove what writers before `claim` left behind. Return how many folders and files."""

    def delete_removed(self, before_ms: int) -> int:
        """Delete replaced files that were removed from the table before this time. Return how many."""
