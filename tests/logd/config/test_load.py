from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client.errors import ConfigError
from logd.config.broker import AUTHORIZERS
from logd.config.load import from_properties, load_config


def test_overrides_win_over_the_file(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=3\nlog.dirs=/a,/b\n")
    loaded = load_config(path, ["num.partitions=5"])
    assert loaded.config.num_partitions == 5
    assert loaded.config.log_dirs == ("/a", "/b")
    assert loaded.notes == loaded.warnings == []


def test_a_file_that_cannot_be_read_is_a_config_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config"):
        load_config(tmp_path / "missing")


def test_an_unknown_key_is_a_warning_with_the_nearest_known_one() -> None:
    loaded = from_properties({"num.partition": "3", "qqqqq": "1"})
    assert loaded.warnings == [
        "unknown setting num.partition; did you mean num.partitions?",
        "unknown setting qqqqq",
    ]
    assert loaded.config.num_partitions == 1


def test_more_replicas_than_there_are_is_a_note() -> None:
    loaded = from_properties({"min.insync.replicas": "2"})
    assert loaded.notes == [
        "min.insync.replicas=2: no effect, a standalone broker has one replica of each partition"
    ]
    assert not loaded.warnings
    in_a_cluster = {
        "min.insync.replicas": "2",
        "zookeeper.connect": "127.0.0.1:2181",
    }
    assert not from_properties(in_a_cluster).notes


def test_old_names_are_taken_with_a_note_of_todays() -> None:
    loaded = from_properties(
        {
            "log.dir": "/data",
            "host.name": "10.0.0.1",
            "port": "9192",
            "advertised.host.name": "broker.example",
            "log.cleaner.min.cleanable.ratio": "0.7",
            "replica.lag.max.messages": "4000",
            "max.message.size": "2000000",
        }
    )
    config = loaded.config
    assert config.log_dirs == ("/data",)
    assert config.listeners == ("PLAINTEXT://10.0.0.1:9192",)
    assert config.advertised_listeners == ("PLAINTEXT://broker.example:9192",)
    assert config.topic_defaults.min_cleanable_dirty_ratio == 0.7
    assert config.topic_defaults.max_message_bytes == 2_000_000
    assert loaded.warnings == []
    notes = "\n".join(loaded.notes)
    for today in (
        "log.dir is called log.dirs today",
        "port is part of listeners today",
        "advertised.host.name is part of advertised.listeners today",
        "min.cleanable.dirty.ratio",
        "replica.lag.time.max.ms",
        "message.max.bytes",
    ):
        assert today in notes


def test_todays_name_wins_over_an_old_one() -> None:
    assert from_properties({"log.dir": "/old", "log.dirs": "/new"}).config.log_dirs == ("/new",)


def test_broker_id_and_node_id_are_the_same() -> None:
    assert from_properties({"broker.id": "7"}).config.node_id == 7


def test_an_old_name_with_a_bad_value_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match=r"log\.retention\.check\.interval\.ms=often"):
        from_properties({"log.cleanup.interval.mins": "often"})


def test_stock_kraft_properties_are_taken() -> None:
    loaded = from_properties(
        {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": "1@localhost:9093",
            "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            "controller.listener.names": "CONTROLLER",
            "num.network.threads": "3",
            "share.coordinator.state.topic.min.isr": "1",
        }
    )
    assert loaded.warnings == []
    assert "process.roles: no effect in logd" in loaded.notes
    assert any(
        note.startswith("num.network.threads: Without effect: one event loop") for note in loaded.notes
    )


@pytest.mark.parametrize(
    "key",
    ["sasl.enabled.mechanism", "ssl.keystore.place", "authorizer.class.name", "listener.name.x.ssl.key"],
)
def test_security_settings_are_refused_rather_than_left_aside(key: str) -> None:
    with pytest.raises(ConfigError, match=key):
        from_properties({key: "x"})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("principal.builder.class", "org.example.Builder"),
        ("allow.everyone.if.no.acl.found", "false"),
        ("super.users", "User:admin"),
        ("create.topic.policy.class.name", "org.example.Policy"),
        ("delegation.token.secret.key", "s"),
    ],
)
def test_a_false_sense_of_security_is_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match="take it out"):
        from_properties({key: value})


def test_what_promises_nothing_is_taken() -> None:
    default = "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
    for key, value in (("security.inter.broker.protocol", "SSL"), ("principal.builder.class", default)):
        assert any(key in note for note in from_properties({key: value}).notes)
    assert from_properties({"allow.everyone.if.no.acl.found": "true"}).warnings == []


@pytest.mark.parametrize("name", AUTHORIZERS)
def test_an_authorizer(name: str) -> None:
    loaded = from_properties({"authorizer.class.name": name, "super.users": "User:CN=a,O=b; User:c"})
    assert loaded.config.authorizer_class_name == name
    assert loaded.config.super_user_names == ("User:CN=a,O=b", "User:c")
    assert (loaded.notes, loaded.warnings) == ([], [])


@pytest.mark.parametrize(
    ("key", "value"), [("authorizer.class.name", "org.example.Mine"), ("super.users", "admin")]
)
def test_an_authorizer_that_does_not_exist(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key):
        from_properties({"authorizer.class.name": AUTHORIZERS[0], key: value})
