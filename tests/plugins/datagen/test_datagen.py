"""The datagen source: shapes, determinism, resumption, pace."""

import json

import pytest

from connect.api import ConfigError
from connect.testing import SourceRun
from plugins.datagen import ConfluentDatagen, DatagenSource
from plugins.pacing import Pace

USERS = {"topic": "users", "quickstart": "users", "iterations": "2500"}


def values(run):
    return [record.value for record in run.records()]


def run(config, connector=DatagenSource, **options):
    started = SourceRun(connector, config, **options)
    try:
        return started.records()
    finally:
        started.stop()


@pytest.mark.parametrize(
    ("name", "key"), [("users", "userid"), ("orders", "orderid"), ("pageviews", "viewtime")]
)
def test_a_quickstart_has_its_fields_and_its_key(name, key):
    records = run({"topic": "t", "quickstart": name, "iterations": "5"})
    assert len(records) == 5
    for record in records:
        record.value_schema.check(record.value)
        record.key_schema.check(record.key)
        assert record.key == record.value[key]


def test_the_seed_decides_the_contents():
    first, again, other = run(USERS), run(USERS), run({**USERS, "random.seed": "1"})
    assert [r.value for r in first] == [r.value for r in again]
    assert [r.value for r in first] != [r.value for r in other]


def test_tasks_make_different_records():
    config = {"topic": "t", "fields": '{"n": "long"}', "iterations": "3"}
    records = run(config, max_tasks=2)
    assert len({r.value["n"] for r in records}) == 6


def test_a_restart_goes_on_with_the_next_record():
    """A restart goes on at the exact record, also within a block of random numbers."""
    whole = [r.value for r in run(USERS)]
    started = SourceRun(DatagenSource, {**USERS, "batch.size": "700"})
    before = [r.value for _ in range(2) for r in started.poll()]
    started.commit()
    started = started.again()
    after = values(started)
    started.stop()
    assert len(before) == 1400
    assert before + after == whole


def test_nothing_comes_after_the_last_iteration():
    started = SourceRun(DatagenSource, USERS)
    started.records()
    started.commit()
    started = started.again()
    assert started.records() == []
    assert started.tasks[0].context.is_finished
    started.stop()


def test_records_go_to_the_topics_in_turn():
    records = run({"topics": "a,b", "fields": '{"x": "boolean"}', "iterations": "4"})
    assert [r.topic for r in records] == ["a", "b", "a", "b"]


def test_rules_of_fields():
    fields = {
        "id": {"type": "int", "iteration": {"start": 10, "step": 5, "restart": 20}},
        "price": {"type": "double", "range": {"min": 1, "max": 2}},
        "tags": {"type": "array", "length": {"min": 1, "max": 2}, "items": {"options": ["a"]}},
        "at": {"type": "record", "fields": {"city": {"regex": "City_[1-9]"}}},
    }
    records = run({"topic": "t", "fields": json.dumps(fields), "iterations": "4", "key.field": "id"})
    assert [r.key for r in records] == [10, 15, 10, 15]
    for record in records:
        record.value_schema.check(record.value)
        assert 1 <= record.value["price"] < 2
        assert record.value["tags"] in (["a"], ["a", "a"])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"fields": "{}"}, "object of fields"),
        ({"fields": "["}, "fields"),
        ({"fields": '{"a": {"type": "uuid"}}'}, "field a: type 'uuid'"),
        ({"fields": '{"a": {"rule": 1}}'}, "field a: no such rule: rule"),
        ({"fields": '{"a": {"type": "int", "options": ["x"]}}'}, "field a"),
        ({"fields": '{"a": {"type": "int", "range": {"min": 3, "max": 3}}}'}, "below max"),
        ({"quickstart": "users", "key.field": "id"}, "none of registertime"),
        ({"quickstart": "users", "fields": '{"a": "int"}'}, "exactly one"),
        ({"quickstart": "users", "topics": "x"}, "exactly one"),
    ],
)
def test_a_wrong_config_is_named(config, message):
    with pytest.raises(ConfigError, match=message):
        DatagenSource.CONFIG.parse({"topic": "t", **config})


def test_confluent_keys_make_the_same_records():
    config = {"kafka.topic": "users", "quickstart": "users", "iterations": "20", "max.interval": "0"}
    ours = run({**USERS, "iterations": "20"})
    assert [r.value for r in run(config, ConfluentDatagen)] == [r.value for r in ours]


def test_confluent_schema_with_properties(tmp_path):
    schema = {
        "type": "record",
        "name": "purchase",
        "fields": [
            {"name": "id", "type": {"type": "long", "arg.properties": {"iteration": {"start": 0}}}},
            {"name": "item", "type": {"type": "string", "arg.properties": {"options": ["tea", "mate"]}}},
            {"name": "open", "type": "boolean"},
        ],
    }
    (tmp_path / "purchase.avsc").write_text(json.dumps(schema))
    config = {
        "kafka.topic": "purchases",
        "schema.filename": str(tmp_path / "purchase.avsc"),
        "schema.keyfield": "id",
        "iterations": "3",
        "max.interval": "1",
    }
    records = run(config, ConfluentDatagen)
    assert [r.key for r in records] == [0, 1, 2]
    assert all(r.value["item"] in ("tea", "mate") for r in records)


def test_confluent_schema_of_a_union_is_refused():
    schema = '{"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "int"]}]}'
    with pytest.raises(ConfigError, match="not supported"):
        ConfluentDatagen.CONFIG.parse({"kafka.topic": "t", "schema.string": schema})


def test_a_pace_gives_turns_as_time_goes_by():
    now = 100.0
    pace = Pace(10, clock=lambda: now)
    assert pace.take(5) == 1
    assert pace.take(5) == 0
    assert pace.seconds_to_next() == pytest.approx(0.1)
    now += 0.35
    assert pace.take(5) == 3
    now += 60  # an absence is no licence for a flood: a second's worth at most
    assert pace.take(1000) == 10


def test_a_pace_without_a_rate_has_no_bound():
    assert Pace(0).take(7) == 7
