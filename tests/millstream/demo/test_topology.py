from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from millstream.demo.topology import topology
from streams.testing import TopologyTestDriver

NEW_YEAR = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp() * 1000)
DECEMBER = int(datetime(2013, 12, 31, tzinfo=UTC).timestamp() * 1000)


def run(flights: list[tuple[int, int, float | None]]) -> dict[str, dict[str, Any]]:
    """Pipe flights of United (time, line, delay) through; the last row of each key."""
    with TopologyTestDriver(topology()) as driver:
        driver.pipe("airlines", b"UA", json.dumps({"carrier": "UA", "name": "United"}).encode(), 0)
        for time, line, delay in flights:
            value = {"carrier": "UA", "line": line, "dep_delay": delay, "dest": "IAH"}
            driver.pipe("flights", b"UA", json.dumps(value).encode(), time)
        output = driver.output_topic("airline-delays", value_serde=dict)
        return dict(output.read_key_values())


def test_departures_cancellations_and_delay_are_kept_per_day() -> None:
    table = run([(NEW_YEAR, 2, 10.0), (NEW_YEAR, 3, None), (NEW_YEAR, 4, -4.0)])

    assert table == {
        "UA 2013-01-01": {
            "carrier": "UA",
            "name": "United",
            "day": "2013-01-01",
            "departures": 2,
            "cancellations": 1,
            "delay_minutes": 6,
            "mean_delay": 3.0,
        }
    }


def test_a_row_sent_again_is_not_counted_again() -> None:
    rows: list[tuple[int, int, float | None]] = [(NEW_YEAR, 2, 10.0), (NEW_YEAR, 3, 20.0)]

    assert run(rows + rows) == run(rows)


def test_a_flight_eleven_months_late_still_counts() -> None:
    table = run([(DECEMBER, 2, 1.0), (NEW_YEAR, 3, 2.0)])

    assert table["UA 2013-01-01"]["departures"] == 1


def test_an_unlisted_airline_goes_by_its_code() -> None:
    with TopologyTestDriver(topology()) as driver:
        value = {"carrier": "XX", "line": 2, "dep_delay": 1}
        driver.pipe("flights", b"XX", json.dumps(value).encode(), NEW_YEAR)
        (row,) = dict(driver.output_topic("airline-delays", value_serde=dict).read_key_values()).values()

    assert row["name"] == "XX"
