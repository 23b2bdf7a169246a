"""`millstream cluster health` of one broker; of several in tests/faults/cluster/test_tools.py."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from millstream.terminal.status import Status
from tests.millstream.invoking import On
from tests.support.logd_process import LogdProcess


def test_a_log_folder_fails(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    with LogdProcess(tmp_path / "logd", {"log.dirs": ",".join(map(str, folders))}) as logd:
        on = On(logd.bootstrap)
        on.done("topic", "create", "t", "--partitions", 12)
        well = on.rows("cluster", "health")
        assert {row["status"] for row in well} == {"ok"}
        assert next(row["found"] for row in well if row["check"] == "log-dirs") == "2 there"
        assert logd.stop() == 0
        # Without the other one, which has the cluster's metadata, no broker starts.
        (lost,) = [folder for folder in folders if not (folder / "metadata.journal").exists()]
        held = {path.name for path in lost.glob("t-*")}
        shutil.rmtree(lost)
        lost.write_text("a file, and no folder")
        logd.start()
        ended = on("cluster", "health", "-o", "jsonl")
        assert ended.exit_code == Status.UNHEALTHY
        found = {row["check"]: row for row in map(json.loads, ended.stdout.splitlines())}
        assert found["log-dirs"]["names"] == [f"broker 1: {lost} (KAFKA_STORAGE_ERROR)"]
        assert set(found["offline-partitions"]["names"]) == held
        assert len(held) == 6
        table = on("cluster", "health").stdout
        assert "broker 1: " in table


def test_more_names_than_a_table_shows(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        on = On(logd.bootstrap)
        on.done("topic", "create", "t", "--partitions", 11, "--config", "min.insync.replicas=2")
        table = on("cluster", "health")
        assert table.exit_code == Status.UNHEALTHY
        assert "11 of 11: t-0, t-1, t-2, t-3, t-4, t-5, t-6, t-7, 3 more" in table.stdout
        rows = on("cluster", "health", "-o", "json").stdout
        assert (
            len(next(r["names"] for r in json.loads(rows) if r["check"] == "under-min-isr-partitions")) == 11
        )
