"""Requests that schemathesis makes from our OpenAPI document, to a worker on a broker.

No answer may be a server's error, and each must be one that the document has for the request. Two checks are
left out: Kafka's worker takes any text for a flag in a query, and refuses configs that fit no plugin.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connect.integration.conftest import logd
from tests.support.connect_group import ConnectGroup
from tests.support.depth import deep
from tests.support.logd_process import LogdProcess

__all__ = ["logd"]
_RUN = "from schemathesis.cli import schemathesis; schemathesis()"
_ALIVE = """[parameters]
"path.connector" = "alive"
"path.task" = 0
"path.plugin" = "org.apache.kafka.connect.tools.VerifiableSourceConnector"
"path.logger" = "connect.nothing"
"""


@pytest.fixture(scope="module")
def worker(logd: LogdProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectGroup]:
    group = ConnectGroup(logd.bootstrap, tmp_path_factory.mktemp("worker"))
    url = group.start()
    group.wait_until(lambda: is_healthy(group, url))
    yield group
    group.end(url)


def is_healthy(group: ConnectGroup, url: str) -> bool:
    try:
        return group.ask("GET", f"{url}/health")[0] == 200
    except OSError:
        return False


def run(group: ConnectGroup, folder: Path, config: str, *options: str) -> None:
    """Run schemathesis against the worker. AssertionError with its report if it finds anything."""
    (url,) = group.workers
    (folder / "schemathesis.toml").write_text(config)
    arguments = ["--phases", "coverage,fuzzing", "-n", "3", "--generation-deterministic", "--warnings", "off"]
    arguments += ["--exclude-checks", "negative_data_rejection,positive_data_acceptance", "--no-color"]
    done = subprocess.run(
        [sys.executable, "-c", _RUN, "run", f"{url}/openapi.json", *arguments, *options],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in group.log(url).read_text()


@deep
def test_requests_about_any_name(worker: ConnectGroup, tmp_path: Path):
    # The level of the root's logger is that of the whole worker.
    run(worker, tmp_path, "", "--exclude-path", "/admin/loggers/{logger}")


def test_requests_about_a_connector_that_runs(worker: ConnectGroup, tmp_path: Path):
    (url,) = worker.workers
    config = {
        "connector.class": "org.apache.kafka.connect.tools.VerifiableSourceConnector",
        "throughput": "5",
    }
    worker.do("PUT", f"{url}/connectors/alive/config", {**config, "topic": "alive"})
    paths = r"^/(connectors/\{connector\}/|connector-plugins/|admin)"
    run(worker, tmp_path, _ALIVE, "--include-path-regex", paths)
    assert worker.do("GET", f"{url}/connectors/alive")["config"]["topic"] == "alive"
