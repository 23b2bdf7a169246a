"""A standalone worker as a process, with its REST interface."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.logd_process import LogdProcess
from tests.support.waiting import wait_for

SECONDS = 60.0


@pytest.fixture(scope="module")
def logd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path_factory.mktemp("logd")) as process:
        yield process


@contextmanager
def worker_process(
    bootstrap: str, folder: Path, *arguments: str, **settings: str
) -> Iterator[tuple[subprocess.Popen[str], Mapping[str, Any]]]:
    """Yield a worker as a process, and its line `started`."""
    file = folder / "worker.properties"
    file.write_text(f"bootstrap.servers={bootstrap}\noffset.storage.file.filename={folder / 'offsets'}\n")
    overrides = [part for key, value in settings.items() for part in ("--override", f"{key}={value}")]
    line = [sys.executable, "-m", "connect", "standalone", str(file), *arguments, *overrides]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())
        finally:
            process.terminate()


def test_a_worker_serves_rest_and_metrics(logd: LogdProcess, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\ntwo\n")
    source = {
        "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
        "file": str(tmp_path / "in.txt"),
        "topic": "lines",
    }
    listeners = {"listeners": "http://127.0.0.1:0"}
    with worker_process(logd.bootstrap, tmp_path, **listeners) as (_, started):
        with httpx.Client(base_url=started["rest"], trust_env=False, timeout=SECONDS) as client:

            def document(path: str) -> Any:
                return client.get(f"/connectors/lines/{path}").json()

            created = client.put("/connectors/lines/config", json=source)
            assert created.status_code == 201, created.text
            assert document("status")["connector"]["worker_id"] == started["rest"].removeprefix("http://")
            written = re.compile(r"source_record_write_total\{[^}]*\} 2\.0")
            wait_for(lambda: written.search(client.get("/metrics").text) is not None)
            client.put("/connectors/lines/stop")
            wait_for(lambda: document("status")["connector"]["state"] == "STOPPED")
            wait_for(lambda: not document("status")["tasks"])
            stored = document("offsets")["offsets"]
            assert [{**each["offset"], "file": ""} for each in stored] == [
                {"file": "", "line": 2, "position": 8}
            ]
            offset = {"line": 1, "position": 4}
            body = {"offsets": [{"partition": stored[0]["partition"], "offset": offset}]}
            assert client.patch("/connectors/lines/offsets", json=body).status_code == 200
            assert document("offsets")["offsets"] == body["offsets"]
            assert client.delete("/connectors/lines/offsets").status_code == 200
            assert document("offsets") == {"offsets": []}


def test_a_failure_ends_a_worker_that_is_told_so(logd: LogdProcess, tmp_path: Path) -> None:
    connector = tmp_path / "sink.properties"
    connector.write_text("name=sink\nconnector.class=failing:Failing\ntopics=nothing\n")
    (tmp_path / "failing.py").write_text(
        "from connect.api import SinkConnector, SinkTask\n"
        "class Failing(SinkConnector):\n"
        "    task_class = SinkTask\n"
        "    def start(self, config):\n"
        "        raise ValueError('no luck')\n"
    )
    line = [
        sys.executable,
        "-m",
        "connect",
        "standalone",
        "worker.properties",
        str(connector),
        "--exit-on-failure",
    ]
    (tmp_path / "worker.properties").write_text(f"bootstrap.servers={logd.bootstrap}\nlisteners=\n")
    environment = {"PYTHONPATH": str(Path(__file__).parents[3])}
    done = subprocess.run(
        line, capture_output=True, text=True, timeout=SECONDS, cwd=tmp_path, env=environment
    )
    assert done.returncode == 1, done.stderr
    assert "no luck" in done.stdout
