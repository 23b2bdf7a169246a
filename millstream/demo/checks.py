"""The demo's final checks: counts against the CSV read directly, and digests of both data centres."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec

from kafka_client import Admin, BatchFetcher, Client, TopicPartition
from millstream.demo.flights import DayTotals, Expected
from millstream.demo.layout import DELAYS, FLIGHTS, MIRRORED, Layout
from millstream.demo.topology import AirlineDay
from mirror.verify import verify_topic
from plugins.spark.driver import call_driver

WORST_DAYS = """
    SELECT day, sum(delay_minutes) / sum(departures) AS mean_delay,
           sum(departures) AS departures, sum(cancellations) AS cancellations
    FROM delays_latest GROUP BY day HAVING sum(departures) > 0
    ORDER BY mean_delay DESC, day LIMIT 10
"""
FLIGHT_ROWS = "SELECT count(*) AS records, count(DISTINCT line) AS flights FROM flights"


@dataclass(frozen=True, slots=True)
class Check:
    """The result of a check. `detail`: the observed values."""

    what: str
    holds: bool
    detail: str


async def check_digests(layout: Layout) -> list[Check]:
    """Compare both sides of the mirror by key, value, headers and timestamp of every record."""
    checks = []
    async with Client(layout.dc1) as source, Client(layout.dc2) as target:
        for topic in MIRRORED:
            result = await verify_topic(source, target, topic, f"dc1.{topic}")
            digests = ", ".join(partition.source_digest[:8] for partition in result.partitions)
            verdict = f"{result.records:,} records, digests {digests}" if result.equal else "they differ"
            checks.append(Check(f"dc1 {topic} = dc2 dc1.{topic}", result.equal is True, verdict))
    return checks


async def read_final_table(bootstrap: str, topic: str) -> dict[tuple[str, str], AirlineDay]:
    """Return the last update of each airline and day, by (carrier, ISO date)."""
    decode = msgspec.json.Decoder(AirlineDay).decode
    latest: dict[tuple[str, str], AirlineDay] = {}
    async with Client(bootstrap) as client:
        partitions = [TopicPartition(topic, number) for number in (await client.topic(topic)).partitions]
        ends = await Admin(client).list_offsets(dict.fromkeys(partitions, "latest"))
        async with BatchFetcher(client, auto_offset_reset="earliest") as fetcher:
            fetcher.assign(dict.fromkeys(partitions, 0))
            behind = {tp for tp in partitions if ends[tp].offset > 0}
            while behind:
                for fetched in await fetcher.fetch(timeout_ms=10_000):
                    for record in fetched.records():
                        if record[3] is not None:
                            row = decode(record[3])
                            latest[row.carrier, row.day] = row
                    if fetched.next_offset >= ends[fetched.tp].offset:
                        behind.discard(fetched.tp)
    return latest


def check_final_table(
    expected: Expected, names: dict[str, str], table: dict[tuple[str, str], AirlineDay]
) -> Check:
    """Check the name, departures, cancellations and minutes of delay of every airline's days."""
    expected_rows = {key: (names.get(key[0], key[0]), totals) for key, totals in expected.days.items()}
    actual_rows = {
        key: (row.name, DayTotals(row.departures, row.cancellations, row.delay_minutes))
        for key, row in table.items()
    }
    wrong = sorted(
        key
        for key in expected_rows.keys() | actual_rows.keys()
        if expected_rows.get(key) != actual_rows.get(key)
    )
    what = f"airline-delays on dc2 = the CSV ({len(expected_rows):,} airline days)"
    if not wrong:
        departures = sum(row.departures for row in table.values())
        cancellations = sum(row.cancellations for row in table.values())
        return Check(what, True, f"{departures:,} departures, {cancellations:,} cancellations")
    key = wrong[0]
    return Check(
        what,
        False,
        f"{len(wrong):,} differ, first {key}: {actual_rows.get(key)}, not {expected_rows.get(key)}",
    )


def check_dropped(dropped: int) -> Check:
    """Check that no record was dropped as late for its window."""
    return Check("records dropped as late", dropped == 0, f"{dropped:,}")


async def query(layout: Layout, sql: str) -> list[dict[str, Any]]:
    """Run a query in Spark, through the sink's driver."""
    tables = {"delays": str(layout.table(DELAYS)), "flights": str(layout.table(FLIGHTS))}
    arguments = {"query": sql, "tables": tables, "limit": 1000}
    rows = await asyncio.to_thread(call_driver, layout.spark_socket, "sql", arguments)
    return list(rows)


async def check_spark(
    layout: Layout, expected: Expected, records: int
) -> tuple[list[Check], list[dict[str, Any]]]:
    """Check the rows of the flights table and the ten worst days. Return the checks and these days."""
    (rows,) = await query(layout, FLIGHT_ROWS)
    counted = Check(
        f"flights in Spark's table = the CSV ({expected.rows:,} rows)",
        rows["flights"] == expected.rows and rows["records"] == records,
        f"{rows['records']:,} records, {rows['flights']:,} flights",
    )
    worst = await query(layout, WORST_DAYS)
    worst_days = [(row["day"], round(row["mean_delay"], 6)) for row in worst]
    expected_days = [(day, round(mean, 6)) for day, mean in expected.worst_days(10)]
    named = worst_days[0][0] if worst_days else "no day"
    return [
        counted,
        Check("Spark's ten worst days = the CSV's", worst_days == expected_days, f"worst: {named}"),
    ], worst
