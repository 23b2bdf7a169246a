"""Which cluster a command talks to: what was said nearest wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from kafka_client.profiles import make_default, profile_path
from millstream.terminal.servers import find_servers


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("MILLSTREAM_PROFILE", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)


def profile(name: str, text: str) -> None:
    path = profile_path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_each_place_wins_over_those_behind_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def bootstrap(*options: object) -> str:
        arguments = [*options, None, None, None][:3]
        return find_servers(*arguments).bootstrap

    assert bootstrap() == "localhost:9092"
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "environment:1")
    assert bootstrap() == "environment:1"
    profile("usual", "bootstrap.servers=usual:1\n")
    make_default("usual")
    assert bootstrap() == "usual:1"
    profile("other", "bootstrap.servers=other:1\n")
    monkeypatch.setenv("MILLSTREAM_PROFILE", "other")
    assert bootstrap() == "other:1"
    assert bootstrap(None, None, "usual") == "usual:1"
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\nclient.id=mine\n")
    assert bootstrap(None, file, "usual") == "file:1"
    assert bootstrap("option:1", file, "usual") == "option:1"
    make_default(None)


def test_the_file_is_over_the_profile(tmp_path: Path) -> None:
    profile("usual", "client.id=profile\nrequest.timeout.ms=7\n")
    file = tmp_path / "client.properties"
    file.write_text("client.id=file\n")
    client = find_servers(None, file, "usual").client()
    assert (client.client_id, client.request_timeout_ms) == ("file", 7)


@pytest.mark.parametrize("name", ["away", "../away", ""])
def test_what_is_no_profile_is_named(name: str) -> None:
    profile("known", "")
    if not name:
        name = "a" * 65
    with pytest.raises(ConfigError, match="--profile"):
        find_servers(None, None, name)
