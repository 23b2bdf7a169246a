"""The topologies `benchmarks.streams` runs; each function is given to `millstream streams run`."""

from __future__ import annotations

from millstream.demo import topology as demo
from streams import StreamsBuilder, Topology

FLIGHTS, AIRLINES, OUTPUT = "flights", "airlines", "airline-delays"


def join() -> Topology:
    """Return the demo's join alone, which writes every flight with its airline's name."""
    builder = StreamsBuilder(key_serde=str)
    airlines = builder.table(AIRLINES, value_serde=demo.Airline)
    flights = builder.stream(FLIGHTS, value_serde=demo.Flight)
    flights.left_join(airlines, demo.with_airline).to(OUTPUT, value_serde=demo.Joined)
    return builder.build()


def count() -> Topology:
    """Return a count of flights by airline, as bytes, which shows the cost of the engine and its store."""
    builder = StreamsBuilder(key_serde=str, value_serde=bytes)
    builder.stream(FLIGHTS).group_by_key().count(store="counts").to_stream().to(OUTPUT, value_serde=int)
    return builder.build()


def delays() -> Topology:
    """Return the demo's topology: a join, and a windowed aggregation by airline and day."""
    return demo.topology()
