"""The files of a log directory besides its logs: its identity, and the journal of the cluster's metadata."""

from __future__ import annotations

from pathlib import Path

from logd.metadata.journal_store import FILE_NAME
from logd.storage.identity import JOURNAL_KEY

ADOPT = {"millstream.adopt.log.dirs": "true"}
"""Settings of a start that begins a new journal in log directories whose journal is lost."""


def lose_journal(folder: Path) -> None:
    """Delete the journal. `meta.properties` still says that the log directory had one."""
    (folder / FILE_NAME).unlink()


def as_apache_kafka_leaves_it(*folders: Path) -> None:
    """Leave logs and topic ids, but remove the journal and every mention of it."""
    for folder in folders:
        (folder / FILE_NAME).unlink(missing_ok=True)
        meta = folder / "meta.properties"
        lines = meta.read_text().splitlines(keepends=True)
        meta.write_text("".join(line for line in lines if not line.startswith(JOURNAL_KEY)))
