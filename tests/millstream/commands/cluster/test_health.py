"""`millstream cluster health` of one broker; of several in tests/faults/cluster/test_tools.py."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from millstream.terminal.status import Status
from tests.millstream.invoking import On
from tests.support.logd_process import LogdProcess


def test_a_log_folder_fails(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    with LogdProcess(tmp_path / "logd", {"log.dirs": ",".join(map(str, folders))}) as logd:
        on = On(logd.bootstrap)
        on.done("topic", "create", "t", "--partitions", 24)
        well = on.rows("cluster", "health")
        assert {row["status"] for row in well} == {"ok"}
        assert next(row["found"] for row in well if row["check"] == "log-dirs") == "2 there"
        assert logd.stop() == 0
        # Without the other one, which has the cluster's metadata, no broker starts.
        (lost,) = [folder for folder in folders if not (folder / "metadata.journal").exists()]
        lost_partitions = {path.name for path in lost.glob("t-*")}
        shutil.rmtree(lost)
        lost.write_text("a file, and no folder")
        logd.start()
        ended = on("cluster", "health", "-o", "jsonl")
        assert ended.exit_code == Status.UNHEALTHY
        checks = {row["check"]: row for row in map(json.loads, ended.stdout.splitlines())}
        assert checks["log-dirs"]["names"] == [f"broker 1: {lost} (KAFKA_STORAGE_ERROR)"]
        assert set(checks["offline-partitions"]["names"]) == lost_partitions
        assert len(lost_partitions) == 12
        table = on("cluster", "health").stdout
        assert "broker 1: " in table
        assert re.search(r"12 of 24: (t-\d+, ){8}4 more", table)
