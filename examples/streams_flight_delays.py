"""Departures, cancellations and mean delay per airline and day, from flights joined with a table of airlines.

    millstream streams run examples.streams_flight_delays:topology \
        --bootstrap-server localhost:9092 --application-id delays

reads ``flights`` and ``airlines`` (JSON values, keyed by carrier, as many partitions each) and writes
``airline-delays``: a stream of updates, of which the last per airline and day counts.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec

from streams import Materialized, StreamsBuilder, TimeWindows, Topology, Windowed


class Flight(msgspec.Struct, frozen=True):
    """A flight; without ``dep_time`` it was cancelled. Other fields are not parsed."""

    dep_time: float | None = None
    dep_delay: float | None = None


class Airline(msgspec.Struct, frozen=True):
    name: str


class Day(msgspec.Struct):
    """The result of an airline's day."""

    airline: str = ""
    name: str = ""
    day: str = ""
    departures: int = 0
    cancellations: int = 0
    delay_minutes: float = 0.0
    mean_delay: float | None = None


def add(carrier: str, joined: tuple[Flight, Airline], day: Day) -> Day:
    """Count one flight in; the store's value may be changed in place."""
    flight, airline = joined
    day.name = airline.name
    if flight.dep_time is None:
        day.cancellations += 1
    else:
        day.departures += 1
        day.delay_minutes += flight.dep_delay or 0.0
    return day


def finish(windowed: Windowed[str], day: Day) -> tuple[str, Day]:
    """Return the row of an airline and day, with the mean, which the store leaves out."""
    date = datetime.fromtimestamp(windowed.window.start / 1000, UTC).date().isoformat()
    mean = day.delay_minutes / day.departures if day.departures else None
    return f"{windowed.key} {date}", msgspec.structs.replace(
        day, airline=windowed.key, day=date, mean_delay=mean
    )


def topology(
    flights: str = "flights", airlines: str = "airlines", output: str = "airline-delays"
) -> Topology:
    builder = StreamsBuilder(key_serde=str)
    table = builder.table(airlines, value_serde=Airline)
    days = (
        builder.stream(flights, value_serde=Flight)
        .join(table, lambda flight, airline: (flight, airline))
        .group_by_key()
        # The file is not in order of time: its months run 1, 10, 11, 12, 2 ...
        .windowed_by(TimeWindows(timedelta(days=1), grace=timedelta(days=400)))
        .aggregate(Day, add, value_serde=Day, store=Materialized(name="days", retention=timedelta(days=401)))
    )
    days.to_stream().map(finish).to(output, value_serde=Day)
    return builder.build()


if __name__ == "__main__":
    print(topology().describe(), end="")
