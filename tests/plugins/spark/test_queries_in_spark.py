"""Writes and streams of `format("millstream")` in a real Spark: one session for all cases."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_client import Admin, Client, TopicPartition
from plugins.spark.arrow import read_arrow
from plugins.spark.environment import java_found, worker_environment
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from tests.plugins.spark.log import Log
from tests.support.logd_process import LogdProcess

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(300),
]


@dataclass(frozen=True)
class Written:
    """The outcomes that the program printed, and the log that it wrote to."""

    outcomes: dict[str, str]
    bootstrap: str

    def records(self, topic: str) -> list[dict[str, Any]]:
        """Return the topic's committed records."""
        options = parse_options(
            {
                "kafka.bootstrap.servers": self.bootstrap,
                "subscribe": topic,
                "includeHeaders": "true",
                "kafka.isolation.level": "read_committed",
            }
        )
        ranges = sorted(asyncio.run(resolve_ranges(options)))
        return [row for each in ranges for batch in read_arrow(options, each) for row in batch.to_pylist()]

    def values(self, topic: str) -> list[bytes]:
        """Return the committed values in the log's order."""
        return [row["value"] for row in self.records(topic)]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Written]:
    folder = tmp_path_factory.mktemp("queries")
    with LogdProcess(folder / "logd") as logd:
        log = Log(logd.bootstrap)
        log.create("batch", 2)
        for topic in ("in", "once", "failed"):
            log.create(topic)
        log.produce("in", 0, [(0, None, value, ()) for value in (b"a", b"b", b"c")])
        yield Written(run_program(log.bootstrap, str(folder)), log.bootstrap)


def run_program(*arguments: str) -> dict[str, str]:
    """Run the program, and return what it printed."""
    program = [sys.executable, "-m", "tests.plugins.spark.query_program"]
    done = subprocess.run(
        [*program, *arguments],
        env={**os.environ, **worker_environment()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def test_a_batch_writes_every_column_and_the_option_goes_before_the_topic_column(written: Written) -> None:
    assert (written.outcomes["columns"], written.outcomes["option before column"]) == ("done", "done")
    rows = [(r["partition"], r["key"], r["value"], r["headers"]) for r in written.records("batch")]
    assert rows == [(0, None, b"w", None), (1, b"k", b"v", [{"key": "h", "value": b"1"}])]
    assert written.records("batch")[1]["timestamp"].timestamp() == 86_400


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no topic", "topic option required when no 'topic' attribute is present"),
        ("null topic", "null topic present in the data"),
        ("mode overwrite", 'use mode("append")'),
        ("mode ignore", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_a_batch_that_is_refused_says_why(written: Written, case: str, message: str) -> None:
    assert message in written.outcomes[case]


def test_a_repeated_micro_batch_is_written_once_and_the_query_goes_on_from_its_checkpoint(
    written: Written,
) -> None:
    assert (written.outcomes["once: first run"], written.outcomes["once: repeated"]) == ("done", "done")
    read = (written.outcomes["once: rows of first run"], written.outcomes["once: rows of repeated"])
    assert read == ("3", "2"), "c is read twice"
    assert written.values("once") == [b"a", b"b", b"c", b"d"]


def test_a_task_that_fails_midway_leaves_nothing_and_a_zombie_cannot_commit(written: Written) -> None:
    assert "Invalid partition: -1" in written.outcomes["failed: midway"]
    assert written.outcomes["failed: repeated"] == "done"
    assert written.outcomes["zombie"] == "ProducerFenced"
    assert written.values("failed") == [b"a", b"b", b"c", b"d"]


def test_a_stream_commits_its_progress_as_a_group(written: Written) -> None:
    async def committed() -> dict[TopicPartition, int]:
        async with Client(written.bootstrap) as client:
            listed = await Admin(client).list_group_offsets("progress")
            return {tp: position.offset for tp, position in listed.items()}

    assert asyncio.run(committed()) == {TopicPartition("in", 0): 4}


def test_a_new_thread_finds_the_source_once_it_has_a_session(written: Written) -> None:
    """Spark looks sources in Python up by the thread's session, which a new thread does not have."""
    assert "DATA_SOURCE_NOT_FOUND" in written.outcomes["thread"]
    assert written.outcomes["once: repeated"] == "done"
