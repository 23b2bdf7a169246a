"""Settings that sources of files share: of rows, and of CSV."""

from __future__ import annotations

import codecs
from typing import Literal

from connect.api import Config, ConfigError, at_least, setting


def _at_most_one_character(text: str) -> None:
    if len(text) > 1:
        raise ValueError("must be one character, or empty")


def _line_encoding(name: str) -> None:
    try:
        codecs.lookup(name)
    except LookupError:
        raise ValueError("is no character encoding") from None
    if "\n".encode(name) != b"\n":
        raise ValueError("must be an encoding that ends lines in the byte 10 (UTF-8, ISO-8859-1 ...)")


class RowSettings(Config):
    """Settings of the records that rows become."""

    key_field: str | None = setting("The field whose value is the record's key.", default=None)
    timestamp_field: str | None = setting(
        "Where a record's time comes from: a field, or a template such as `{year}-{month}-{day}` "
        "(the same as `year,month,day`). A date is midnight UTC.",
        default=None,
    )
    timestamp_format: str = setting(
        "How to read it: auto (ISO date or time, or epoch ms), epoch_ms, epoch_s, or a strptime pattern.",
        default="auto",
    )
    timestamp_constant: int | None = setting(
        "The same time for every record, ms since the epoch.", default=None, kind="LONG"
    )
    line_field: str | None = setting(
        "A field to add to every record: the number of the line its row ends on. Rows that come again after "
        "a crash have the same number, so that readers can tell.",
        default=None,
    )
    encoding: str = setting("The files' character encoding.", default="UTF-8", check=_line_encoding)
    batch_size: int = setting("Records per poll at most.", default=2000, check=at_least(1))

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        super().check()
        if self.timestamp_field and self.timestamp_constant is not None:
            raise ConfigError(
                "timestamp.constant", self.timestamp_constant, "not together with timestamp.field"
            )


class CsvSettings(Config):
    """Settings of CSV."""

    csv_delimiter: str = setting("What stands between cells; `\\t` is a tab.", default=",", group="CSV")
    csv_quote: str = setting(
        "What may surround a cell; empty: nothing.", default='"', group="CSV", check=_at_most_one_character
    )
    csv_header: bool = setting("Whether the first row names the fields.", default=True, group="CSV")
    csv_fields: list[str] = setting("The fields' names, instead of the header's.", default=[], group="CSV")
    csv_types: Literal["string", "infer"] = setting(
        "Whether cells stay text, or become numbers where they look like one. A whole number beyond 64 bits "
        "stays text.",
        default="string",
        group="CSV",
    )
    csv_null: str | None = setting(
        "Cells that stand for null, with commas between: `NA,` is NA and the empty cell. "
        "Default: the empty cell with infer, none with string.",
        default=None,
        group="CSV",
    )

    def check(self) -> None:
        """Raise ConfigError for settings that do not fit together."""
        super().check()
        if self.csv_delimiter == "\\t":
            self.csv_delimiter = "\t"
        if len(self.csv_delimiter) != 1:
            raise ConfigError("csv.delimiter", self.csv_delimiter, "must be one character")
        if self.csv_quote == self.csv_delimiter:
            raise ConfigError("csv.quote", self.csv_quote, "must differ from csv.delimiter")
        if not self.csv_header and not self.csv_fields:
            raise ConfigError("csv.fields", "", "is required when csv.header=false")
