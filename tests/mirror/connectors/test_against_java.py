"""Kafka's MirrorMaker connectors and ours: settings, errors of configs, tasks, clients, and checkpoints.

The questions follow the tables of MirrorSourceConnectorTest, MirrorSourceConfigTest,
MirrorConnectorConfigTest, MirrorCheckpointConnectorTest and MirrorCheckpointTaskTest, and random ones follow.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from connect.config import Config, SourceConfig
from kafka_client import OffsetAndMetadata, TopicPartition
from mirror.checkpoints.group_offsets import offsets_to_commit
from mirror.checkpoints.latest import LatestCheckpoints, translated
from mirror.client_keys import ROLES, ClientKeys, Side
from mirror.connectors import MirrorSourceConnector
from mirror.connectors.assignment import groups_by_task, partitions_by_task, partitions_text
from mirror.connectors.settings import (
    WITHOUT_EFFECT,
    MirrorCheckpointConfig,
    MirrorHeartbeatConfig,
    MirrorSourceConfig,
)
from mirror.offsets import OffsetSync
from mirror.records.checkpoint import Checkpoint
from mirror.syncs.store import OffsetSyncStore
from tests.support import java

pytestmark = java.needs_jar("connect-mirror")
SEED = 31
TP, REMOTE = TopicPartition("t", 0), TopicPartition("a.t", 0)
CONFIGS: dict[str, type[Config]] = {
    "Source": MirrorSourceConfig,
    "Checkpoint": MirrorCheckpointConfig,
    "Heartbeat": MirrorHeartbeatConfig,
}
BASE = {
    "name": "m",
    "connector.class": "Mirror",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "localhost:1",
    "target.cluster.bootstrap.servers": "localhost:2",
}
DIFFERENT_DEFAULTS = {"topics.exclude", "config.properties.exclude"}
"""Kafka 4.3 has `mm2.*\\.internal`, and names of topic configs that no topic has (`log.message…`)."""
UNDECLARED = {
    *("source.cluster.bootstrap.servers", "target.cluster.bootstrap.servers", "heartbeats.topic.name"),
    *("topics", "topics.exclude", "use.defaults.from", "skip.unreadable.batches"),
    "offset-syncs.topic.replication.factor",
}
"""Keys that Kafka's plugins read without declaring them. `skip.unreadable.batches` is ours, and so is that
our checkpoint connector creates the offset-syncs topic.
"""


def ask(questions: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the words that MirrorConnectors.java answers to each question."""
    lines = java.run_program("MirrorConnectors", stdin="\n".join(map("\t".join, questions))).split("\n")
    answers = [line for line in lines if not line.startswith("[main]")]
    assert len(answers) >= len(questions)
    return [answer.split("\t") if answer else [] for answer in answers[: len(questions)]]


def described(key: str, config: type[Config]) -> str:
    declared = config.settings()[key]
    default = declared.spec.default
    if isinstance(default, list):
        default = ",".join(default)
    text = "required" if declared.required else str(default).lower() if default in (True, False) else default
    return f"{key} {declared.kind} {declared.spec.importance} {text}"


def test_settings_have_kafkas_types_and_defaults() -> None:
    answers = ask([("settings", kind) for kind in CONFIGS])
    for config, words in zip(CONFIGS.values(), answers, strict=True):
        theirs = {word.split(" ")[0]: word.replace(" SHORT ", " INT ") for word in words}
        ours = config.settings().keys()
        assert ours - theirs.keys() <= UNDECLARED
        for key in ours & theirs.keys() - DIFFERENT_DEFAULTS:
            assert described(key, config) == theirs[key]
        missing = theirs.keys() - ours - SourceConfig.settings().keys()
        others = ("config.", "transforms", "predicates", "consumer.", "key.", "value.", "header.")
        assert all(key.startswith((*WITHOUT_EFFECT, *others)) for key in missing), missing


CHOICES = {
    "enabled": ("true", "false", "maybe"),
    "emit.offset-syncs.enabled": ("true", "false", "no"),
    "emit.checkpoints.enabled": ("true", "false"),
    "sync.group.offsets.enabled": ("true", "false"),
    "offset-syncs.topic.location": ("source", "target", "here"),
    "offset-syncs.topic.replication.factor": ("1", "3"),
    "offset.lag.max": ("0", "-1", "1.5"),
    "replication.factor": ("3", "two"),
    "replication.policy.class": ("org.apache.kafka.connect.mirror.IdentityReplicationPolicy",),
    "refresh.topics.interval.seconds": ("5", "-1", "soon"),
    "emit.heartbeats.interval.seconds": ("1", "x"),
    "sync.topic.acls.enabled": ("true", "false"),
    "source.cluster.alias": ("a", "b"),
    "topics": ("x,y", ""),
}


def random_config(source: random.Random) -> dict[str, str]:
    keys = source.sample(sorted(CHOICES), source.randrange(1, 5))
    return {key: source.choice(CHOICES[key]) for key in keys}


def test_the_same_configs_are_refused_for_the_same_keys() -> None:
    source = random.Random(SEED)
    configs = [(source.choice(list(CONFIGS)), random_config(source)) for _ in range(400)]
    configs += [(kind, {"replication.policy.class": "Missing"}) for kind in CONFIGS]
    questions = [("validate", kind, *(f"{k}={v}" for k, v in config.items())) for kind, config in configs]
    refused = 0
    for (kind, config), words in zip(configs, ask(questions), strict=True):
        theirs = {word.partition("=")[0] for word in words}
        ours = {error.key for error in CONFIGS[kind].examine(BASE | config)[1]}
        assert ours == theirs, (kind, config, words)
        refused += bool(ours)
    assert 100 < refused < 350


@pytest.mark.parametrize("value", ["read_committed", "read_uncommitted"])
@pytest.mark.parametrize("key", ["consumer.isolation.level", "source.consumer.isolation.level"])
def test_exactly_once_needs_committed_reads(key: str, value: str) -> None:
    ((theirs,),) = ask([("exactly-once", f"{key}={value}")])
    assert MirrorSourceConnector().exactly_once_support(BASE | {key: value}) == (theirs == "SUPPORTED")


def test_work_is_split_over_the_same_tasks() -> None:
    source = random.Random(SEED)
    questions, ours = [], []
    for _ in range(40):
        count, most = source.randrange(1, 30), source.randrange(1, 12)
        tps = [TopicPartition(f"t-{source.randrange(3)}", n) for n in range(count)]
        groups = [f"g{n}" for n in range(count)]
        questions.append(("partitions", str(most), *partitions_text(tps).split(",")))
        ours.append([partitions_text(share) for share in partitions_by_task(tps, most)])
        questions.append(("groups", str(most), *groups))
        ours.append([",".join(share) for share in groups_by_task(groups, most)])
    assert ask(questions) == ours


def test_the_clients_of_a_connector_have_the_same_keys() -> None:
    source = random.Random(SEED)
    sides: tuple[Side, ...] = ("source", "target")
    # Without a prefix keys of TLS and SASL have no effect, and `flow_of` leaves them out.
    prefixes = [*(f"{role}." for role in ROLES), *(f"{side}.cluster." for side in sides)]
    prefixes += [f"{side}.{role}." for side in sides for role in ROLES]
    values = {"security.protocol": ("SSL", "SASL_SSL"), "request.timeout.ms": ("1", "2", "3")}
    configs = [
        # Kafka reads only TLS, SASL and the servers below `source.cluster.`, here all keys of clients count.
        {
            prefix + key: source.choice(choices)
            for prefix in prefixes
            for key, choices in values.items()
            if source.randrange(2) and (".cluster." not in prefix or key == "security.protocol")
        }
        for _ in range(100)
    ]
    answers = ask([("clients", *(f"{k}={v}" for k, v in config.items())) for config in configs])
    for config, theirs in zip(configs, answers, strict=True):
        ours = []
        for side, alias in zip(sides, "ab", strict=True):
            keys = ClientKeys(properties=BASE | config, flow="a->b.", side=side, alias=alias)
            for role in ROLES:
                of_role = keys.of_role(role).values
                ours += [f"{side}.{role}.{key}={of_role[key]}" for key in values if key in of_role]
        assert sorted(ours) == [word for word in theirs if not word.endswith("=PLAINTEXT")], config


def history(source: random.Random) -> list[str]:
    """Return syncs, committed offsets that go back at times, and restarts that lose older syncs."""
    words, upstream, downstream, group = [], source.randrange(50), 0, 0
    for _ in range(source.randrange(5, 60)):
        upstream += source.randrange(1, 120)
        downstream += source.randrange(1, 100)
        words.append(f"{upstream}:{downstream}")
        if not source.randrange(8):
            words.append("restart")
        if source.randrange(2):
            group = max(group + source.randrange(-100, 200), 0)
            words.append(f"?{group}")
    return words


def our_checkpoints(words: Sequence[str]) -> list[str]:
    store, latest, answers = OffsetSyncStore(), LatestCheckpoints(), []
    store.finish_loading()
    for word in words:
        if word == "restart":
            store = OffsetSyncStore()
            store.finish_loading()
        elif word.startswith("?"):
            committed = {TP: OffsetAndMetadata(int(word[1:]))}
            new = latest.new(translated("g", committed, store.translate, lambda topic: f"a.{topic}"))
            latest.update(new)
            answers.append("".join(f"{c.upstream_offset}:{c.downstream_offset}" for c in new) or "none")
        else:
            upstream, downstream = map(int, word.split(":"))
            store.add(OffsetSync(TP, upstream, downstream, upstream, downstream))
    return answers


def test_the_same_checkpoints_are_written() -> None:
    source = random.Random(SEED)
    syncs = [f"{n}:{n}" for n in (100, 200, 300)]
    later = [f"{n}:{n}" for n in range(175, 500, 100)]
    histories = [[*syncs, "?250", "restart", *later, "?250", "?370", "?400"]]
    histories += [history(source) for _ in range(300)]
    answers = ask([("checkpoints", *words) for words in histories])
    assert answers[0] == ["250:201", "none", "none", "400:376"], "as in MirrorCheckpointTaskTest"
    for words, theirs in zip(histories, answers, strict=True):
        assert our_checkpoints(words) == theirs, words
    flat = [word for answer in answers for word in answer]
    assert flat.count("none") > 300 and len(set(flat)) > 300


def test_the_same_offsets_are_committed_in_the_target() -> None:
    source = random.Random(SEED)
    pairs = [("100", 101), ("50", 51), ("none", 5), ("null", 101), ("7", 6), ("6", 6)]
    pairs += [(str(source.randrange(9)), source.randrange(9)) for _ in range(30)]
    (theirs,) = ask([("commits", *(f"{current}:{downstream}" for current, downstream in pairs))])
    checkpoints, current = {}, {}
    for number, (offset, downstream) in enumerate(pairs):
        tp = TopicPartition("t", number)
        checkpoints[tp] = Checkpoint("g", tp, 1000, downstream)
        if offset not in ("none", "null"):  # Admin leaves out partitions without an offset
            current[tp] = OffsetAndMetadata(int(offset))
    ours = offsets_to_commit(checkpoints, current)
    answers = [str(ours[tp].offset) if tp in ours else "none" for tp in checkpoints]
    assert answers == theirs
