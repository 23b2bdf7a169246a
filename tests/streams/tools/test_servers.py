"""Which cluster `millstream streams` talks to, and what it says where nobody answers."""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from typing import Any, cast

import pytest
from typer.testing import CliRunner

from kafka_client import Client
from kafka_client.errors import ConfigError, ConnectionClosed, ErrorCode, KafkaError, MillstreamError
from kafka_client.profiles import make_default, write_profile
from streams import StreamsConfig
from streams.cli import app
from streams.runtime import contact
from streams.tools.properties import CommandOptions, settings_of
from tests.streams.support.running import copy, run
from tests.support.waiting import until


@pytest.fixture(autouse=True)
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Settings of nobody's, with two profiles."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    for name in ("MILLSTREAM_PROFILE", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("prod", "own"):
        write_profile(name, {"bootstrap.servers": f"{name}:1", "request.timeout.ms": "7000"})


def servers(**options: Any) -> str:
    settings, _ = settings_of(CommandOptions(application_id="app", **options))
    return settings.bootstrap_servers


def test_the_cluster_is_found_as_by_other_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, command_config = tmp_path / "app.properties", tmp_path / "client.properties"
    file.write_text("bootstrap.servers=file:1\n")
    command_config.write_text("bootstrap.servers=command:1\n")
    assert servers() == "localhost:9092"
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "environment:1")
    assert servers() == "environment:1"
    make_default("own")
    assert servers() == "own:1"
    monkeypatch.setenv("MILLSTREAM_PROFILE", "prod")
    assert servers() == "prod:1"
    assert servers(config=file) == "file:1"
    assert servers(config=file, profile="own") == "own:1"
    assert servers(config=file, profile="own", command_config=command_config) == "command:1"
    override = ["bootstrap.servers=override:1"]
    assert servers(profile="own", command_config=command_config, override=override) == "override:1"
    assert servers(profile="own", override=override, bootstrap_server="option:1") == "option:1"


def test_a_profiles_other_keys_count() -> None:
    settings, _ = settings_of(CommandOptions(application_id="app", profile="prod"))
    assert settings.client == {"request_timeout_ms": 7000}


def test_a_default_profiles_keys_are_not_for_the_cluster_of_a_file(tmp_path: Path) -> None:
    make_default("prod")
    file = tmp_path / "app.properties"
    file.write_text("bootstrap.servers=file:1\n")
    settings, _ = settings_of(CommandOptions(application_id="app", config=file))
    assert settings.client == {}


def test_a_profile_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigError, match=r"--profile=nobody: there is no such profile \(known: own, prod\)"):
        servers(profile="nobody")


@pytest.mark.parametrize("command", ["run", "lag", "reset"])
def test_commands_take_a_profile(command: str) -> None:
    arguments = [command, *(["m:t"] if command == "run" else []), "--application-id", "app"]
    ended = CliRunner().invoke(app, [*arguments, "--profile", "nobody"])
    assert (ended.exit_code, "there is no such profile" in ended.output) == (2, True)


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ("comit.interval.ms", "did you mean commit.interval.ms?"),
        ("commit.ms", "did you mean commit.interval.ms?"),
        ("num.standby.replica", "did you mean num.standby.replicas?"),
        ("consumer.auto.ofset.reset", "did you mean consumer.auto.offset.reset?"),
        ("producer.compresion.type", "did you mean producer.compression.type?"),
        ("sesion.timeout.ms", "did you mean session.timeout.ms?"),
        ("xyzzy", "docs/streams/settings.md lists the settings"),
    ],
)
def test_a_misspelt_key_names_the_nearest(key: str, says: str) -> None:
    with pytest.raises(ConfigError) as error:
        StreamsConfig.from_properties({"application.id": "a", "bootstrap.servers": "b:1", key: "1"})
    assert str(error.value) == f"{key}=1: not one of the settings; {says}"


def test_a_misspelt_key_of_a_file_is_named_too(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """A misspelt key is logged and is no error, since it may be another program's."""
    file = tmp_path / "app.properties"
    file.write_text("application.id=app\nmy.own=1\ncomit.interval.ms=1\n")
    with caplog.at_level(logging.WARNING, "streams"):
        settings_of(CommandOptions(config=file))
    (message,) = [record.getMessage() for record in caplog.records]
    assert message == "without effect here: comit.interval.ms (did you mean commit.interval.ms?), my.own"


def test_an_instance_without_a_broker_says_so_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # nobody listens there
        address = f"127.0.0.1:{unused.getsockname()[1]}"

        async def case() -> None:
            application = copy(address, "alone", tmp_path, client={"request_timeout_ms": 300})
            with pytest.raises(ConnectionClosed, match="cannot connect"):
                await application.start()

        with caplog.at_level(logging.WARNING, "streams"):
            run(case)
    (message,) = [
        record.getMessage() for record in caplog.records if record.name == "streams.runtime.contact"
    ]
    assert message.startswith(f"alone: cannot connect to {address}: ")
    assert message.endswith("; trying again for 0.3 s")


class Brokers:
    """A client whose connections fail while `error` is set."""

    error: MillstreamError | None = None

    async def connection(self) -> None:
        if self.error is not None:
            raise self.error


def test_an_instance_that_loses_all_brokers_says_so_once_and_when_one_is_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contact, "LOOK_MS", 1)
    brokers = Brokers()
    messages = lambda: [record.getMessage() for record in caplog.records]  # noqa: E731

    async def case() -> None:
        watching = asyncio.create_task(contact.watch_brokers(cast(Client, brokers), "app"))
        brokers.error = KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        await asyncio.sleep(0.01)
        assert not messages()
        brokers.error = ConnectionClosed("cannot connect to b:1")
        await until(lambda: bool(messages()))
        await asyncio.sleep(0.01)
        brokers.error = None
        await until(lambda: len(messages()) > 1)
        watching.cancel()

    with caplog.at_level(logging.WARNING, "streams"):
        run(case)
    assert messages() == ["app: cannot connect to b:1; trying again", "app: connected again"]
