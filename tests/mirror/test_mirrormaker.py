"""Offset syncs, names and filters held to MirrorMaker's own, as tests/java/MirrorMaker.java prints them.

With REWRITE=1 in the environment the golden file is written again. `DIFFERENCES` lists where ours differs.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafka_client import ConfigEntry, TopicPartition
from mirror.config import parse_links
from mirror.filters import copied_configs
from mirror.offsets import OffsetSync, decode_sync, encode_sync
from mirror.policy import ReplicationPolicy, policy_named
from tests.mirror.pair import Pair
from tests.support import java

GOLDEN = Path(__file__).parent / "golden" / "mirrormaker.txt"
LINES = GOLDEN.read_text(encoding="utf-8").splitlines()
SET_ON_TOPIC = 1
(DEFAULTS,) = parse_links(
    {
        key: value
        for key, value in Pair("127.0.0.1:1", "127.0.0.1:2").properties("").items()
        if not key.endswith(".topics")
    }
)
"""A link from dc1 to dc2 with nothing set that has a default."""

DIFFERENCES = {
    # Kafka 4 leaves out by default what begins with mm2 and ends with .internal (KIP-1074); ours, as
    # MirrorMaker did before, all that ends with .internal or -internal.
    "topic flights.internal": "false",
    "topic flights-internal": "false",
    "topic dc1.checkpoints.internal": "false",
    # MirrorMaker knows the setting these replaced, and copies them; ours leaves out both.
    "config message.timestamp.before.max.ms": "false",
    "config message.timestamp.after.max.ms": "false",
}
"""Our answer by question, where MirrorMaker's answer is another one."""


def ours(line: str) -> str:
    """Return our answer to a line of the golden file: its last word, or the last two of a sync."""
    match line.split(" "):
        case ["sync", topic, partition, upstream, downstream, *_]:
            at = int(upstream), int(downstream)
            _, key, value, _ = encode_sync(OffsetSync(TopicPartition(topic, int(partition)), *at, *at), 5)
            assert key is not None and value is not None
            return f"{key.hex()} {value.hex()}"
        case ["remote", policy, separator, source, topic, _]:
            return policy_named(policy, {"replication.policy.separator": separator}).remote_topic(
                source, topic
            )
        case ["policy", policy, separator, internal, topic, _]:
            return facts(configured(policy, separator, internal), topic)
        case ["topics", policy, separator, internal, _]:
            names = configured(policy, separator, internal)
            return "|".join(
                (names.offset_syncs_topic("dc2"), names.checkpoints_topic("dc1"), names.heartbeats_topic())
            )
        case ["syncs", separator, _, _]:
            properties = Pair("127.0.0.1:1", "127.0.0.1:2").properties("x")
            (link,) = parse_links(properties | {"replication.policy.separator": separator})
            return link.offset_syncs_topic
        case ["topic", topic, _]:
            return str(DEFAULTS.topics.names.takes(topic)).lower()
        case ["config", key, _]:
            entry = ConfigEntry(key, "1", SET_ON_TOPIC)
            return str(key in copied_configs({key: entry}, DEFAULTS.config_exclude)).lower()
    raise AssertionError(line)


def configured(policy: str, separator: str, internal: str) -> ReplicationPolicy:
    return policy_named(
        policy,
        {
            "replication.policy.separator": separator,
            "replication.policy.internal.topic.separator.enabled": internal,
            "source.cluster.alias": "dc1",
        },
    )


def facts(policy: ReplicationPolicy, topic: str) -> str:
    """Return what the policy says of a topic, in the words of MirrorMaker.java."""
    names = policy.topic_source(topic), policy.upstream_topic(topic), policy.original_topic(topic)
    kinds = (
        policy.is_mirror_internal_topic(topic),
        policy.is_internal_topic(topic),
        policy.is_checkpoints_topic(topic),
        policy.is_heartbeats_topic(topic),
    )
    return "|".join(["null" if n is None else n for n in names] + [str(kind).lower() for kind in kinds])


@pytest.mark.parametrize("line", LINES)
def test_ours_is_mirrormakers(line: str) -> None:
    question, _, answer = line.rpartition(" ")
    if line.startswith("sync "):
        question, _, key = question.rpartition(" ")
        answer = f"{key} {answer}"
    assert DIFFERENCES.get(question) != answer, "no difference any more"
    assert ours(line) == DIFFERENCES.get(question, answer)


def test_mirrormakers_syncs_are_read() -> None:
    for line in LINES:
        if line.startswith("sync "):
            _, topic, partition, upstream, downstream, key, value = line.split(" ")
            at = int(upstream), int(downstream)
            sync = OffsetSync(TopicPartition(topic, int(partition)), *at, *at)
            assert decode_sync(bytes.fromhex(key), bytes.fromhex(value)) == sync


@java.needs_jar("connect-mirror")
def test_mirrormaker_says_so() -> None:
    output = java.run_program("MirrorMaker")
    if os.environ.get("REWRITE"):
        GOLDEN.write_text(output, encoding="utf-8")
    assert output == GOLDEN.read_text(encoding="utf-8")
