"""A distributed worker's start and memory: until its first connector runs, and with ten idle connectors.

    python -m benchmarks.connect_worker [--runs N]

The broker is a logd of the benchmark's own, with group.initial.rebalance.delay.ms=0. A start counts from the
process's exec to the answer of `GET /connectors/NAME/status` that says RUNNING for connector and task. The
first start makes the internal topics, and its connector is created over REST; later starts find the connector
in the config topic.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.broker import start_logd
from benchmarks.cpu import cpu_seconds, resident_bytes
from benchmarks.report import Report
from kafka_client.http.client import HttpClient
from tests.support.ports import free_port

IDLE = 10
SECONDS = 60.0
PAUSE = 0.05
DELAY = "group.initial.rebalance.delay.ms=0"
"""The setting in Kafka's own server.properties. By default, a broker lets new groups wait for 3 s."""
SETTLING = 3.0
"""Seconds that a worker's memory is left to settle in."""
_client = HttpClient(timeout=SECONDS)


def ask(method: str, url: str, document: Any = None) -> tuple[int, Any]:
    """Return an answer's status and document; status 0 while nobody listens."""
    body = None if document is None else json.dumps(document).encode()
    try:
        answer = _client.request(method, url, body, {"content-type": "application/json"})
    except OSError:
        return 0, None
    return answer.status, json.loads(answer.body) if answer.body else None


def wait_for_success(
    method: str, url: str, document: Any = None, *, accepts: Callable[[Any], bool] = lambda answer: True
) -> Any:
    """Ask until the answer is a success that is accepted, and return its document. Raises TimeoutError."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        status, answer = ask(method, url, document)
        if 200 <= status < 300 and accepts(answer):
            return answer
        time.sleep(PAUSE)
    raise TimeoutError(f"{method} {url}: {status} {answer}")


def wait_until_running(url: str, name: str) -> None:
    """Return once a connector and its task run. Raises TimeoutError."""
    wait_for_success("GET", f"{url}/connectors/{name}/status", accepts=_is_running)


def _is_running(status: Any) -> bool:
    states = [part["state"] for part in (status["connector"], *status["tasks"])]
    return len(states) > 1 and set(states) == {"RUNNING"}


@contextmanager
def worker(settings: dict[str, str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker."""
    file = folder / "worker.properties"
    file.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    command = [sys.executable, "-m", "millstream", "connect", "distributed", str(file)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        process.wait(SECONDS)


def worker_settings(bootstrap: str) -> dict[str, str]:
    """Return the settings of a worker, with Kafka's defaults where they matter."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "bench",
        "listeners": f"http://127.0.0.1:{free_port()}",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    }
    for kind in ("config", "offset", "status"):
        settings |= {f"{kind}.storage.topic": f"bench-{kind}", f"{kind}.storage.replication.factor": "1"}
    return settings


def idle_connector(folder: Path, number: int) -> dict[str, Any]:
    """Return a source that waits for lines in a file of its own, or a sink that waits for records."""
    file = folder / f"lines-{number}"
    file.touch()
    kind = "Source" if number % 2 else "Sink"
    topics = {"topic": "lines"} if kind == "Source" else {"topics": "lines"}
    class_name = f"org.apache.kafka.connect.file.FileStream{kind}Connector"
    return {
        "name": f"idle-{number}",
        "config": {"connector.class": class_name, "file": str(file), **topics},
    }


def started(settings: dict[str, str], folder: Path, connector: dict[str, Any] | None) -> tuple[float, float]:
    """Return the seconds, and the worker's CPU seconds, of a start until `idle-1` runs."""
    url = settings["listeners"]
    begin = time.perf_counter()
    with worker(settings, folder) as process:
        if connector is not None:
            wait_for_success("POST", f"{url}/connectors", connector)
        wait_until_running(url, "idle-1")
        return time.perf_counter() - begin, cpu_seconds(process.pid)


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--runs", type=int, default=3, help="counted starts with the connector in its topic")
    runs = parser.parse_args().runs
    report = Report("A distributed Connect worker")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with start_logd(folder / "log", [DELAY], quiet=True) as (broker, _):
            settings = worker_settings(broker.bootstrap)
            wall, cpu = started(settings, folder, idle_connector(folder, 1))
            report.add("exec to RUNNING, new internal topics: s", [wall], "≤ 2")
            report.add("  CPU of it: s", [cpu])
            pairs = [started(settings, folder, None) for _ in range(runs)]
            report.add("exec to RUNNING, connector in its topic: s", [wall for wall, _ in pairs], "≤ 2")
            report.add("  CPU of it: s", [cpu for _, cpu in pairs])
            with worker(settings, folder) as process:
                url = settings["listeners"]
                for number in range(2, IDLE + 1):
                    wait_for_success("POST", f"{url}/connectors", idle_connector(folder, number))
                for number in range(1, IDLE + 1):
                    wait_until_running(url, f"idle-{number}")
                time.sleep(SETTLING)
                report.add(
                    f"resident with {IDLE} idle connectors: MB", [resident_bytes(process.pid) / 1e6], "≤ 150"
                )
                before = cpu_seconds(process.pid)
                time.sleep(SETTLING)
                idle = (cpu_seconds(process.pid) - before) / SETTLING
                report.add("CPU of the idle worker: cores", [idle])
                times = []
                for _ in range(50):
                    begin = time.perf_counter()
                    wait_for_success("GET", f"{url}/connectors?expand=status&expand=info")
                    times.append((time.perf_counter() - begin) * 1000)
                report.add("GET /connectors, all expanded: ms", times)
    report.show()


if __name__ == "__main__":
    main()
