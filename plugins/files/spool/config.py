"""Settings of the spool source."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from connect.api import Config, ConfigError, at_least, setting
from plugins.files.row_config import CsvSettings, RowSettings


def _pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as e:
        raise ValueError(f"must be a regular expression: {e}") from None


class _FolderSettings(Config):
    """Settings of the folder; a class of its own so that these come first in the documentation."""

    topic: str = setting("The topic to write to.", importance="HIGH")
    input_path: str = setting("The folder whose files are read.", importance="HIGH")
    input_file_pattern: str = setting(
        "A regular expression for the whole name of a file, without its folder. Names that begin with a dot "
        "are never read.",
        default=".*",
        importance="HIGH",
        check=_pattern,
    )
    input_path_walk_recursively: bool = setting(
        "Whether the folders below are read, too. Links to folders are not followed.", default=False
    )
    format: Literal["auto", "csv", "jsonl", "json", "avro", "parquet", "text"] = setting(
        "What is in the files. jsonl: a JSON document a line. json: an array of documents, or one document "
        "after the other. auto goes by their names.",
        default="auto",
        importance="HIGH",
    )
    cleanup_policy: Literal["none", "move", "delete"] = setting(
        "What becomes of a file once its records are in the topic and its source offset is committed.",
        default="move",
        importance="HIGH",
    )
    finished_path: str | None = setting(
        "Where files that were read are moved to, with cleanup.policy=move.", default=None, importance="HIGH"
    )
    error_path: str | None = setting(
        "Where files that cannot be read are moved to, with halt.on.error=false and cleanup.policy=move or "
        "delete.",
        default=None,
    )
    halt_on_error: bool = setting(
        "Whether a file that cannot be read fails the task. A single bad row is none: for it there is "
        "errors.tolerance.",
        default=True,
    )
    file_minimum_age_ms: int = setting(
        "How long a file must have been unchanged, so that files which are still being written are not read.",
        default=2000,
        kind="LONG",
        check=at_least(0),
    )
    file_order: Literal["name", "oldest", "smallest"] = setting(
        "Which of the files that are there is read first.", default="name"
    )
    watch_interval_ms: int = setting(
        "How often the folder is looked through for new files; 0: at each poll.",
        default=1000,
        importance="LOW",
        check=at_least(0),
    )
    csv_schema: list[str] = setting(
        "Declared columns of CSV, such as `id:int64, price:decimal(2), day:date`; other columns are strings. "
        "Types: boolean, int8, int16, int32, int64, float, double, string, decimal(scale), date, time, "
        "timestamp. An empty cell is null except in strings.",
        default=[],
        group="CSV",
    )


class SpoolSourceConfig(CsvSettings, RowSettings, _FolderSettings):
    """Takes whole files of a folder: CSV, JSON, Avro, Parquet or text; plain, gzip or zstd.

    The source partition is `{"filename": name below the folder}`. The source offset is `{"file": identity,
    "position": byte, "line": number, "done": true at the end}`. The line of Avro, Parquet and JSON documents
    is the number of records. A restart goes on with the very next row. The files are shared out over
    `tasks.max` tasks by their names.
    """

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        super().check()
        if self.cleanup_policy == "move" and not self.finished_path:
            raise ConfigError("finished.path", "", "is required with cleanup.policy=move")
        if self.cleanup_policy != "none" and not self.halt_on_error and not self.error_path:
            raise ConfigError("error.path", "", "is required with halt.on.error=false")
        if self.csv_schema and self.csv_types == "infer":
            raise ConfigError("csv.types", "infer", "not together with csv.schema")
        for key, path in (("finished.path", self.finished_path), ("error.path", self.error_path)):
            if path and self._would_read(path):
                raise ConfigError(key, path, "must not be among the folders that are read")

    def _would_read(self, path: str) -> bool:
        folder, own = Path(path).resolve(), Path(self.input_path).resolve()
        return folder == own or (self.input_path_walk_recursively and own in folder.parents)
