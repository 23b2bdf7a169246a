"""SIGKILL of the sink's worker, of Spark's driver process and of its JVM.

Fault model: a process ends at once, between any two of its steps or while Spark writes a file; the disk keeps
what was written. The next process has to write every record once. The table must have no uncommitted data of
the killed process, and its folder none of that process's files.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from connect.api import RetriableError
from kafka_client.records import NewRecord
from plugins.spark.calls import WriteRequest, WriteResult
from plugins.spark.driver import SparkDriver
from plugins.spark.environment import java_found
from plugins.spark.manifest import Manifest
from plugins.spark.sink import SparkSinkTask
from plugins.spark.table import ParquetTable
from tests.plugins.spark import dying
from tests.plugins.spark.log import Log
from tests.plugins.spark.sink_task import SCHEMA, counts, delays, start_task
from tests.support.depth import deep
from tests.support.waiting import wait_for

pytestmark = [
    pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME"),
    pytest.mark.timeout(400),
    deep,  # the sample has the demo's kill of the Spark worker
]
NewName = Callable[[], str]
SPARK_SECONDS = 120.0
MANY = 60_000
"""Records that Spark is at for a while: the kill hits their file."""


def run_worker(step: str, log: Log, topic: str, path: Path, socket: object) -> None:
    """See `dying`: it has to have died at the step, and of nothing else."""
    arguments = [step, log.bootstrap, topic, str(path), str(socket)]
    command = [sys.executable, "-m", "tests.plugins.spark.dying", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SPARK_SECONDS)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


def only_the_tables_own(table: ParquetTable) -> bool:
    """Return True if the table's folders hold the files that its manifests name, and no others."""
    listed = {Path(file.path).parts[1] for file in table.files()}
    manifests = {f"{number:08d}.json" for number in table.numbers()}
    return listed == set(os.listdir(table.data_path)) and manifests == set(
        os.listdir(table.path / "_manifests")
    )


def test_a_worker_killed_at_any_step_leaves_every_record_once(
    driver: SparkDriver, log: Log, new_name: NewName, tmp_path: Path
) -> None:
    """Records are there once though each killed worker leaves a claim, a folder or a manifest."""
    topic, table = new_name(), ParquetTable(tmp_path)
    log.create(topic)
    driver.wait_ready()
    produced = in_table = 0
    for step, is_in_table in dying.STEPS.items():
        log.produce(topic, 0, delays(produced, 5))
        produced += 5
        run_worker(step, log, topic, tmp_path, driver.socket_path)
        in_table = produced if is_in_table else in_table
        latest = table.latest()
        assert (0 if latest is None else latest.rows) == in_table, step
    # And one with Spark of its own, which has to go with it: the next one removes the folder it wrote to.
    log.produce(topic, 0, *[delays(0, 100) * 20] * (MANY // 2000))
    run_worker(dying.WRITING, log, topic, tmp_path, "")
    produced += MANY
    task = start_task(log, topic, tmp_path, **SCHEMA)
    try:
        assert task.run_once(log.ends(topic)) == {(topic, 0): produced}
        assert counts(driver, tmp_path) == {"n": produced, "offsets": produced}
    finally:
        task.stop()

    def is_clean() -> bool:
        # Spark outlives its worker by a moment, and may write once more into the folder that was removed.
        if not only_the_tables_own(table):
            start_task(log, topic, tmp_path, **SCHEMA).stop()
        return only_the_tables_own(table)

    wait_for(is_clean, SPARK_SECONDS)


def children(pid: int, command: str) -> list[int]:
    """Return the ids of a process's children that run `command`."""
    ids = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
            if name.startswith(command) and int(rest.split()[1]) == pid:
                ids.append(int(stat.parent.name))
    return ids


def driver_of(driver: SparkDriver) -> int:
    """Return the id of the driver's process."""
    assert driver.pid is not None
    return driver.pid


def java_of(driver: SparkDriver) -> int:
    """Return the id of the JVM's process."""
    (java,) = children(driver_of(driver), "java")
    return java


def start_without_python(driver: SparkDriver) -> None:
    """Start the driver, and kill its JVM's Python until it is up: there data sources are looked for."""
    is_up = threading.Event()

    def kill() -> None:
        while not is_up.wait(0.01):
            for java in children(driver.pid or 0, "java"):
                for python in children(java, "python"):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(python, signal.SIGKILL)

    driver.start()
    killing = threading.Thread(target=kill, daemon=True)
    killing.start()
    driver.wait_ready()
    is_up.set()
    killing.join()


def run_until_done(task: SparkSinkTask, log: Log, topic: str, end: int) -> None:
    """Run the task to `end` as the worker does, and try retriable errors again."""
    ends = log.ends(topic)

    def done() -> bool:
        try:
            return task.run_once(ends) == {(topic, 0): end}
        except RetriableError:
            return False

    wait_for(done, SPARK_SECONDS)


@dataclass
class Filled:
    """A topic that grows, and the table it goes to."""

    log: Log
    topic: str
    path: Path
    records: int = 0

    def produce(self, *batches: Sequence[NewRecord]) -> None:
        self.log.produce(self.topic, 0, *batches)
        self.records += sum(map(len, batches))


@pytest.fixture(scope="module")
def filled(log: Log, tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Return a table for all tests that kill Spark: each goes on where the one before left it."""
    fed = Filled(log, "killed-again-and-again", tmp_path_factory.mktemp("table"))
    log.create(fed.topic)
    return fed


def offsets_in(table: ParquetTable) -> list[int]:
    """Return the offset of every row, read without Spark, which would take longer."""
    import pyarrow.parquet as pq

    offsets: list[int] = []
    for file in table.files():
        offsets += pq.ParquetFile(table.path / file.path).read(columns=["offset"])["offset"].to_pylist()
    return offsets


VICTIMS = {"driver": driver_of, "JVM": java_of}
MOMENTS = ("before the write", "amid a file", "before the commit")


@contextlib.contextmanager
def killing(victim: int, moment: str, task: SparkSinkTask, driver: SparkDriver) -> Iterator[None]:
    """Kill a process once, when the task gets there."""
    left = [victim]

    def kill() -> None:
        while left:
            os.kill(left.pop(), signal.SIGKILL)

    def kill_while_written() -> None:
        wait_for(lambda: dying.being_written(task.table.path), SPARK_SECONDS)
        kill()

    write, commit = driver.write, task.table.commit

    def kill_and_write(request: WriteRequest) -> WriteResult:
        kill()
        return write(request)

    def kill_and_commit(manifest: Manifest) -> None:
        if manifest.files:
            kill()
        commit(manifest)

    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor() as pool:
        if moment == "before the write":
            patch.setattr(driver, "write", kill_and_write)
        elif moment == "amid a file":
            watched = pool.submit(kill_while_written)
        else:
            patch.setattr(task.table, "commit", kill_and_commit)
        yield
        if moment == "amid a file":
            watched.result()
    assert not left


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", VICTIMS)
def test_spark_killed_is_started_again(driver: SparkDriver, filled: Filled, victim: str, moment: str) -> None:
    """Batches that the killed Spark was writing are written by the next one.

    If all files are there, the commit succeeds without Spark. The next one also starts if the process that
    looks up data sources is killed; once our data source was then never found again.
    """
    log, topic, path = filled.log, filled.topic, filled.path
    filled.produce(*([delays(0, 100) * 20] * (MANY // 2000) if moment == "amid a file" else [delays(0, 5)]))
    driver.wait_ready()
    pid, starts = VICTIMS[victim](driver), driver.starts
    task = start_task(log, topic, path, **SCHEMA)
    try:
        with killing(pid, moment, task, driver):
            run_until_done(task, log, topic, filled.records)
        if moment == "before the commit":
            wait_for(lambda: driver.pid is None, SPARK_SECONDS)
            start_without_python(driver)
            filled.produce(delays(0, 5))
            run_until_done(task, log, topic, filled.records)
        assert driver.starts == starts + 1
        offsets = offsets_in(task.table)
        assert len(offsets) == len(set(offsets)) == filled.records
    finally:
        task.stop()
    start_task(log, topic, path, **SCHEMA).stop()
    assert only_the_tables_own(task.table)
