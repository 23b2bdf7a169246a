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
    """Upper case, and half of it kept."""
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    (
        builder.stream("records")
        .map_values(str.upper)
        .filter(lambda key, value: value[0] < "N")
        .to("millstream-stateless")
    )
    return builder.build()


def count() -> Topology:
    """How often each key came, told at each record."""
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
    begun: tuple[float, float, int] | None = None
    async with app:
        while (done := app.summary()["records_in"]) < records:
            if begun is None and done >= records * WARM:
                begun = time.perf_counter(), time.process_time(), done
            await asyncio.sleep(0.005)
        ended = time.perf_counter(), time.process_time(), done
    assert begun is not None, "it was over before it was looked at: take more records"
    seconds, cpu, counted = (end - start for end, start in zip(ended, begun, strict=True))
    print(json.dumps({"seconds": seconds, "cpu": cpu, "records": counted}), flush=True)


if __name__ == "__main__":
    _, asked, at, group, state, total = sys.argv
    asyncio.run(_measure(asked, at, group, state, int(total)))
