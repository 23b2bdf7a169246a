from __future__ import annotations

from millstream.demo.checks import check_dropped, check_final_table
from millstream.demo.flights import DayTotals, Expected
from millstream.demo.topology import AirlineDay

EXPECTED = Expected(3, {("UA", "2013-01-01"): DayTotals(2, 1, 6)})
NAMES = {"UA": "United"}


def row(**changes: object) -> dict[tuple[str, str], AirlineDay]:
    facts = {
        "carrier": "UA",
        "name": "United",
        "day": "2013-01-01",
        "departures": 2,
        "cancellations": 1,
        "delay_minutes": 6,
        "mean_delay": 3.0,
    }
    return {("UA", "2013-01-01"): AirlineDay(**{**facts, **changes})}


def test_the_right_table_holds() -> None:
    assert check_final_table(EXPECTED, NAMES, row()).holds


def test_a_wrong_count_or_name_or_a_missing_or_extra_day_does_not() -> None:
    extra = {**row(), ("AA", "2013-01-02"): next(iter(row().values()))}

    for table in (row(departures=3), row(cancellations=0), row(delay_minutes=7), row(name="UA"), {}, extra):
        check = check_final_table(EXPECTED, NAMES, table)
        assert not check.holds
        assert "differ" in check.detail


def test_a_late_record_fails_the_demo() -> None:
    assert check_dropped(0).holds
    assert not check_dropped(1).holds
