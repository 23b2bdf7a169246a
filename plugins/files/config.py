"""Settings of the files source and the files sink."""

from __future__ import annotations

from typing import Literal

from connect.api import Config, ConfigError, at_least, setting
from plugins.files.row_config import CsvSettings, RowSettings


class _FilesSettings(Config):
    """Settings of what is read; a class of its own so that these come first in the documentation."""

    topic: str = setting("The topic to write to.", importance="HIGH")
    file: str | None = setting("One file to read.", default=None, importance="HIGH")
    files: list[str] = setting(
        "Files to read: paths and patterns (`data/*.csv`, `**` for folders below).",
        default=[],
        importance="HIGH",
    )
    format: Literal["auto", "csv", "json", "text"] = setting(
        "What is in the files; auto goes by their names.", default="auto", importance="HIGH"
    )
    stop_at_eof: bool = setting(
        "End with the files instead of waiting for them to grow and for new ones.", default=False
    )
    watch_interval_ms: int = setting(
        "How often patterns are looked through for new files; 0: at each poll.",
        default=5000,
        importance="LOW",
        check=at_least(0),
    )


class FilesSourceConfig(CsvSettings, RowSettings, _FilesSettings):
    """Reads files into a topic: CSV, JSON lines or text; plain, gzip or a zip archive of one file.

    The source partition is `{"filename": path}`. The source offset is `{"position": byte, "line": number,
    "file": identity}` in the uncompressed file: a restart goes on with the very next row. The files that
    patterns match later are shared out over `tasks.max` tasks by their names, and read without a restart. A
    file is known again by its inode and first bytes. If another file has its name (rotation), the old one is
    read to its end under its new name, and then the new one from its head. A file that is cut back is read
    from its head.
    """

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        if bool(self.file) == bool(self.files):
            raise ConfigError("file", self.file or "", "set exactly one of file and files")
        super().check()
        if self.format == "text" and (self.key_field or self.timestamp_field or self.line_field):
            raise ConfigError("format", "text", "has no fields for key.field, timestamp.field and line.field")


class FilesSinkConfig(Config):
    """Writes topics into files: JSON lines, Avro or Parquet.

    A file holds consecutive records of one partition and is named after the offset where it begins and the
    topic's id, `<path>/<topic>/<topic>+<partition>+<offset>+<id>.jsonl`. Files are cut at multiples of
    `file.records.max` and wherever offsets were committed. So records that come again after a crash land in
    files of the same names: nothing is there twice. A topic that is deleted and made again has another id,
    and overwrites nothing. Files are written in the hidden folder `<path>/.claims`, where each partition's
    writer has a folder of its own, and renamed when they are whole. The next writer removes that folder: a
    worker that stood still meanwhile overwrites nothing. A topic in a path is for one connector.
    """

    path: str = setting("The folder to write to; made if it is not there.", importance="HIGH")
    format: Literal["json", "avro", "parquet"] = setting(
        "What to write; avro needs values with a schema.", default="json", importance="HIGH"
    )
    content: Literal["value", "record"] = setting(
        "Only values (null ones are left out), or topic, partition, offset, timestamp, key, value, headers.",
        default="value",
    )
    file_records_max: int = setting(
        "A file covers at most this many offsets.", default=10_000, check=at_least(1)
    )
    file_interval_ms: int = setting(
        "How long a file takes records. 0: up to the next commit, every `offset.flush.interval.ms`. Records "
        "wait in memory, their offsets are committed with the file.",
        default=0,
        kind="LONG",
        check=at_least(0),
    )
    file_bytes_max: int = setting(
        "About how many bytes end a file early, by a commit; 0: no bound. Of Avro files the values count as "
        "JSON, which takes about as long as writing it.",
        default=0,
        kind="LONG",
        check=at_least(0),
    )
    parquet_compression: Literal["none", "snappy", "gzip", "lz4", "zstd"] = setting(
        "Compression inside Parquet files.", default="zstd", importance="LOW"
    )
