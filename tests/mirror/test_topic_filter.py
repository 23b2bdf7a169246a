"""Which topics a flow copies: no copies of copies, no topics of a mirror's own, and heartbeats always."""

from __future__ import annotations

import pytest

from kafka_client.errors import ConfigError
from mirror.config import LinkSettings, parse_links
from mirror.policy import DefaultReplicationPolicy, ReplicationPolicy

IDENTITY = {"replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"}


def flow(source: str, target: str, **changes: str) -> LinkSettings:
    (link,) = parse_links(
        {
            "clusters": f"{source},{target}",
            f"{source}.bootstrap.servers": "x:1",
            f"{target}.bootstrap.servers": "x:2",
            f"{source}->{target}.enabled": "true",
            **{key.replace("_", "."): value for key, value in changes.items()},
        }
    )
    return link


def refreshed(flows: list[tuple[LinkSettings, str, str]], topics: dict[str, set[str]], times: int = 5) -> int:
    """Let each flow copy `topics` of one cluster to another several times; the most prefixes of a name."""
    for _ in range(times):
        for link, source, target in flows:
            chosen = link.topics.choose(topics[source])
            topics[target] |= {link.policy.remote_topic(link.source.alias, topic) for topic in chosen}
    return max(topic.count(".") for names in topics.values() for topic in names)


def test_a_ring_of_flows_in_several_files_ends_where_it_began() -> None:
    ring = [(flow("a", "b"), "A", "B"), (flow("b", "c"), "B", "C"), (flow("c", "a"), "C", "A")]
    assert refreshed(ring, {"A": {"t"}, "B": set(), "C": set()}) == 2


def test_one_cluster_under_two_aliases_is_copied_once() -> None:
    """KAFKA-9914: kafka.kafka.kafka.t, and so on at every look for topics."""
    assert refreshed([(flow("kafka", "backup"), "A", "A")], {"A": {"t"}}) == 1


def test_two_sides_that_both_call_the_other_remote_copy_once() -> None:
    two = [(flow("remote", "local"), "A", "B"), (flow("remote", "local"), "B", "A")]
    assert refreshed(two, {"A": {"t"}, "B": {"u"}}) == 1


@pytest.mark.parametrize("separator", [".", "_", "--"])
def test_every_prefix_is_walked(separator: str) -> None:
    link = flow("source", "target", replication_policy_separator=separator)
    names = ("target.x", "target.source.x", "source.target.x", "other.target.x", "a.b.target.c.x", "source.x")
    assert [link.topics.takes(name.replace(".", separator)) for name in names] == [False] * len(names)
    names = ("x", "other.x", "other.another.x", "targets.x", "x.target")
    assert [link.topics.takes(name.replace(".", separator)) for name in names] == [True] * len(names)


def test_identity_has_no_cycle_check_except_for_heartbeats() -> None:
    link = flow("source", "target", **IDENTITY)
    names = ("target.x", "target.source.x", "source.target.x", "x", "othersource.x", "heartbeats")
    assert all(map(link.topics.takes, names))
    assert link.topics.takes("othersource.heartbeats")
    assert not any(map(link.topics.takes, ("target.heartbeats", "source.target.source.heartbeats")))


@pytest.mark.parametrize("separator", [".", "_"])
@pytest.mark.parametrize("exclude", ["", "nothing", "secret.*"])
def test_internal_topics_are_excluded_whatever_the_filter(exclude: str, separator: str) -> None:
    """With an own `topics.exclude` a mirror copied its own offset syncs, a record a second to itself."""
    changes = {"topics_exclude": exclude, "replication_policy_separator": separator}
    link = flow("a", "b", **changes)
    assert link.offset_syncs_topic == f"mm2-offset-syncs{separator}b{separator}internal"
    own = [
        link.offset_syncs_topic,
        f"c{separator}{link.offset_syncs_topic}",
        link.policy.checkpoints_topic("a"),
        "mm2-offset-syncs.b.internal",
        "mm2-configs.b.internal",
        "mm2-offsets-b-internal",
        "__consumer_offsets",
        ".hidden",
    ]
    assert link.topics.choose(own) == []
    assert link.topics.choose(["flights", "internal"]) == ["flights", "internal"]


def test_heartbeats_are_copied_despite_the_filter_unless_switched_off() -> None:
    link = flow("a", "b", topics="flights")
    names = ["flights", "heartbeats", "c.heartbeats", "b.heartbeats", "others"]
    assert link.topics.choose(names) == ["c.heartbeats", "flights", "heartbeats"]
    link = flow("a", "b", topics="flights", heartbeats_replication_enabled="false")
    assert link.topics.choose(names) == ["flights"]
    link = flow("a", "b", topics="flights", heartbeats_topic_name="beats")
    assert link.topics.choose([*names, "c.beats"]) == ["c.beats", "flights"]


class Backwards(ReplicationPolicy):
    """A user's own policy: the alias follows the name."""

    def remote_topic(self, source: str, topic: str) -> str:
        return f"{topic}-from-{source}"

    def topic_source(self, topic: str) -> str | None:
        name, _, source = topic.rpartition("-from-")
        return source if name else None

    def upstream_topic(self, topic: str) -> str | None:
        return topic.rpartition("-from-")[0] or None


def test_a_users_own_policy() -> None:
    link = flow("a", "b", replication_policy_class=f"{__name__}.Backwards")
    assert link.policy.remote_topic("a", "t") == "t-from-a"
    assert link.policy.upstream_clusters("t-from-b-from-c") == ["c", "b"]
    assert link.policy.original_topic("t-from-b-from-c") == "t"
    assert link.topics.choose(["t", "t-from-b", "t-from-b-from-c", "t-from-c"]) == ["t", "t-from-c"]
    assert link.policy.is_heartbeats_topic("heartbeats-from-c")


@pytest.mark.parametrize(
    "name", ["Nothing", "tests.mirror.test_topic_filter.flow", "tests.mirror.nothing.Policy", "org.x.Own"]
)
def test_a_policy_that_is_none_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=r"replication\.policy\.class.*ReplicationPolicy"):
        flow("a", "b", replication_policy_class=name)


def test_a_separator_is_not_empty() -> None:
    with pytest.raises(ConfigError, match=r"replication\.policy\.separator"):
        flow("a", "b", replication_policy_separator="")
    assert DefaultReplicationPolicy().upstream_clusters("flights") == []
