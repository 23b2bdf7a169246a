"""Cost of tasks in processes: start, memory, and records per second beside tasks in threads, in one run.

    python -m benchmarks.connect_isolation [RECORDS]

A files source reads lines of 100 B into a topic of a logd of the benchmark's own; threads and processes take
turns.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from connect.runtime import Worker, WorkerConfig
from tests.support.logd_process import LogdProcess

RUNS = 3
MODES = ("thread", "process")
_LOOK_SECONDS = 0.01


def source(name: str, file: Path, isolation: str) -> dict[str, str]:
    """Return the config of a source that ends at the end of its file."""
    return {
        "name": name,
        "connector.class": "FilesSource",
        "file": str(file),
        "topic": name,
        "format": "text",
        "stop.at.eof": "true",
        "value.converter": "string",
        "task.isolation": isolation,
        "topic.creation.default.partitions": "1",
        "topic.creation.default.replication.factor": "1",
    }


def memory_mb(pid: int) -> dict[str, float]:
    """Return RSS and PSS of a process in MB; PSS counts shared pages by their part."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return {key: int(re.findall(rf"{key}:\s+(\d+)", text)[0]) / 1024 for key in ("Rss", "Pss")}


async def run(bootstrap: str, folder: Path, file: Path, name: str, isolation: str) -> dict[str, float]:
    """Return seconds until RUNNING, records per second after it and, of a process, its memory."""
    config = WorkerConfig.parse(
        {"bootstrap.servers": bootstrap, "offset.storage.file.filename": str(folder / f"{name}.offsets")}
    )

    def task() -> dict[str, Any]:
        row: dict[str, Any] = worker.report(name)["tasks"][0]
        return row

    measured: dict[str, float] = {}
    async with Worker(config) as worker:
        began = time.perf_counter()
        await worker.start_connector(source(name, file, isolation))
        while task()["state"] != "RUNNING":
            assert task()["state"] != "FAILED", task()
            await asyncio.sleep(_LOOK_SECONDS)
        running_at = time.perf_counter()
        measured["start"] = running_at - began
        while not task()["done"]:
            if "pid" in task():
                measured |= memory_mb(task()["pid"])
            await asyncio.sleep(_LOOK_SECONDS)
        measured["rate"] = task()["records_acked"] / (time.perf_counter() - running_at)
    return measured


def main(records: int) -> None:
    """Print the figures."""
    report = Report("A files source, task.isolation")
    runs: dict[str, list[dict[str, float]]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "lines"
        file.write_text("".join(f"{n:099}\n" for n in range(records)))
        with LogdProcess(folder / "logd", {}) as logd:
            for number in range(RUNS):
                for mode in MODES:
                    measured = asyncio.run(run(logd.bootstrap, folder, file, f"{mode}-{number}", mode))
                    runs[mode].append(measured)
    for mode in MODES:
        report.add(f"{mode}: start, s", [each["start"] for each in runs[mode]])
        report.add(f"{mode}: records/s", [each["rate"] for each in runs[mode]])
    report.add("process: RSS, MB", [each["Rss"] for each in runs["process"]])
    report.add("process: PSS, MB", [each["Pss"] for each in runs["process"]])
    rates = zip(*([each["rate"] for each in runs[mode]] for mode in MODES), strict=True)
    report.add("process / thread: records/s", [process / thread for thread, process in rates])
    report.show()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
