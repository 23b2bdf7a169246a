"""Typed declarations: parsing, validation reports, docs; and config files."""

import json
from typing import Literal

import pytest

from connect.config import (
    Config,
    Password,
    SinkConfig,
    document,
    read_config_file,
    refuse_unsupported,
    setting,
    unknown_keys,
    validate,
)
from connect.config.connector import ConnectorConfig
from connect.errors import ConfigError


def _even(value: int) -> None:
    if value % 2:
        raise ValueError("must be even")


class NumbersConfig(Config):
    """Counts."""

    topic: str = setting("Where to.", importance="HIGH", group="Main")
    max_rows: int = setting("How many.", default=10, check=_even)
    ratio: float = setting("A share.", default=0.5)
    loud: bool = setting("Whether to shout.", default=False)
    names: list[str] = setting("Names.", default=[])
    mode: Literal["fast", "exact"] = setting("How.", default="fast")
    secret: Password | None = setting("A password.", default=None)
    note: str | None = setting("A note.", default=None, key="odd.key_name")


class MoreConfig(NumbersConfig):
    """Counts more."""

    step: int = setting("By.", default=1)


def test_values_are_parsed_by_their_annotations():
    config = NumbersConfig.parse(
        {"topic": "t", "max.rows": "4", "ratio": "1e-3", "loud": "TRUE", "names": "a, b,", "mode": "EXACT"}
    )
    assert (config.topic, config.max_rows, config.ratio, config.loud) == ("t", 4, 0.001, True)
    assert (config.names, config.mode, config.note) == (["a", "b"], "exact", None)


def test_json_configs_bring_numbers_and_booleans():
    config = NumbersConfig.parse({"topic": "t", "max.rows": 4, "loud": True, "names": ["x", "y"]})
    assert (config.max_rows, config.loud, config.names) == (4, True, ["x", "y"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("max.rows", "3"), ("max.rows", "x"), ("max.rows", str(1 << 31)), ("loud", "yes"), ("mode", "slow")],
)
def test_a_bad_value_names_its_key(key: str, value: str):
    with pytest.raises(ConfigError) as caught:
        NumbersConfig.parse({"topic": "t", key: value})
    assert (caught.value.key, caught.value.value) == (key, value)


def test_a_required_setting_is_required():
    with pytest.raises(ConfigError, match="topic"):
        NumbersConfig.parse({})


def test_declarations_are_inherited():
    assert list(MoreConfig.settings()) == [*NumbersConfig.settings(), "step"]
    assert MoreConfig.parse({"topic": "t"}).step == 1


def test_passwords_do_not_show():
    config = NumbersConfig.parse({"topic": "t", "secret": "hunter2"})
    assert "hunter2" not in repr(config)
    assert "hunter2" not in f"{config.secret}"
    assert config.secret is not None and config.secret.secret == "hunter2"
    report = validate("N", [NumbersConfig], {"topic": "t", "secret": "hunter2"})
    assert "hunter2" not in json.dumps(report)


def test_the_validation_report_has_connects_shape():
    report = validate("Numbers", [NumbersConfig], {"max.rows": "3"})
    assert report["error_count"] == 2
    assert report["groups"] == ["Main"]
    topic = report["configs"][0]
    assert topic["definition"] == {
        "name": "topic",
        "type": "STRING",
        "required": True,
        "default_value": None,
        "importance": "HIGH",
        "documentation": "Where to.",
        "group": "Main",
        "width": "MEDIUM",
        "display_name": "topic",
        "dependents": [],
        "order_in_group": 1,
    }
    assert topic["value"]["errors"] == ['Missing required configuration "topic" which has no default value.']
    mode = next(c for c in report["configs"] if c["definition"]["name"] == "mode")
    assert mode["value"] == {
        "name": "mode",
        "value": "fast",
        "recommended_values": ["fast", "exact"],
        "errors": [],
        "visible": True,
    }


def test_docs_come_from_the_declaration():
    text = document(NumbersConfig)
    assert text.startswith("Counts.")
    assert "| `max.rows` | int | `10` | How many. |" in text
    assert "| `topic` | string | required | Where to. |" in text


def test_unknown_keys_come_with_their_nearest_neighbour():
    unknown = unknown_keys([NumbersConfig], {"topik": "t", "producer.acks": "1", "zzz": "1"}, ["producer."])
    assert unknown == {"topik": "topic", "zzz": None}


def test_a_sink_wants_topics_or_a_pattern():
    base = {"name": "n", "connector.class": "c"}
    for wrong in ({}, {"topics": "a", "topics.regex": "b"}, {"topics.regex": "("}):
        with pytest.raises(ConfigError):
            SinkConfig.parse(base | wrong)
    assert SinkConfig.parse(base | {"topics": "a,b"}).topics == ["a", "b"]


def test_promises_that_cannot_be_kept_are_refused():
    refuse_unsupported({"errors.tolerance": "all", "initial.state": "running"})
    with pytest.raises(ConfigError, match=r"initial\.state"):
        refuse_unsupported({"initial.state": "stopped"})


def test_a_sink_does_not_read_its_own_dead_letters():
    base = {"name": "n", "connector.class": "c", "errors.deadletterqueue.topic.name": "dead"}
    for topics in ({"topics": "a,dead"}, {"topics.regex": "d.*"}):
        with pytest.raises(ConfigError, match="The DLQ topic 'dead' may not be included"):
            SinkConfig.parse(base | topics)
    assert SinkConfig.parse(base | {"topics": "a"}).dead_letter_topic == "dead"


def test_json_config_files_flat_or_nested(tmp_path):
    path = tmp_path / "c.json"
    path.write_text('{"name": "n", "config": {"a": "1", "b": null}}')
    assert read_config_file(path) == {"name": "n", "a": "1"}
    path.write_text('{"name": "n", "a": 1}')
    assert read_config_file(path) == {"name": "n", "a": 1}
    path.write_text("[]")
    with pytest.raises(ConfigError):
        read_config_file(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_config_file(tmp_path / "none.properties")


def test_a_password_that_is_refused_is_not_shown():
    def refuse(value):
        raise ValueError("must be longer")

    class Secretive(Config):
        token: Password = setting("A password.", check=refuse)

    with pytest.raises(ConfigError) as caught:
        Secretive.parse({"token": "hunter2"})
    assert str(caught.value) == "token=[hidden]: must be longer"
    assert "hunter2" not in json.dumps(validate("x", [Secretive], {"token": "hunter2"}))


def test_a_setting_of_no_known_kind_says_which():
    class Odd(Config):
        table: dict = setting("A table.")

    class Bare(Config):
        limit = setting("How many.", default=1)

    for declaration, name in ((Odd, "table"), (Bare, "limit")):
        with pytest.raises(TypeError, match=f"setting {name} needs an annotation"):
            declaration.parse({})


def test_config_files_are_utf_8(tmp_path):
    path = tmp_path / "worker.properties"
    path.write_bytes("\ufeffname=é\n".encode())  # as some editors save it
    assert read_config_file(path) == {"name": "é"}
    path.write_bytes(b"name=\xe9\n")
    with pytest.raises(ConfigError, match=r"worker\.properties: must be in UTF-8"):
        read_config_file(path)


def test_a_connectors_name_has_no_control_characters():
    with pytest.raises(ConfigError, match="control sequences but had the following ASCII chars: 0, 10"):
        ConnectorConfig.parse({"name": "a\0b\nc", "connector.class": "x"})
