"""`millstream doctor`: what is well, and what is not."""

from __future__ import annotations

import json
import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from millstream.commands.doctor import checks, clock
from millstream.commands.doctor.finding import OK
from millstream.terminal.status import Status
from tests.millstream.invoking import invoke
from tests.support.certificates import Authority
from tests.support.ports import free_port


def examined(
    tmp_path: Path, *overrides: str, status: Status = Status.OK, file: Path | None = None
) -> dict[str, dict[str, Any]]:
    """Findings by the first word of what was looked at."""
    settings = [f"log.dirs={tmp_path / 'data'}", f"listeners=PLAINTEXT://127.0.0.1:{free_port()}", *overrides]
    options = [part for each in settings for part in ("--override", each)]
    if file is not None:
        options += ["--config", str(file)]
    result = invoke("doctor", *options, "-o", "json")
    assert result.exit_code == status, result.output
    return {row["check"].partition(" ")[0]: row for row in json.loads(result.stdout)}


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "FREE_BYTES", 1)


def test_all_is_well(tmp_path: Path) -> None:
    findings = examined(tmp_path)
    assert list(findings) == ["java", "record", "port", "file", "disk", "clock"]
    assert (findings["port"]["status"], findings["port"]["found"]) == ("ok", "free")
    assert findings["disk"]["status"] == "ok"


def test_the_record_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.reader, "__file__", "reader.abi3.so")
    assert checks.record_core().status == OK
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


def secured(keystore: Path, host: str = "127.0.0.1") -> list[str]:
    return [
        f"listeners=TLS://127.0.0.1:{free_port()}",
        f"advertised.listeners=TLS://{host}:9093",
        "listener.security.protocol.map=TLS:SSL",
        f"listener.name.tls.ssl.keystore.location={keystore}",
        "listener.name.tls.ssl.keystore.type=PEM",
    ]


@pytest.mark.parametrize(
    ("names", "host", "validity", "status", "detail"),
    [
        (["127.0.0.1"], "127.0.0.1", {"days": 365}, "ok", "CN=broker expires on 2"),
        (["*.example.org"], "one.example.org", {"days": 365}, "ok", "CN=broker expires on 2"),
        (["127.0.0.1"], "127.0.0.1", {"days": 7}, "warning", "days"),
        (["two.example.org"], "one.example.org", {"days": 365}, "warning", "does not name one.example.org"),
        ([], "one.example.org", {"days": 365}, "warning", "does not name one.example.org"),
        (["127.0.0.1"], "127.0.0.1", {"days_ago": 3}, "failed", "CN=broker expired on 2"),
    ],
)
def test_certificates(
    tmp_path: Path, names: list[str], host: str, validity: dict[str, int], status: str, detail: str
) -> None:
    issued = Authority("test CA", days=365).issue("broker", names, **validity)
    keystore = issued.write_pem(tmp_path / "broker.pem")
    keystore.chmod(0o600)
    ending = Status.UNHEALTHY if status == "failed" else Status.OK
    findings = examined(tmp_path, *secured(keystore, host), status=ending)
    assert findings["certificate"]["status"] == status
    assert detail in findings["certificate"]["found"]
    assert findings["permissions"]["status"] == "ok"


def test_a_keystore_that_cannot_be_used(tmp_path: Path) -> None:
    findings = examined(tmp_path, *secured(tmp_path / "missing.pem"), status=Status.UNHEALTHY)
    assert "missing.pem: cannot be read: No such file" in findings["certificate"]["found"]


def test_permissions(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    folder.chmod(0o755)
    row = examined(tmp_path)["permissions"]
    assert (row["status"], row["remedy"]) == ("warning", f"chmod 750 {folder}")
    folder.chmod(0o750)
    assert examined(tmp_path)["permissions"]["status"] == "ok"


def test_a_file_with_passwords_that_all_can_read(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("listener.name.tls.ssl.key.password=secret\n")
    file.chmod(0o644)
    row = examined(tmp_path, file=file)["permissions"]
    assert (row["status"], row["remedy"]) == ("warning", f"chmod 640 {file}")
    assert "secret" not in str(row)


def test_a_clock_that_is_behind(tmp_path: Path) -> None:
    segment = tmp_path / "data" / "words-0" / "00000000000000000000.log"
    segment.parent.mkdir(parents=True)
    segment.touch()
    (tmp_path / "data").chmod(0o750)
    ahead = segment.stat().st_mtime + 86_400
    os.utime(segment, (ahead, ahead))
    row = examined(tmp_path, status=Status.UNHEALTHY)["clock"]
    assert "seconds behind the newest segment" in row["found"]


@pytest.mark.parametrize(("synchronized", "status"), [(True, "ok"), (None, "ok"), (False, "warning")])
def test_a_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synchronized: bool | None, status: str
) -> None:
    monkeypatch.setattr(clock, "is_synchronized", lambda: synchronized)
    assert examined(tmp_path)["clock"]["status"] == status


def test_zookeeper_is_away(tmp_path: Path) -> None:
    findings = examined(tmp_path, f"zookeeper.connect=127.0.0.1:{free_port()}", status=Status.UNHEALTHY)
    assert findings["zookeeper"]["found"] == "Connection refused"
