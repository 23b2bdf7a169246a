"""The record core: millions of records per CPU second, on batches of 1 MB with records of 100 bytes.

    python -m benchmarks.records [--runs N]

Each figure is of one core. The first table is of the compiled modules; the second one, in a process of its
own, of the same files as plain Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from benchmarks.broker import arguments
from benchmarks.report import Report
from kafka_client.records import Codec, NewRecord, RecordReader, build_batch, check_crc, read_header, reader
from kafka_client.records.partitioning import split_by_partition
from kafka_client.records.writer import encode_records, estimate_sizes
from kafka_client.uncompiled import VARIABLE

RECORDS = 9_500
VALUE_BYTES = 80
SECONDS_MIN = 0.3
"""CPU seconds that a run takes at least."""
TARGETS = {"walk and check": "≥ 50", "columns": "≥ 5", "arrow buffers": "≥ 15", "encode": "≥ 5"}


def records() -> list[NewRecord]:
    """Return `RECORDS` records of about 100 bytes each, with different keys."""
    return [(1_700_000_000_000 + n // 7, b"k%07d" % n, b"%080d" % n, ()) for n in range(RECORDS)]


def rate(work: Callable[[], object]) -> float:
    """Return millions of records per CPU second of calls that handle `RECORDS` each."""
    work()
    calls, began = 0, time.process_time()
    while (spent := time.process_time() - began) < SECONDS_MIN:
        work()
        calls += 1
    return calls * RECORDS / spent / 1e6


def works() -> dict[str, Callable[[], object]]:
    """Return what is measured, by name."""
    new = records()
    batch = build_batch(new)
    compressed = {codec: build_batch(new, codec=codec) for codec in Codec if codec is not Codec.NONE}
    header = read_header(batch)
    named: dict[str, Callable[[], object]] = {
        "CRC alone": lambda: check_crc(batch, 0, header),
        "walk and check": lambda: RecordReader(batch).check(),
        "records": lambda: RecordReader(batch).records(),
        "columns": lambda: RecordReader(batch).columns(),
        "arrow buffers": lambda: RecordReader(batch).arrow(),
        "spans for the cleaner": lambda: RecordReader(batch).spans(),
        "each key's last value": lambda: RecordReader(batch).latest({}),
        "encode": lambda: encode_records(new, new[0][0]),
        "sizes": lambda: estimate_sizes(new),
        "split over 12 partitions": lambda: split_by_partition(new, 12, lambda: 0),
    }
    for codec, packed in compressed.items():
        named[f"walk and check, {codec.name.lower()}"] = partial(_check, packed)
    return named


def _check(batch: bytes) -> None:
    RecordReader(batch).check()


def main() -> None:
    """Print a table, then have another process print that of the plain sources."""
    options = arguments(__doc__ or "").parse_args()
    form = "plain Python" if str(reader.__file__).endswith(".py") else "compiled"
    report = Report(f"record core, {form}: million records per CPU second, {RECORDS:,} records in 1 MB")
    for name, work in works().items():
        target = TARGETS.get(name, "") if form == "compiled" else ""
        report.add(name, [rate(work) for _ in range(options.runs)], target)
    report.show()
    if VARIABLE not in os.environ:
        command = [sys.executable, "-m", "benchmarks.records", "--runs", str(min(options.runs, 2))]
        sys.exit(subprocess.call(command, env={**os.environ, VARIABLE: "1"}))


if __name__ == "__main__":
    main()
