"""The demo's streams application: departures, cancellations and delay per airline and day.

`topology()` is what `millstream streams run millstream.demo.topology:topology` runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from streams import Materialized, StreamsBuilder, TimeWindows, Topology, Windowed

DAY = timedelta(days=1)
GRACE = timedelta(days=400)
"""The file is not in time order (its months run 1, 10, 11, 12, 2 …), so a year's records may be late."""


class Flight(msgspec.Struct, frozen=True, gc=False):
    """What the application reads of a flight; `line` is where the row stands in the file."""

    carrier: str
    line: int
    dep_delay: float | None = None
    """Minutes; null where the flight was cancelled."""


class Airline(msgspec.Struct, frozen=True, gc=False):
    """A row of airlines.csv."""

    carrier: str
    name: str


class Joined(msgspec.Struct, frozen=True, gc=False):
    """A flight with its airline's name."""

    line: int
    name: str
    dep_delay: float | None


class Delays(msgspec.Struct, gc=False):
    """One airline's day so far.

    `line` is the last row counted. The files source may send rows again after a crash (at least once),
    in their order: a row at or before `line` has been counted.
    """

    name: str = ""
    departures: int = 0
    cancellations: int = 0
    delay_minutes: int = 0
    line: int = -1


class AirlineDay(msgspec.Struct, frozen=True, gc=False):
    """A record of `airline-delays`; `mean_delay` is in minutes, null on a day without departures."""

    carrier: str
    name: str
    day: str
    departures: int
    cancellations: int
    delay_minutes: int
    mean_delay: float | None


def with_airline(flight: Flight, airline: Airline | None) -> Joined:
    """The join; an airline nobody listed goes by its code."""
    return Joined(flight.line, flight.carrier if airline is None else airline.name, flight.dep_delay)


def count(carrier: str, flight: Joined, delays: Delays) -> Delays:
    """Add a flight to its airline's day, unless it has been counted."""
    if flight.line <= delays.line:
        return delays
    delays.line = flight.line
    delays.name = flight.name
    if flight.dep_delay is None:
        delays.cancellations += 1
    else:
        delays.departures += 1
        delays.delay_minutes += int(flight.dep_delay)
    return delays


def publish(windowed: Windowed[str], delays: Delays) -> tuple[str, AirlineDay]:
    """Key and value of what is published of an airline's day; of one key the last counts."""
    day = datetime.fromtimestamp(windowed.window.start / 1000, UTC).date().isoformat()
    mean = delays.delay_minutes / delays.departures if delays.departures else None
    row = AirlineDay(
        windowed.key,
        delays.name,
        day,
        delays.departures,
        delays.cancellations,
        delays.delay_minutes,
        mean,
    )
    return f"{windowed.key} {day}", row


def topology() -> Topology:
    """flights ⋈ airlines → by airline and day → airline-delays."""
    builder = StreamsBuilder(key_serde=str)
    airlines = builder.table("airlines", value_serde=Airline, store="airlines")
    (
        builder.stream("flights", value_serde=Flight)
        .left_join(airlines, with_airline)
        .group_by_key()
        .windowed_by(TimeWindows(DAY, grace=GRACE))
        .aggregate(
            Delays, count, value_serde=Delays, store=Materialized(name="delays", retention=DAY + GRACE)
        )
        .to_stream()
        .map(publish)
        .to("airline-delays", key_serde=str, value_serde=AirlineDay)
    )
    return builder.build()
