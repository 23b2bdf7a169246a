"""Spark's classes as its virtual machine has them in memory, for all tests that start one: reading them again
is more than half of what a start takes (see `ClassArchive`).

Spark has too many for the end of a session to wait until they are written. So a session of its own writes
them, once for a machine; that takes as long as three starts, and is not done for a sample of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from millstream.zookeeper.class_archive import ClassArchive
from millstream.zookeeper.ensemble import ZooKeeperError, jars_of_pyspark
from plugins.spark.environment import java_found, worker_environment
from tests.support import depth

OPTIONS = "SPARK_SUBMIT_OPTS"
"""The environment's variable with options for Spark's virtual machine, before those of its settings."""


@cache
def use() -> None:
    """Have sessions that our processes start from now on use them; written first where they are missing."""
    if not java_found():
        return
    try:
        archive = ClassArchive("spark", jars_of_pyspark())
    except ZooKeeperError:  # there is no PySpark
        return
    if archive.is_missing and depth.DEPTH >= 1:
        with tempfile.TemporaryDirectory() as folder:
            _write(archive, Path(folder))
    os.environ[OPTIONS] = " ".join([os.environ.get(OPTIONS, ""), *archive.use()]).strip()


def _write(archive: ClassArchive, folder: Path) -> None:
    draft = folder / "classes.jsa"
    options = " ".join(archive.use_or_write(draft))
    done = subprocess.run(
        [sys.executable, "-m", __name__, str(folder)],
        env={**os.environ, **worker_environment(), OPTIONS: options},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    archive.keep(draft)


def run_a_session(folder: Path) -> None:
    """Start Spark, write an empty table, ask a query, and have its virtual machine end orderly."""
    from plugins.spark import jobs
    from plugins.spark.session import build_session
    from plugins.spark.settings import SparkSettings

    session = build_session(SparkSettings(), folder)
    jobs.warm_up(session, folder)
    session.sql("SELECT id, count(*) FROM range(10) GROUP BY id ORDER BY id").collect()
    machine = session.sparkContext._gateway.proc
    machine.stdin.close()
    machine.wait()


if __name__ == "__main__":
    run_a_session(Path(sys.argv[1]))
