"""`readStream.format("millstream")` in a real Spark."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafka_client import Admin, Client, TopicPartition
from plugins.spark.environment import java_found, worker_environment
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]


def test_a_stream_reads_everything_once_and_commits_its_progress(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        log = Log(logd.bootstrap)
        log.create("streamed")
        log.produce("streamed", 0, *([(0, None, b"%d" % i, ())] for i in range(5)))
        program = [sys.executable, "-m", "tests.plugins.spark.stream_program"]
        done = subprocess.run(
            [*program, log.bootstrap, "streamed", str(tmp_path)],
            env={**os.environ, **worker_environment()},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
        )
        assert done.stdout.splitlines() == ["run 0: 5 rows", "run 1: 0 rows"], done.stderr

        async def committed() -> dict[TopicPartition, int]:
            async with Client(log.bootstrap) as client:
                listed = await Admin(client).list_group_offsets("stream")
                return {tp: position.offset for tp, position in listed.items()}

        assert asyncio.run(committed()) == {TopicPartition("streamed", 0): 5}
