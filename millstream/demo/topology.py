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
    """The fields of a flight that the application reads; `line` is the row's line in the file."""

    carrier: str
    line: int
    dep_delay: float | None = None
    """The delay in minutes; null for a cancelled flight."""


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
    """An airline's day so far.

    `line` is the last counted row. After a crash the files source may send rows again in order (at least
    once). A row at or before `line` was counted already.
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
    """Return the joined flight; an unknown airline's name is its code."""
    return Joined(flight.line, flight.carrier if airline is None else airline.name, flight.dep_delay)


def count(carrier: str, flight: Joined, delays: Delays) -> Delays:
    """Add a flight to its airline's day, unless it was counted already."""
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
    """Return the key and value of an airline's day.

    A later record replaces an earlier one with the same key.
    """
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
    """Build the topology: flights ⋈ airlines → by airline and day → airline-delays."""
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
