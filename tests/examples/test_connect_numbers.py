"""The connector example: first without a broker, then against one, with a restart in between."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from connect.api import SinkRecord
from connect.runtime import Worker, WorkerConfig
from connect.testing import SinkRun, SourceRun
from examples.connect_numbers import Totals, numbers
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess


def test_the_source_goes_on_where_it_stopped() -> None:
    run = SourceRun(numbers, {"topic": "t", "limit": "10"})
    assert [(r.key, r.value) for r in run.records()][:2] == [("even", 0), ("odd", 1)]
    run.commit()
    again = run.again()
    assert again.records() == []
    again.stop()


def test_a_record_that_comes_again_counts_once(tmp_path: Path) -> None:
    config = {"file": str(tmp_path / "totals.json")}
    records = [SinkRecord("t", 0, offset, key="odd", value=1) for offset in range(3)]
    for _ in range(2):
        with SinkRun(Totals, config) as sink:
            sink.put(records)
            sink.flush()
    assert json.loads((tmp_path / "totals.json").read_text()) == {"totals": {"odd": 3}, "next": {"t-0": 3}}


@deep
def test_numbers_become_totals(tmp_path: Path) -> None:
    async def run(bootstrap: str, limit: int) -> None:
        worker_file = {
            "bootstrap.servers": bootstrap,
            "offset.storage.file.filename": str(tmp_path / "offsets"),
        }
        source = {
            "name": "numbers",
            "connector.class": "examples.connect_numbers:numbers",
            "topic": "numbers",
            "limit": str(limit),
            "topic.creation.default.partitions": "2",
            "topic.creation.default.replication.factor": "1",
        }
        sink = {
            "name": "totals",
            "connector.class": "examples.connect_numbers:Totals",
            "topics": "numbers",
            "file": str(tmp_path / "totals.json"),
        }
        async with Worker(WorkerConfig.parse(worker_file)) as worker, asyncio.timeout(60):
            await worker.start_connector(source)
            await worker.start_connector(sink)
            await worker.wait_done()
            assert not worker.failed, worker.status()

    def totals() -> dict[str, int]:
        state: dict[str, dict[str, int]] = json.loads((tmp_path / "totals.json").read_text())
        return state["totals"]

    with LogdProcess(tmp_path / "logd") as logd:
        asyncio.run(run(logd.bootstrap, 1000))
        assert totals() == {"even": sum(range(0, 1000, 2)), "odd": sum(range(1, 1000, 2))}
        asyncio.run(run(logd.bootstrap, 1500))
        assert totals() == {"even": sum(range(0, 1500, 2)), "odd": sum(range(1, 1500, 2))}
