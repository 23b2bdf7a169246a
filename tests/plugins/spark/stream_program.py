"""A program that streams a topic into memory twice with one checkpoint; prints the values, a line per run."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from plugins.spark.session import build_session
from plugins.spark.settings import SparkSettings


def main(bootstrap: str, topic: str, folder: str) -> None:
    """Run the two queries; the second one has nothing left to read."""
    with tempfile.TemporaryDirectory() as own:
        session = build_session(SparkSettings(), Path(own))
        for run in range(2):
            records = (
                session.readStream.format("millstream")
                .option("kafka.bootstrap.servers", bootstrap)
                .option("subscribe", topic)
                .option("startingOffsets", "earliest")
                .option("maxOffsetsPerTrigger", 2)
                .option("groupId", "stream")
                .load()
            )
            query = (
                records.selectExpr("CAST(value AS STRING) AS value")
                .writeStream.format("memory")
                .queryName(f"run{run}")
                .option("checkpointLocation", f"{folder}/run")
                .trigger(availableNow=True)
            )
            if run == 1:
                query = query.outputMode("append").format("noop")
            started = query.start()
            started.awaitTermination()
            rows = sum(progress.numInputRows for progress in started.recentProgress)
            print(f"run {run}: {rows} rows", flush=True)
        session.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
