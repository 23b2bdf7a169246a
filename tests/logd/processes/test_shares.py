"""Tests of the settings that each of several brokers on one host gets."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from logd.config.broker import BrokerConfig
from logd.config.load import from_properties
from logd.processes.shares import shares

CLUSTER = {"zookeeper.connect": "zk:2181/kafka"}


def config(**settings: str) -> BrokerConfig:
    return from_properties(CLUSTER | {key.replace("_", "."): value for key, value in settings.items()}).config


def shared(count: int, **settings: str) -> list[dict[str, str]]:
    return [
        dict(override.split("=", 1) for override in share.overrides)
        for share in shares(config(**settings), count)
    ]


def test_each_has_its_own(tmp_path: Path) -> None:
    first, second = shared(
        2,
        broker_id="4",
        log_dirs=f"{tmp_path}/a,{tmp_path}/b",
        listeners="PLAINTEXT://127.0.0.1:9092,INNER://[::1]:9192",
        listener_security_protocol_map="PLAINTEXT:PLAINTEXT,INNER:PLAINTEXT",
        advertised_listeners="PLAINTEXT://kafka.example:19092",
        millstream_http_listener="127.0.0.1:9464",
    )
    rack = socket.gethostname()
    assert first == {
        "node.id": "4",
        "broker.rack": rack,
        "log.dirs": f"{tmp_path}/a/4,{tmp_path}/b/4",
        "listeners": "PLAINTEXT://127.0.0.1:9092,INNER://[::1]:9192",
        "advertised.listeners": "PLAINTEXT://kafka.example:19092",
        "millstream.http.listener": "127.0.0.1:9464",
    }
    assert second == {
        "node.id": "5",
        "broker.rack": rack,
        "log.dirs": f"{tmp_path}/a/5,{tmp_path}/b/5",
        "listeners": "PLAINTEXT://127.0.0.1:9093,INNER://[::1]:9193",
        "advertised.listeners": "PLAINTEXT://kafka.example:19093",
        "millstream.http.listener": "127.0.0.1:9465",
    }


def test_a_rack_and_free_ports_stay(tmp_path: Path) -> None:
    overrides = shared(3, broker_rack="r1", listeners="PLAINTEXT://:0", log_dirs=str(tmp_path))
    assert [each["broker.rack"] for each in overrides] == ["r1"] * 3
    assert [each["listeners"] for each in overrides] == ["PLAINTEXT://:0"] * 3


def test_what_cannot_be_shared_out_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"give zookeeper\.connect"):
        shares(from_properties({"log.dirs": str(tmp_path)}).config, 2)
    with pytest.raises(ConfigError, match="ports that are 2 apart"):
        shared(2, log_dirs=str(tmp_path), listeners="PLAINTEXT://:9092,SSL://:9093")
    with pytest.raises(ConfigError, match="a port up to 65535"):
        shared(2, log_dirs=str(tmp_path), listeners="PLAINTEXT://:65535")
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(ConfigError, match=f"move what is in it to {tmp_path}/7, and broker 7"):
        shared(2, log_dirs=str(tmp_path), node_id="7")
