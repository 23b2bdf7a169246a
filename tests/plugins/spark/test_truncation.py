"""A log that is truncated, and written again, while a task reads its range (KIP-320). No Spark is needed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka_client import BatchFetcher, Fetched, TopicPartition
from kafka_client.errors import LogTruncated
from kafka_client.records import NewRecord
from plugins.spark.arrow import read_arrow
from plugins.spark.errors import DataLost
from plugins.spark.log_range import LogRange
from plugins.spark.options import parse_options
from tests.plugins.spark.log import Log
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

pytestmark = deep


def test_truncation_is_data_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Truncation fails the query: otherwise it would silently mix rows of two histories of the log."""
    original, tp = BatchFetcher.fetch, TopicPartition("t", 0)

    async def fetch(fetcher: BatchFetcher, **arguments: Any) -> list[Fetched]:
        if fetcher.position(tp) == 4 and (failure := failures.pop() if failures else None) is not None:
            raise failure
        return await original(fetcher, max_bytes=1, **arguments)

    monkeypatch.setattr(BatchFetcher, "fetch", fetch)
    with LogdProcess(tmp_path) as logd:
        log = Log(logd.bootstrap)
        log.create("t")
        records: list[NewRecord] = [(0, None, b"%d" % i, ()) for i in range(6)]
        log.produce("t", 0, records[:2], records[2:4], records[4:])
        place = {"topic": "t", "partition": 0, "offset": 4, "start": 0, "end": 6}
        for diverging, end in ((3, "3"), (-1, "0")):
            failures = [LogTruncated(diverging_offset=diverging, **place)]
            with pytest.raises(DataLost, match=f"offset 4 is wanted, the log has {end}"):
                read(log)
        failures = [LogTruncated(diverging_offset=3, **place)]
        assert read(log, failOnDataLoss="false") == [0, 1, 2, 3, 4, 5], "each offset once"
        assert not failures


def read(log: Log, **options: str) -> list[int]:
    properties = {"kafka.bootstrap.servers": log.bootstrap, "subscribe": "t", **options}
    batches = read_arrow(parse_options(properties), LogRange("t", 0, 0, 6))
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]
