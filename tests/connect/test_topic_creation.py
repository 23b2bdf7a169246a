"""KIP-158: which rule a topic is created by."""

import pytest

from connect.errors import ConfigError
from connect.runtime.topic_creation import creation_rules

DEFAULT = {"topic.creation.default.partitions": "4", "topic.creation.default.replication.factor": "1"}


def test_no_rules_leave_it_to_the_broker():
    assert creation_rules({"topic": "t"}) == []


def test_the_default_rule_takes_any_topic_config():
    (rule,) = creation_rules({**DEFAULT, "topic.creation.default.cleanup.policy": "compact"})
    assert rule.fits("anything")
    assert (rule.partitions, rule.replication_factor) == (4, 1)
    assert rule.configs == {"cleanup.policy": "compact"}


def test_groups_come_first_in_their_order_and_inherit_counts():
    rules = creation_rules(
        {
            **DEFAULT,
            "topic.creation.groups": "tables, logs",
            "topic.creation.tables.include": "a.*, b",
            "topic.creation.tables.exclude": "ab",
            "topic.creation.tables.partitions": "1",
            "topic.creation.logs.include": ".*b",
            "topic.creation.logs.retention.ms": "-1",
        }
    )
    chosen = {t: next(i for i, r in enumerate(rules) if r.fits(t)) for t in ("ax", "b", "ab", "bb", "c")}
    assert chosen == {"ax": 0, "b": 0, "ab": 1, "bb": 1, "c": 2}
    assert [(r.partitions, r.replication_factor) for r in rules] == [(1, 1), (4, 1), (4, 1)]
    assert rules[1].configs == {"retention.ms": "-1"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"topic.creation.groups": "a", "topic.creation.a.include": "x"},
        {**DEFAULT, "topic.creation.groups": "a"},
        {**DEFAULT, "topic.creation.default.partitions": "0"},
        {**DEFAULT, "topic.creation.default.partitions": "x"},
        {**DEFAULT, "topic.creation.groups": "a", "topic.creation.a.include": "("},
    ],
)
def test_rules_that_cannot_be(wrong):
    with pytest.raises(ConfigError):
        creation_rules(wrong)
