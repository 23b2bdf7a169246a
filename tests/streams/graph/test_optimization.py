"""How ``topology.optimization`` and ``ensure.explicit.internal.resource.naming`` reach a topology."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kafka_client.errors import ConfigError
from streams import JoinWindows, KafkaStreams, StreamsBuilder, StreamsConfig, TopologyError
from streams.cli import app
from streams.optimization import RULES, optimization_rules
from streams.testing import TopologyTestDriver

CONFIG = StreamsConfig(application_id="a", bootstrap_servers="localhost:1", topology_optimization="all")
OPTIMIZED = "(topics: [KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition])"

PROGRAM = """
from streams import StreamsBuilder

def counts(config):
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    rekeyed = builder.stream("in").select_key(lambda key, value: value)
    rekeyed.group_by_key().count()
    rekeyed.group_by_key().reduce(lambda one, other: one)
    return builder if config is None else builder.build(config)

builder = counts(None)
"""


def grouped_twice() -> StreamsBuilder:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    rekeyed = builder.stream("in").select_key(lambda key, value: value)
    rekeyed.group_by_key().count()
    rekeyed.group_by_key().reduce(lambda one, other: one)
    return builder


def test_settings_name_rules() -> None:
    assert optimization_rules("none") == frozenset()
    assert optimization_rules("all") == RULES
    names = "merge.repartition.topics, single.store.self.join"
    assert optimization_rules(names) == {"merge.repartition.topics", "single.store.self.join"}


@pytest.mark.parametrize("setting", ["", "most", "all,merge.repartition.topics", "none,none"])
def test_other_settings_are_refused(setting: str) -> None:
    with pytest.raises(ConfigError, match=r"topology.optimization.*merge.repartition.topics"):
        StreamsConfig(application_id="a", bootstrap_servers="b", topology_optimization=setting)


def test_a_builder_is_built_with_the_settings() -> None:
    assert len(KafkaStreams(grouped_twice(), CONFIG).topology.repartition_topics) == 1
    plain = KafkaStreams(grouped_twice(), CONFIG, topology_optimization="single.store.self.join")
    assert len(plain.topology.repartition_topics) == 2
    assert len(grouped_twice().build(CONFIG, topology_optimization="none").repartition_topics) == 2


def test_a_topology_that_is_built_already_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        KafkaStreams(grouped_twice().build(CONFIG), CONFIG)
        assert not caplog.records
        KafkaStreams(grouped_twice().build(), CONFIG)
    assert "topology.optimization=all has no effect on a topology that is built already" in caplog.text


def test_what_is_no_topology_is_refused() -> None:
    with pytest.raises(TopologyError, match="not a str"):
        KafkaStreams("topology", CONFIG)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["builder", "counts"])
def test_the_command_builds_with_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    module = f"grouped_{name}"
    (tmp_path / f"{module}.py").write_text(PROGRAM)
    (tmp_path / "app.properties").write_text(
        "application.id=a\nbootstrap.servers=b:1\ntopology.optimization=all\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    result = CliRunner().invoke(
        app, ["describe", f"{module}:{name}", "--config", str(tmp_path / "app.properties")]
    )
    assert result.output.count("-repartition])") == 1, result.output
    assert OPTIMIZED in result.output
    assert CliRunner().invoke(app, ["describe", f"{module}:builder"]).output.count("-repartition])") == 2
    sys.modules.pop(module)


def test_names_that_nobody_gave_are_refused_on_request() -> None:
    builder = grouped_twice()
    joined = builder.stream("a").join(builder.stream("b"), lambda x, y: x, windows=JoinWindows.of(1))
    joined.group_by(lambda key, value: value, name="by-value").count(store="counts")
    with pytest.raises(TopologyError) as refused:
        builder.build(ensure_explicit_internal_resource_naming=True)
    message = str(refused.value)
    for name in (
        "state stores KSTREAM-AGGREGATE-STATE-STORE-0000000002, KSTREAM-REDUCE-STATE-STORE-0000000007",
        "KSTREAM-JOINTHIS-0000000016-store, ",
        "changelog topics KSTREAM-AGGREGATE-STATE-STORE-0000000002-changelog",
        "repartition topics KSTREAM-AGGREGATE-STATE-STORE-0000000002-repartition",
        "ensure.explicit.internal.resource.naming",
        "by store= and the topics by name=",
    ):
        assert name in message
    assert "by-value" not in message and "counts" not in message
    with pytest.raises(TopologyError, match="ensure"):
        KafkaStreams(builder.build(), CONFIG, ensure_explicit_internal_resource_naming=True)


def test_names_that_were_given_are_taken() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    rekeyed = builder.stream("in").select_key(lambda key, value: value)
    rekeyed.group_by_key(name="group").count(store="counts")
    rekeyed.join(builder.table("t", store="rows"), lambda x, y: x, name="joined").to("out")
    properties = {"application.id": "a", "bootstrap.servers": "b:1"}
    strict = {"ensure.explicit.internal.resource.naming": "TRUE", **properties}
    builder.build(StreamsConfig.from_properties(strict))
    with pytest.raises(ConfigError, match="true or false"):
        StreamsConfig.from_properties({**strict, "ensure.explicit.internal.resource.naming": "yes"})


def test_a_builder_that_was_optimized_can_be_built_plain() -> None:
    builder = StreamsBuilder(key_serde=str, value_serde=str)
    stream = builder.stream("in")
    stream.join(stream, lambda x, y: x + y, windows=JoinWindows.of(5)).to("out")
    outputs = []
    for rules in ("all", "none"):
        topology = builder.build(topology_optimization=rules)
        assert len(topology.stores) == (1 if rules == "all" else 2)
        with TopologyTestDriver(topology) as driver:
            driver.input_topic("in").pipe_all([("a", "1"), ("a", "2")])
            outputs.append(driver.output_topic("out").read_key_values())
    assert outputs[0] == outputs[1] == [("a", "11"), ("a", "21"), ("a", "12"), ("a", "22")]
