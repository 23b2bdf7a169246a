"""What stands in a log directory besides logs: whose it is, and the journal of the cluster's metadata."""

from __future__ import annotations

from pathlib import Path

from logd.metadata.journal_store import FILE_NAME
from logd.storage.identity import JOURNAL_KEY

ADOPT = {"millstream.adopt.log.dirs": "true"}
"""For a start that begins a new journal over folders whose own is lost."""


def lose_journal(folder: Path) -> None:
    """The journal is gone, and the folder says still that there was one."""
    (folder / FILE_NAME).unlink()


def as_apache_kafka_leaves_it(*folders: Path) -> None:
    """Logs and topic ids are there; our journal is not, nor a word of it."""
    for folder in folders:
        (folder / FILE_NAME).unlink(missing_ok=True)
        meta = folder / "meta.properties"
        lines = meta.read_text().splitlines(keepends=True)
        meta.write_text("".join(line for line in lines if not line.startswith(JOURNAL_KEY)))
