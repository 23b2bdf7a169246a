"""A stock Faust application with a table on RocksDB runs unchanged; it is ``examples/faust_app.py``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytest.importorskip("confluent_kafka")
pytest.importorskip("faust", reason="faust-streaming is not installed (pip install millstream[faust])")

from confluent_kafka import Consumer, TopicPartition

from tests.interop.clients import confluent
from tests.interop.clients.base import SECONDS
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

APP = Path(__file__).parents[2] / "examples" / "faust_app.py"
LINES = ["To be or not to be", "that is the question", "to sleep perchance to dream"]


@contextmanager
def worker(logd: LogdProcess, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Yield the application's worker once it is ready; end it by SIGTERM, and expect status 0.

    The worker is ready when it has sought its committed offsets. Faust may process a record that comes during
    its start twice: before that seek and again after it.
    """
    folder.mkdir()
    environment = {**os.environ, "BROKER": f"kafka://{logd.bootstrap}", "DATA_FOLDER": str(folder / "data")}
    command = [sys.executable, str(APP), "worker", "--without-web", "--loglevel", "info"]
    with (folder / "worker.log").open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        wait_for(lambda: "Worker ready" in (folder / "worker.log").read_text() or process.poll() is not None)
        yield process
        process.terminate()
        assert process.wait(SECONDS) == 0, (folder / "worker.log").read_text()
    finally:
        process.kill()
        process.wait(SECONDS)
        log = (folder / "worker.log").read_text()
    assert "Traceback" not in log, log


def make_topics(logd: LogdProcess) -> None:
    """Create all topics of the application before it begins.

    aiokafka 0.14 loses a topic's leader for good if it learns of the topic from metadata of all topics and
    then asks for another topic. Its producer then waits and asks for metadata without a pause. Which topics
    Faust has created by then is a matter of milliseconds. Faust does not ask for topics that exist at first.
    """
    for name in ("lines", "word-counts", "word-count-__assignor-__leader"):
        create_topic(logd, name)
    create_topic(logd, "words", partitions=4)
    create_topic(logd, "word-count-counts-changelog", {"cleanup.policy": "compact"}, partitions=4)


def send(logd: LogdProcess, lines: list[str]) -> None:
    confluent.produce(logd.bootstrap, "lines", [(-1, None, json.dumps(line).encode(), ()) for line in lines])


def counted(logd: LogdProcess, folder: Path, count: int) -> dict[str, int]:
    """Return the last count of every word, once the counts add up to ``count``."""
    records = confluent.consume(logd.bootstrap, "word-counts", count)
    assert len(records) == count, (folder / "worker.log").read_text()
    return {(key or b"").decode(): json.loads(value or b"") for _, _, key, value, _ in records}


def all_committed(logd: LogdProcess) -> bool:
    """Return True if the application has committed all its records: others may be counted again."""
    consumer = Consumer({**confluent.QUIET, "bootstrap.servers": logd.bootstrap, "group.id": "word-count"})
    partitions = [TopicPartition("lines", 0), *(TopicPartition("words", number) for number in range(4))]
    try:
        return all(
            max(position.offset, 0) == consumer.get_watermark_offsets(position, SECONDS)[1]
            for position in consumer.committed(partitions, SECONDS)
        )
    finally:
        consumer.close()


def expected(lines: list[str]) -> Counter[str]:
    return Counter(word for line in lines for word in line.lower().split())


def test_a_table_is_counted_kept_and_restored(tmp_path: Path) -> None:
    with LogdProcess(tmp_path / "logd") as logd:
        make_topics(logd)
        words = expected(LINES * 20)
        send(logd, LINES * 20)
        with worker(logd, tmp_path / "first"):
            assert counted(logd, tmp_path / "first", words.total()) == words
            wait_for(lambda: all_committed(logd))
        # The second worker has an empty folder: its counts come out of the changelog.
        words += expected(LINES[:1])
        with worker(logd, tmp_path / "second"):
            send(logd, LINES[:1])
            restored = counted(logd, tmp_path / "second", words.total())
        assert restored == words
        with RawClient(logd.port) as raw:
            assert raw.fetch("word-counts").high_watermark == words.total()
        assert "Traceback" not in logd.log
