"""Nexmark: records a streams application takes in per second, and CPU seconds it needs for a million.

    python -m benchmarks.nexmark [--queries q0,q5] [--events N] [--runs N] [--bootstrap-server HOST:PORT]

Each run is a process of its own, `millstream streams run`, that reads the topics of its query from the
beginning, commits and ends. What it wrote is checked against the model. Time is from when the process's tasks
run to its end; CPU time counts whole, Python's start and all threads of RocksDB included. Records are those
of the topics it reads, which for q3 and q8 are few: persons and auctions are 4 of 50 events.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.broker import arguments, broker_for
from benchmarks.nexmark.events import Event
from benchmarks.nexmark.generator import generate
from benchmarks.nexmark.queries import QUERIES, Query, WrongAnswerError
from benchmarks.nexmark.running import TopicExistsError, Used, fill, rows_behind, run_application
from benchmarks.raw import topic_end
from benchmarks.report import Report

EVENTS = 500_000


def measure(bootstrap: str, query: Query, events: Sequence[Event], runs: int) -> list[tuple[int, Used]]:
    """Run a query `runs` times. Return the number of input records and the cost of each run.

    Raises WrongAnswerError if the output is not the model's.
    """
    records, results = sum(topic_end(bootstrap, topic) for topic in query.inputs), []
    for _ in range(runs):
        before = topic_end(bootstrap, query.output)
        with tempfile.TemporaryDirectory() as folder:
            results.append((records, run_application(bootstrap, query, Path(folder))))
        query.check(asyncio.run(rows_behind(bootstrap, query, before)), events)
    return results


def parsed(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the parsed options; `queries` is a list of `Query`."""

    def queries(names: str) -> list[Query]:
        for name in names.split(","):
            if name not in QUERIES:
                raise argparse.ArgumentTypeError(f"there is no {name!r}, only {', '.join(QUERIES)}")
        return [QUERIES[name] for name in names.split(",")]

    parser = arguments(__doc__ or "")
    parser.add_argument("--queries", type=queries, default=list(QUERIES.values()), help="q0,q5 and so on")
    parser.add_argument("--events", type=int, default=EVENTS, help="persons, auctions and bids together")
    parser.add_argument("--seed", type=int, default=1, help="of the events")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the benchmark."""
    options = parsed(argv)
    events = list(generate(options.events, seed=options.seed))
    speed = Report(f"Nexmark, {options.events:,} events: records per s")
    cost = Report(f"Nexmark, {options.events:,} events: CPU s per million records")
    with broker_for(options) as broker:
        try:
            asyncio.run(fill(broker.bootstrap, options.queries, events))
            for query in options.queries:
                # The first run warms up, as everywhere.
                results = measure(broker.bootstrap, query, events, options.runs + 1)[1:]
                figure = f"{query.name} {query.title}"
                speed.add(figure, [records / used.seconds for records, used in results])
                cost.add(figure, [used.cpu_seconds / records * 1e6 for records, used in results])
        except (TopicExistsError, WrongAnswerError) as error:
            sys.exit(str(error))
    speed.show()
    cost.show()


if __name__ == "__main__":
    main()
