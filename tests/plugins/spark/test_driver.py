"""The driver process: reached by a socket, gone with its parent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from connect.api import RetriableError
from plugins.spark.driver import SparkDriver, acquire_driver, call_driver, release_driver
from plugins.spark.environment import java_found
from plugins.spark.errors import DriverDied, JobBrokenOff, JobFailed
from plugins.spark.settings import SparkSettings

PARENT = """
import sys
from plugins.spark.driver import SparkDriver
driver = SparkDriver().start()
print(driver.pid, driver.socket_path.parent, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(not java_found(), reason="Spark needs Java: none on the path, no JAVA_HOME")
@pytest.mark.timeout(300)
def test_other_processes_may_query_through_the_socket(driver: SparkDriver) -> None:
    driver.wait_ready()
    assert driver.socket_path is not None
    question = {"query": "SELECT 1 AS one, date'2013-01-01' AS day, X'ff' AS raw", "tables": {}, "limit": 1}
    assert call_driver(driver.socket_path, "sql", question) == [{"one": 1, "day": "2013-01-01", "raw": "ff"}]
    with pytest.raises(JobFailed, match="no call named exit"):
        call_driver(driver.socket_path, "exit", {})
    with pytest.raises(JobFailed, match="PARSE_SYNTAX_ERROR") as caught:
        driver.sql("SELEC 1")
    assert "\tat " not in str(caught.value), "Java's stack belongs in the log"


def test_nobody_at_the_socket_is_a_driver_that_died(tmp_path: Path) -> None:
    with pytest.raises(DriverDied, match="no Spark driver answers"):
        call_driver(tmp_path / "nothing", "version", {})


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (
            "Py4JJavaError: An error occurred while calling o184.parquet.\n: "
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed).",
            JobBrokenOff,
        ),
        (
            "AnalysisException: [PYTHON_DATA_SOURCE_ERROR] Failed to generate Python data source read "
            "partitions: kafka_client.errors.RequestTimedOut: broker:9 did not answer within 10 s\n"
            " SQLSTATE: 38000",
            JobBrokenOff,
        ),
        ("Py4JJavaError: … plugins.spark.errors.DataLost: t-0: offset 1 is wanted, the log has 2", JobFailed),
    ],
)
def test_what_was_killed_or_away_meanwhile_is_worth_another_try(
    tmp_path: Path, message: str, kind: type[Exception]
) -> None:
    """Spark's words as it said them when its Python worker was killed, and when the broker stood still.

    The connector failed for good.
    """
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "driver"))
        listener.listen()

        def answer() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rw") as lines:
                lines.readline()
                lines.write(json.dumps({"error": message}) + "\n")

        answering = threading.Thread(target=answer)
        answering.start()
        with pytest.raises(kind):
            call_driver(tmp_path / "driver", "write", {})
        answering.join()
    assert issubclass(JobBrokenOff, RetriableError)


def test_connectors_with_equal_settings_share_a_driver_and_the_last_one_ends_it() -> None:
    settings = SparkSettings(master="local[1]", conf=(("spark.app.name", "shared"),))
    one, other = (
        acquire_driver(settings),
        acquire_driver(SparkSettings(master="local[1]", conf=settings.conf)),
    )
    assert one is other
    release_driver(one)
    pid = one.pid
    assert pid is not None
    release_driver(other)
    assert one.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(DriverDied, match="closed"):
        one.start()


def test_a_driver_ends_and_tidies_up_when_its_parent_is_killed() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert parent.stdin is not None
    assert parent.stdout is not None
    with parent.stdin, parent.stdout:
        pid, folder = parent.stdout.readline().decode().split(maxsplit=1)
        parent.kill()
        parent.wait()
    deadline = time.monotonic() + 100
    while is_running(int(pid)) or Path(folder.strip()).exists():
        assert time.monotonic() < deadline, "the driver is still there"
        time.sleep(0.01)


def is_running(pid: int) -> bool:
    """Return True if the process runs; False if it has ended and only waits for its parent to collect it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
