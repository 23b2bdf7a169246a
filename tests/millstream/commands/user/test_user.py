"""`millstream user`: the first user of a broker that asks everybody for a login, and others."""

from __future__ import annotations

from pathlib import Path

import pytest

from logd.metadata.journal_store import FILE_NAME
from millstream.terminal.status import Status
from tests.millstream.invoking import invoke
from tests.support.logd_process import LogdProcess
from tests.support.ports import free_port

PASSWORD, NEW_PASSWORD = "s3cret-of-admin", "n3w-of-admin"


def client_file(folder: Path, user: str, password: str) -> Path:
    path = folder / f"{user}-{password}.properties"
    path.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f"sasl.username={user}\nsasl.password={password}\n"
    )
    return path


def test_the_first_user_and_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", PASSWORD)
    port = free_port()
    settings = {
        "listeners": f"IN://127.0.0.1:{port}",
        "listener.security.protocol.map": "IN:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "connection.failed.authentication.delay.ms": "1",
        "log.dirs": str(tmp_path / "data"),
    }
    options = [part for key, value in settings.items() for part in ("--override", f"{key}={value}")]
    done = invoke("user", "bootstrap", "admin", "--password-env", "ADMIN_PASSWORD", *options)
    assert done.exit_code == Status.OK, done.output
    assert PASSWORD not in (tmp_path / "data" / FILE_NAME).read_text() + done.output

    broker = LogdProcess(tmp_path, settings)
    broker.port = port
    with broker as logd:
        running = invoke("user", "bootstrap", "eve", "--password-env", "ADMIN_PASSWORD", *options)
        assert running.exit_code == Status.FAILED

        def on(*arguments: object, password: str = PASSWORD) -> tuple[int, str]:
            file = client_file(tmp_path, "admin", password)
            result = invoke("user", *arguments, "-b", logd.bootstrap, "--command-config", file)
            return result.exit_code, result.stdout + result.stderr

        word = tmp_path / "word"
        word.write_text(NEW_PASSWORD + "\n")
        new = ("--password-file", word)
        both = ("--mechanism", "SCRAM-SHA-256", "--mechanism", "SCRAM-SHA-512")
        assert on("add", "alice", *new, *both, "--iterations", 8192) == (Status.OK, "")
        assert on("list", "-o", "plain") == (
            Status.OK,
            "admin\tSCRAM-SHA-512\t4096\nalice\tSCRAM-SHA-256\t8192\nalice\tSCRAM-SHA-512\t8192\n",
        )
        status, text = on("add", "alice")
        assert status == Status.USAGE and "--password-file or --password-env" in text
        assert on("remove", "alice", "--yes") == (Status.OK, "")
        status, text = on("remove", "alice", "--yes")
        assert status != Status.OK and "does not exist: alice" in text
        assert on("add", "admin", *new) == (Status.OK, "")
        status, text = on("list")
        assert status != Status.OK and "invalid credentials" in text
        assert on("list", "-o", "plain", password=NEW_PASSWORD)[0] == Status.OK
        assert PASSWORD not in logd.log and NEW_PASSWORD not in logd.log
