"""mm2.properties, filters and replication policies, as MirrorMaker 2 reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka_client import ConfigEntry
from kafka_client.errors import ConfigError
from mirror.config import parse_links
from mirror.filters import CONFIG_PROPERTIES_EXCLUDE, config_changes, copied_configs, patterns
from mirror.policy import DefaultReplicationPolicy, IdentityReplicationPolicy

BASE = {
    "clusters": "a, b",
    "a.bootstrap.servers": "localhost:1",
    "b.bootstrap.servers": "localhost:2",
    "a->b.enabled": "true",
}


def test_a_flows_own_key_goes_before_everybodys() -> None:
    both = {**BASE, "b->a.enabled": "true", "topics": "x.*", "a->b.topics": "flights, airlines"}
    ab, ba = parse_links(both)
    assert (ab.name, ba.name) == ("a->b", "b->a")
    assert ab.topics.choose(["flights", "x1", "airlines"]) == ["airlines", "flights"]
    assert ba.topics.choose(["flights", "x1"]) == ["x1"]


def test_defaults_are_mirrormakers() -> None:
    (link,) = parse_links(BASE)
    assert link.replication_factor == 2
    assert link.offset_syncs_topic == "mm2-offset-syncs.b.internal"
    assert link.offset_syncs_location == "source"
    assert link.refresh_topics_interval_seconds == 600
    assert link.auto_offset_reset == "earliest"
    assert (link.offset_lag_max, link.emit_offset_syncs) == (100, True)
    assert (link.emit_heartbeats, link.emit_heartbeats_interval_seconds) == (True, 1)
    assert link.groups.emit_checkpoints
    assert link.groups.emit_checkpoints_interval_seconds == 60
    assert link.groups.refresh_interval_seconds == 600
    names = ["orders", "console-consumer-1", "connect-sink", "__internal", "a.connect-"]
    assert [name for name in names if link.groups.groups.takes(name)] == ["orders", "a.connect-"]


def test_the_syncs_topic_is_named_after_the_other_cluster() -> None:
    (link,) = parse_links({**BASE, "offset-syncs.topic.location": "target"})
    assert link.offset_syncs_topic == "mm2-offset-syncs.a.internal"


def test_topics_that_are_never_copied() -> None:
    (link,) = parse_links(BASE)
    topics = ["flights", "__consumer_offsets", "mm2-offset-syncs.b.internal", "x-internal", "x.replica"]
    assert link.topics.choose(topics) == ["flights"]


def test_a_topic_from_the_target_is_not_sent_back() -> None:
    (link,) = parse_links({**BASE, "clusters": "a,b,c", "c.bootstrap.servers": "localhost:3"})
    assert link.topics.choose(["b.flights", "c.b.flights", "c.flights", "d.flights", "bb.flights"]) == [
        "bb.flights",
        "c.flights",
        "d.flights",
    ]


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"clusters": "a"}, "clusters"),
        ({"clusters": "a,b,a"}, "clusters"),
        ({"b.bootstrap.servers": ""}, "b.bootstrap.servers"),
        ({"a->b.enabled": "false"}, "enabled"),
        ({"a->b.enabled": "perhaps"}, "a->b.enabled"),
        ({"topics": "("}, "topics"),
        ({"replication.factor": "two"}, "replication.factor"),
        ({"emit.offset-syncs.enabled": "false"}, "emit.offset-syncs.enabled"),
        ({"groups.exclude": "("}, "groups.exclude"),
        ({"replication.policy.class": "org.example.Own"}, "replication.policy.class"),
        ({"offset-syncs.topic.location": "elsewhere"}, "offset-syncs.topic.location"),
        ({"a->b.source.consumer.auto.offset.reset": "none"}, "a->b.source.consumer.auto.offset.reset"),
        ({"a->b.source.admin.security.protocol": "SSL"}, "a->b.source.admin.security.protocol"),
        ({"a.security.protocol": "SASL"}, "a.security.protocol"),
        ({"a.security.protocol": "SASL_SSL"}, "a.sasl.mechanism"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism"),
        (
            {"a.security.protocol": "SSL", "a.consumer.security.protocol": "SASL_SSL"},
            "a.consumer.security.protocol",
        ),
    ],
)
def test_a_bad_setting_is_named(changes: dict[str, str], key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_links({**BASE, **changes})
    assert caught.value.key == key


def test_policies_name_remote_topics() -> None:
    default = DefaultReplicationPolicy()
    assert default.remote_topic("a", "flights") == "a.flights"
    assert default.upstream_clusters("c.a.flights.2013") == ["c", "a", "flights"]
    assert IdentityReplicationPolicy().remote_topic("a", "flights") == "flights"
    (link,) = parse_links(
        {**BASE, "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}
    )
    assert isinstance(link.policy, IdentityReplicationPolicy)


def test_configs_set_on_the_topic_are_carried_over_but_for_the_excluded() -> None:
    entries = [
        ConfigEntry("retention.ms", "-1", 1),
        ConfigEntry("cleanup.policy", "compact", 1),
        ConfigEntry("message.timestamp.type", "LogAppendTime", 1),
        ConfigEntry("min.insync.replicas", "2", 1),
        ConfigEntry("segment.bytes", "1073741824", 5),
    ]
    copied = copied_configs({e.name: e for e in entries}, patterns("", CONFIG_PROPERTIES_EXCLUDE))
    assert copied == {"retention.ms": "-1", "cleanup.policy": "compact"}


def test_a_config_removed_from_the_source_is_reset_in_the_target() -> None:
    """KIP-894, KAFKA-14420: `retention.ms` went on deleting in the target for ever."""
    exclude = patterns("", CONFIG_PROPERTIES_EXCLUDE)
    current = [
        ConfigEntry("retention.ms", "3600000", 1),
        ConfigEntry("max.message.bytes", "2000000", 1),
        ConfigEntry("min.insync.replicas", "2", 1),
        ConfigEntry("cleanup.policy", "compact", 5),
        ConfigEntry("segment.bytes", "1000", 4),
    ]
    entries = {entry.name: entry for entry in current}
    copied = {"max.message.bytes": "2000000", "cleanup.policy": "compact"}
    assert config_changes(copied, entries, exclude) == {"cleanup.policy": "compact", "retention.ms": None}
    assert config_changes({}, {}, exclude) == {}


def test_defaults_come_from_the_source_on_request() -> None:
    (link,) = parse_links({**BASE, "use.defaults.from": "source"})
    assert link.source_defaults
    entries = {
        "retention.ms": ConfigEntry("retention.ms", "5", 5),
        "segment.bytes": ConfigEntry("segment.bytes", "7", 4),
        "min.insync.replicas": ConfigEntry("min.insync.replicas", "1", 5),
        "x": ConfigEntry("x", "secret", 5, sensitive=True),
    }
    copied = copied_configs(entries, link.config_exclude, source_defaults=True)
    assert copied == {"retention.ms": "5", "segment.bytes": "7"}
    assert copied_configs(entries, link.config_exclude) == {}


def test_keys_without_effect_are_told(caplog: pytest.LogCaptureFixture) -> None:
    """`topcis` leaves `topics` at every topic. Without a flow's name before it, nothing was said of it."""
    properties = {
        "clusters": "a,b",
        "a.bootstrap.servers": "x:1",
        "b.bootstrap.servers": "x:2",
        "a->b.enabled": "true",
        "a->b.topics": "flights",
        "b->a.topics": "others",
        "consumer.auto.offset.reset": "latest",
        "ssl.truststore.type": "PEM",
        "a->b.topcis": "flights",
        "refresh.topic.interval.seconds": "5",
        "a->c.topics": "flights",
        "nonsense": "1",
        "a->b.tasks.max": "3",
        "exactly.once.support": "enabled",
        "a->b.sync.topic.acls.enabled": "true",
        "a->b.producer.compression.type": "zstd",
        "a->b.ssl.truststore.type": "PEM",
        "request.timeout.ms": "5",
        "offset.storage.replication.factor": "1",
    }
    parse_links(properties)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("mirror.")] == [
        "a->b.topcis is not known and has no effect; a->b.topics?",
        "refresh.topic.interval.seconds is not known and has no effect; refresh.topics.interval.seconds?",
        "a->c.topics is not known and has no effect",
        "nonsense is not known and has no effect",
        "without effect here: a->b.producer.compression.type, a->b.ssl.truststore.type, "
        "a->b.sync.topic.acls.enabled, a->b.tasks.max, exactly.once.support, "
        "offset.storage.replication.factor, request.timeout.ms",
    ]


def test_unknown_keys_of_clients_are_told_with_the_nearest(caplog: pytest.LogCaptureFixture) -> None:
    """Below `a.`, `source.consumer.` and their kind a misspelt key was passed over without a word."""
    properties = {
        "a->b.source.consumer.fetch.mim.bytes": "1",
        "source.consumer.auto.ofset.reset": "latest",
        "a.producer.lingr.ms": "5",
        "target.producer.override.compresion.type": "zstd",
        "a->b.target.admin.request.timeot.ms": "1",
        "b.request.timeout": "5",
        "a->b.source.cluster.client.ids": "x",
        "b.consumer.nonsense": "1",
        "a->b.b.topics": "x",
        "topics.blacklist": "secret",
        "b.status.storage.replication.factor": "1",
        "a->b.producer.override.linger.ms": "5",
        "a->b.consumer.fetch.min.bytes": "5",
        "a->b.source.consumer.request.timeout.ms": "5",
        "a.admin.retry.backoff.ms": "5",
        "source.producer.request.timeout.ms": "5",
        "a->b.target.consumer.auto.offset.reset": "latest",
        "b.consumer.request.timeout.ms": "5",
    }
    parse_links(BASE | properties)
    assert [record.getMessage().partition(" is not known")[::2] for record in caplog.records] == [
        ("a->b.source.consumer.fetch.mim.bytes", consumes("a->b.source.consumer.fetch.min.bytes")),
        ("source.consumer.auto.ofset.reset", consumes("source.consumer.auto.offset.reset")),
        ("a.producer.lingr.ms", consumes("a.producer.linger.ms")),
        ("target.producer.override.compresion.type", consumes("target.producer.override.compression.type")),
        ("a->b.target.admin.request.timeot.ms", consumes("a->b.target.admin.request.timeout.ms")),
        ("b.request.timeout", consumes("b.request.timeout.ms")),
        ("a->b.source.cluster.client.ids", consumes("a->b.source.cluster.client.id")),
        ("b.consumer.nonsense", " and has no effect"),
        ("a->b.b.topics", " and has no effect"),
        ("topics.blacklist", consumes("topics.exclude")),
        (
            "without effect here: a->b.consumer.fetch.min.bytes, a->b.producer.override.linger.ms, "
            "a->b.target.consumer.auto.offset.reset, a.admin.retry.backoff.ms, "
            "b.status.storage.replication.factor, source.producer.request.timeout.ms",
            "",
        ),
    ]


def consumes(near: str) -> str:
    return f" and has no effect; {near}?"


def test_a_flow_has_client_keys_of_its_own() -> None:
    """KIP-382: `a.` is a cluster's for every flow, `a->b.source.` a flow's."""
    link, back = parse_links(
        BASE
        | {
            "b->a.enabled": "true",
            "a->b.source.cluster.client.id": "reader",
            "a->b.source.consumer.auto.offset.reset": "latest",
            "a->b.target.producer.request.timeout.ms": "1234",
            "b.consumer.auto.offset.reset": "latest",
            "a.consumer.auto.offset.reset": "earliest",
            "a->b.replication.policy.separator": "_",
            "request.timeout.ms": "5",
        }
    )
    assert link.source.client == {"client_id": "reader"}
    assert back.target.client == {}
    assert (link.target.client, back.source.client) == ({"request_timeout_ms": 1234}, {})
    assert (link.auto_offset_reset, back.auto_offset_reset) == ("latest", "latest")
    assert link.policy.remote_topic("a", "t") == "a_t"
    assert back.policy.remote_topic("b", "t") == "b.t"


def test_a_role_may_name_what_all_roles_share() -> None:
    roles = {f"a.{role}.security.protocol": "SSL" for role in ("admin", "consumer", "producer")}
    (link,) = parse_links(BASE | roles)
    assert link.source.client["security"].protocol == "SSL"


def test_variables_are_resolved_where_they_are_read(tmp_path: Path) -> None:
    """KIP-297. A variable in a key that no flow reads is not looked up: its provider may be away."""
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("topics=flights, airlines\nport=9\nname=_\n")
    properties = {
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
        "topics": f"${{file:{secrets}:topics}}",
        "b.bootstrap.servers": f"localhost:${{file:{secrets}:port}}",
        "replication.policy.separator": f"${{file:{secrets}:name}}",
        "a->b.tasks.max": "${file:/nowhere:x}",
        "b->a.topics": "${file:/nowhere:x}",
    }
    (link,) = parse_links(BASE | properties)
    assert link.topics.choose(["flights", "others"]) == ["flights"]
    assert link.target.bootstrap_servers == "localhost:9"
    assert link.policy.remote_topic("a", "t") == "a_t"
    with pytest.raises(ConfigError) as caught:
        parse_links(BASE | properties | {"b->a.enabled": "true"})
    assert caught.value.key == "b->a.topics"
