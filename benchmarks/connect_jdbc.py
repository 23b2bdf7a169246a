"""Rows per second of JdbcSink and JdbcSource on a PostgreSQL of the benchmark's own.

    python -m benchmarks.connect_jdbc [SECONDS]

Tasks run in `connect.testing`, so the figures are of the plugin and the database, without a broker. Rows have
six columns of about 100 bytes. The sink's tables have a primary key, except the one of plain inserts.
"""

from __future__ import annotations

import datetime as dt
import itertools
import sys
import time
from decimal import Decimal

from benchmarks.report import Report
from connect.api import SinkRecord, schema
from connect.testing import SinkRun, SourceRun
from plugins.jdbc import JdbcSink, JdbcSource
from tests.support.databases import Server, postgres

PUT_RECORDS = 2000
RUNS = 3
SHAPE = schema.struct(
    {
        "id": schema.int64(),
        "name": schema.string(),
        "price": schema.decimal_(2),
        "size": schema.float64(optional=True),
        "at": schema.timestamp(),
        "note": schema.string(optional=True),
    }
)
MODES = {
    "insert": {},
    "upsert": {"insert.mode": "upsert", "pk.mode": "record_value", "pk.fields": "id"},
    "upsert, exactly once": {
        "insert.mode": "upsert",
        "pk.mode": "record_value",
        "pk.fields": "id",
        "delivery": "exactly_once",
    },
}


def records(start: int) -> list[SinkRecord]:
    """Return the records of one `put`."""
    moment = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    return [
        SinkRecord(
            "bench",
            0,
            n,
            {
                "id": n,
                "name": f"name {n}",
                "price": Decimal(n).scaleb(-2),
                "size": n / 7,
                "at": moment + dt.timedelta(seconds=n % 1_000_000),
                "note": "a note of about fifty bytes, as rows have them" if n % 3 else None,
            },
            value_schema=SHAPE,
        )
        for n in range(start, start + PUT_RECORDS)
    ]


def sink_rate(server: Server, table: str, more: dict[str, str], seconds: float) -> tuple[float, float]:
    """Return the rows per second that the sink writes, and the CPU time of a row in µs without the server's.

    Making the records is not counted.
    """
    config = {**server.config, "topics": "bench", "table.name.format": table, "auto.create": "true", **more}
    spent, cpu, rows = 0.0, 0.0, 0
    with SinkRun(JdbcSink, config, name=table) as sink:
        for start in itertools.count(0, PUT_RECORDS):
            batch = records(start)
            began, cpu_began = time.perf_counter(), time.process_time()
            sink.put(batch)
            spent += time.perf_counter() - began
            cpu += time.process_time() - cpu_began
            rows += len(batch)
            if spent > seconds:
                break
    return rows / spent, cpu / rows * 1e6


def source_rate(server: Server, table: str) -> float:
    """Return the rows per second that the source reads by id."""
    config = {
        **server.config,
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "table.whitelist": table,
        "topic.prefix": "p-",
        "poll.interval.ms": "0",
        "batch.max.rows": "2000",
    }
    run = SourceRun(JdbcSource, config)
    began, rows = time.perf_counter(), 0
    while batch := run.tasks[0].poll():
        rows += len(batch)  # type: ignore[arg-type]
    spent = time.perf_counter() - began
    run.stop()
    return rows / spent


def main() -> None:
    """Run all modes, and print the figures."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
    report = Report("JdbcSink and JdbcSource, PostgreSQL")
    with postgres() as server:
        if server is None:
            raise SystemExit("PostgreSQL is not installed")
        for name, more in MODES.items():
            tables = [f"bench_{list(MODES).index(name)}_{run}" for run in range(RUNS)]
            rates = [sink_rate(server, table, more, seconds) for table in tables]
            report.add(f"sink, {name}: rows/s", [rate for rate, _ in rates], ">= 20,000")
            report.add("  CPU of the sink: µs a row", [cpu for _, cpu in rates])
        report.add("source, incrementing: rows/s", [source_rate(server, "bench_1_0") for _ in range(RUNS)])
    report.show()


if __name__ == "__main__":
    main()
