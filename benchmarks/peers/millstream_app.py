"""Millstream's side of `benchmarks.streams_peers`."""

from __future__ import annotations

import asyncio
import json
import sys
import time

from streams import KafkaStreams, Materialized, StreamsBuilder, Topology

WARM = 0.1
"""This part of the records is not counted."""


def stateless() -> Topology:
    """Convert values to upper case and drop half of them."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    (
        builder.stream("records")
        .map_values(str.upper)
        .filter(lambda key, value: value[0] < "N")
        .to("millstream-stateless")
    )
    return builder.build()


def count() -> Topology:
    """Count the records of each key, and send the count at each record."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    counts = builder.stream("records").group_by_key().count(store=Materialized(name="counts", caching=False))
    counts.to_stream().to("millstream-count", value_serde=int)
    return builder.build()


WORK = {"stateless": stateless, "count": count}


async def _measure(work: str, bootstrap: str, application: str, folder: str, records: int) -> None:
    app = KafkaStreams(
        WORK[work](),
        application_id=application,
        bootstrap_servers=bootstrap,
        state_dir=folder,
        replication_factor=1,
    )
    start: tuple[float, float, int] | None = None
    async with app:
        while (done := app.summary()["records_in"]) < records:
            if start is None and done >= records * WARM:
                start = time.perf_counter(), time.process_time(), done
            await asyncio.sleep(0.005)
        ended = time.perf_counter(), time.process_time(), done
    assert start is not None, "it was over before it was looked at: take more records"
    seconds, cpu, counted = (end - begin for end, begin in zip(ended, start, strict=True))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "records": counted}), flush=True)


if __name__ == "__main__":
    _, work, at, group, state, total = sys.argv
    asyncio.run(_measure(work, at, group, state, int(total)))
