"""Writes and streams of `format("millstream")` in a real Spark: one session for all cases."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import pytest

from kafka_client import Admin, Client, TopicPartition
from plugins.spark.arrow import read_arrow
from plugins.spark.environment import java_found, worker_environment
from plugins.spark.options import parse_options
from plugins.spark.ranges import resolve_ranges
from tests.plugins.spark.log import Log

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
def written(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Written:
    log.create("batch", 2)
    for topic in ("in", "once", "twice", "failed", "counted"):
        log.create(topic)
    log.produce("in", 0, [(0, None, b"a", ()), (0, None, b"b", ())])
    log.produce("counted", 0, *([(0, None, b"%d" % i, ())] for i in range(5)))
    program = [sys.executable, "-m", "tests.plugins.spark.query_program"]
    done = subprocess.run(
        [*program, log.bootstrap, str(tmp_path_factory.mktemp("queries"))],
        env={**os.environ, **worker_environment()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return Written(dict(json.loads(line) for line in done.stdout.splitlines()), log.bootstrap)


def test_a_batch_writes_every_column_and_the_option_goes_before_the_topic_column(written: Written) -> None:
    assert (written.outcomes["columns"], written.outcomes["option before column"]) == ("done", "done")
    rows = [(r["partition"], r["key"], r["value"], r["headers"]) for r in written.records("batch")]
    assert rows == [(0, None, b"w", None), (1, b"k", b"v", [{"key": "h", "value": b"1"}])]
    assert written.records("batch")[1]["timestamp"].timestamp() == 86_400


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("no topic", "topic option required when no 'topic' attribute is present"),
        ("no value", "Required attribute 'value' not found"),
        ("type of value", "value attribute unsupported type int. value must be a(n) string or binary"),
        ("type of topic", "topic attribute unsupported type int. topic must be a(n) string"),
        ("null topic", "null topic present in the data"),
        ("mode overwrite", 'use mode("append")'),
        ("mode ignore", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
        ("mode error", "UNSUPPORTED_DATA_SOURCE_SAVE_MODE"),
    ],
)
def test_a_batch_that_is_refused_says_why(written: Written, case: str, message: str) -> None:
    assert message in written.outcomes[case]


def test_a_repeated_micro_batch_is_written_once_and_the_query_goes_on_from_its_checkpoint(
    written: Written,
) -> None:
    assert {written.outcomes[f"once: {run}"] for run in ("first run", "repeated", "started again")} == {
        "done"
    }
    assert written.values("once") == [b"a", b"b", b"c"]


def test_without_exactly_once_a_repeated_micro_batch_is_written_again(written: Written) -> None:
    """The control of the test above: the repetition does happen."""
    assert written.values("twice") == [b"a", b"b", b"a", b"b"]


def test_a_task_that_fails_midway_leaves_nothing_and_a_zombie_cannot_commit(written: Written) -> None:
    assert "Invalid partition: -1" in written.outcomes["failed: midway"]
    assert written.outcomes["failed: repeated"] == "done"
    assert written.outcomes["failed: overtakes a zombie"] == "done"
    assert written.outcomes["zombie"] == "ProducerFenced"
    assert written.values("failed") == [b"a", b"b", b"c"]


def test_a_stream_reads_everything_once_and_commits_its_progress(written: Written) -> None:
    assert (written.outcomes["counted: rows"], written.outcomes["counted: rows left"]) == ("5", "0")

    async def committed() -> dict[TopicPartition, int]:
        async with Client(written.bootstrap) as client:
            listed = await Admin(client).list_group_offsets("counted")
            return {tp: position.offset for tp, position in listed.items()}

    assert asyncio.run(committed()) == {TopicPartition("counted", 0): 5}


def test_a_new_thread_finds_the_source_once_it_has_a_session(written: Written) -> None:
    """Spark looks sources in Python up by the thread's session, which a new thread does not have."""
    assert "DATA_SOURCE_NOT_FOUND" in written.outcomes["thread"]
    assert written.outcomes["once: started again"] == "done"
