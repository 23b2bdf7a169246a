"""`millstream doctor`: what is well, and what is not."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from millstream.commands.doctor import checks
from millstream.terminal.status import Status
from tests.millstream.invoking import invoke
from tests.support.ports import free_port


def examined(tmp_path: Path, *overrides: str, status: Status = Status.OK) -> dict[str, dict[str, Any]]:
    """Findings by the first word of what was looked at."""
    settings = [f"log.dirs={tmp_path / 'data'}", f"listeners=PLAINTEXT://127.0.0.1:{free_port()}", *overrides]
    options = [part for each in settings for part in ("--override", each)]
    result = invoke("doctor", *options, "-o", "json")
    assert result.exit_code == status, result.output
    return {row["check"].partition(" ")[0]: row for row in json.loads(result.stdout)}


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "FREE_BYTES", 1)


def test_all_is_well(tmp_path: Path) -> None:
    findings = examined(tmp_path)
    assert list(findings) == ["java", "record", "port", "file", "disk"]
    assert (findings["port"]["status"], findings["port"]["found"]) == ("ok", "free")
    assert findings["disk"]["status"] == "ok"


def test_the_record_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.reader, "__file__", "reader.abi3.so")
    assert checks.record_core().status == checks.OK
    monkeypatch.setattr(checks.reader, "__file__", "reader.py")
    monkeypatch.delenv(checks.VARIABLE, raising=False)
    assert "C compiler" in str(checks.record_core().remedy)
    monkeypatch.setenv(checks.VARIABLE, "1")
    assert checks.record_core().remedy == f"unset {checks.VARIABLE}"


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        findings = examined(tmp_path, f"listeners=PLAINTEXT://127.0.0.1:{port}", status=Status.UNHEALTHY)
    assert findings["port"]["status"] == "failed"
    assert "already in use" in findings["port"]["found"]


def test_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    for version, status in (("21.0.1", "ok"), ("1.8.0_292", "warning")):
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
        java.chmod(0o755)
        assert examined(tmp_path)["java"]["status"] == status
    java.unlink()
    assert examined(tmp_path)["java"]["status"] == "warning"


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "FREE_BYTES", 2**62)
    monkeypatch.setattr(checks, "FREE_SHARE", 1.1)
    assert examined(tmp_path, status=Status.UNHEALTHY)["disk"]["status"] == "failed"


def test_a_folder_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    findings = examined(tmp_path, f"log.dirs={tmp_path / 'file'}", status=Status.UNHEALTHY)
    assert "cannot be written to" in findings["disk"]["found"]


@pytest.mark.parametrize(
    ("answer", "status", "detail"),
    [
        (b"Zookeeper version: 3.8.4-9316c2a7\nLatency: 0\nMode: leader\n", "ok", "leader, ZooKeeper 3.8.4"),
        (b"This ZooKeeper instance is not currently serving requests\n", "failed", "This ZooKeeper instance"),
    ],
    ids=["leader", "no quorum"],
)
def test_zookeeper(tmp_path: Path, answer: bytes, status: str, detail: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                assert connection.recv(4) == b"srvr"
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        ending = Status.OK if status == "ok" else Status.UNHEALTHY
        row = examined(tmp_path, f"zookeeper.connect=127.0.0.1:{port}/kafka", status=ending)["zookeeper"]
        thread.join()
    assert row["status"] == status
    assert row["found"].startswith(detail)


def test_zookeeper_is_away(tmp_path: Path) -> None:
    findings = examined(tmp_path, f"zookeeper.connect=127.0.0.1:{free_port()}", status=Status.UNHEALTHY)
    assert findings["zookeeper"]["found"] == "Connection refused"
