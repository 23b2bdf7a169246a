"""`millstream profile`: files of its owner's, with secrets that are not shown."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from typer.testing import Result

from kafka_client.profiles import profile_path, read_profile
from millstream.terminal.servers import find_servers
from millstream.terminal.status import Status
from tests.millstream.invoking import invoke

LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required username='u' password='p=1 2\\3';"


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("MILLSTREAM_PROFILE", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)


def profile(*arguments: object) -> Result:
    result = invoke("profile", *arguments)
    assert result.exit_code == 0, result.output
    return result


def test_a_profiles_life() -> None:
    profile("set", "staging", "-b", "staging:9092", "client.id=mine")
    profile("set", "staging", "request.timeout.ms=7000", "--remove", "client.id")
    assert read_profile("staging") == {"bootstrap.servers": "staging:9092", "request.timeout.ms": "7000"}
    profile("use", "staging")
    assert find_servers(None, None, None).bootstrap == "staging:9092"
    assert json.loads(profile("list", "-o", "json").stdout) == [
        {
            "profile": "staging",
            "bootstrap_server": "staging:9092",
            "security_protocol": "PLAINTEXT",
            "default": True,
        }
    ]
    assert invoke("profile", "delete", "staging").exit_code == Status.FAILED
    profile("delete", "staging", "--yes")
    assert json.loads(profile("list", "-o", "json").stdout) == []
    assert find_servers(None, None, None).bootstrap == "localhost:9092"


def test_secrets_are_kept_and_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(f"sasl.mechanism=PLAIN\nsecurity.protocol=SASL_PLAINTEXT\nsasl.jaas.config={LOGIN}\n")
    profile("set", "secure", "-b", "secure:1", "--command-config", file)
    path = profile_path("secure")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    shown = profile("show", "secure").stdout
    assert "password" not in shown
    assert "[hidden]" in shown
    assert read_profile("secure")["sasl.jaas.config"] == LOGIN.replace("\\3", "3")


def test_what_cannot_be_used_is_not_written() -> None:
    refused = invoke("profile", "set", "bad", "request.timeout.ms=soon")
    assert refused.exit_code == Status.USAGE
    assert "request.timeout.ms=soon" in refused.stderr
    assert not profile_path("bad").exists()
    assert invoke("profile", "set", "bad").exit_code == Status.USAGE
    assert invoke("profile", "set", "../bad", "client.id=x").exit_code == Status.USAGE


@pytest.mark.parametrize("verb", ["show", "use", "delete"])
def test_a_profile_that_is_not_there(verb: str) -> None:
    away = invoke("profile", verb, "away")
    assert away.exit_code == Status.USAGE
    assert "there is no such profile" in away.stderr
