"""CPU time a record of Connect's converters, both ways, in batches of 500.

python -m benchmarks.connect_converters [--seconds S]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

from connect.api import schema
from connect.api.schema import Schema
from connect.converters import Converter, make_converter

ROW = schema.struct(
    {
        "id": schema.int64(),
        "carrier": schema.string(),
        "flight": schema.int32(),
        "origin": schema.string(optional=True),
        "delay": schema.float64(optional=True),
        "cancelled": schema.boolean(),
    },
    name="flight",
)
BATCH: list[dict[str, Any]] = [
    {
        "id": 10_000_000 + n,
        "carrier": ("UA", "AA", "DL")[n % 3],
        "flight": n,
        "origin": None if n % 10 == 0 else "EWR",
        "delay": n * 0.5,
        "cancelled": n % 7 == 0,
    }
    for n in range(500)
]


def microseconds(call: Callable[[], object], seconds: float) -> float:
    """Return the CPU time of a record, in µs, in a run of so many seconds of CPU."""
    call()
    rounds, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < seconds:
        call()
        rounds += 1
    return spent / rounds / len(BATCH) * 1e6


def measured(converter: Converter, of: Schema | None, seconds: float) -> tuple[float, float]:
    """Return the CPU time of a record in µs, written and read."""
    written = converter.from_connect_many("t", of, BATCH)
    return (
        microseconds(lambda: converter.from_connect_many("t", of, BATCH), seconds),
        microseconds(lambda: converter.to_connect_many("t", written), seconds),
    )


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds of each run")
    seconds = parser.parse_args().seconds
    plain = measured(make_converter("value.converter", "json", {"schemas.enable": "false"}), None, seconds)
    enveloped = measured(make_converter("value.converter", "json", {}), ROW, seconds)
    for name, (write, read) in (("JSON, bare", plain), ("JSON with its schema", enveloped)):
        print(f"{name:24} write {write:6.2f} µs   read {read:6.2f} µs a record")
    times = [b / a for a, b in zip(plain, enveloped, strict=True)]
    print(f"{'with / without schema':24} write {times[0]:6.2f} ×    read {times[1]:6.2f} ×    aim: ≤ 3")


if __name__ == "__main__":
    main()
