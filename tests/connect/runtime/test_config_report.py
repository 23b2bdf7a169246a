"""The report of a connector's config: all errors at once, recommended values, hooks, and no secrets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from connect.api import Config, ConfigError, Password, SourceConnector, SourceTask, setting
from connect.errors import BadRequest, InvalidConfig
from connect.runtime import WorkerConfig
from connect.runtime.config_report import report_config
from connect.runtime.connector_check import check_config
from connect.runtime.override_policy import refused_overrides


class TablesConfig(Config):
    """Tables of a database."""

    topic: str = setting("Where to.", group="Main")
    limit: int = setting("How many.", default=5, group="Main")
    mode: str = setting(
        "What is read.", default="bulk", dependents=["column"], recommend=lambda values: ["bulk", "new"]
    )
    column: str | None = setting(
        "The column.",
        default=None,
        recommend=lambda values: [f"{values['topic']}_id"] if "topic" in values else [],
        visible=lambda values: values["mode"] == "new",
    )
    password: Password | None = setting("A password.", default=None)

    def check(self) -> None:
        if self.mode == "new" and self.column is None:
            raise ConfigError("column", "", "is needed with mode=new")


class Tables(SourceConnector):
    CONFIG = TablesConfig
    task_class = SourceTask

    async def validate(self, config: Any) -> Any:
        if config["topic"] == "broken":
            raise ZeroDivisionError("no luck")
        if config["topic"] == "denied":
            return {"password": [f"the database refuses {config['password']}"], "tables": ["there are none"]}
        return None


@pytest.fixture(autouse=True)
def _plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("config_report", "connector_check"):
        monkeypatch.setattr(f"connect.runtime.{module}.connector_class", lambda name: Tables)


def report(worker: dict[str, str] | None = None, **config: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the report, and its entries with errors by key; keys have `_` for dots."""
    raw = {"name": "c", "connector.class": "Tables", "topic": "t"}
    raw |= {key.replace("_", "."): value for key, value in config.items()}
    document = report_config(WorkerConfig.parse(worker or {}), raw)
    entries = {each["value"]["name"]: each for each in document["configs"]}
    assert len(entries) == len(document["configs"])
    errors = {name: each["value"]["errors"] for name, each in entries.items() if each["value"]["errors"]}
    assert document["error_count"] == sum(map(len, errors.values()))
    return entries, errors


def test_all_errors_are_told_at_once() -> None:
    _, errors = report(
        topic="",
        limit="x",
        mode="new",
        tasks_max="0",
        value_converter="nope",
        errors_tolerance="sometimes",
        transforms="a,b",
        transforms_a_type="NoSuch",
        producer_override_acks="7",
    )
    assert set(errors) >= {"topic", "limit", "tasks.max", "value.converter", "producer.override.acks"}
    assert set(errors) >= {"transforms.a.type", "transforms.b.type"}
    assert errors["topic"] == ['Missing required configuration "topic" which has no default value.']
    assert errors["limit"] == ["Invalid value x for configuration limit: must be a whole number"]


def test_settings_that_disagree_are_told_beside_invalid_ones() -> None:
    _, errors = report(limit="x", mode="new")
    assert errors.keys() == {"limit", "column"}


def test_recommended_values_and_visibility_follow_the_others() -> None:
    entries, errors = report()
    assert not errors
    assert entries["mode"]["value"]["recommended_values"] == ["bulk", "new"]
    assert entries["mode"]["definition"]["dependents"] == ["column"]
    assert entries["column"]["value"]["recommended_values"] == ["t_id"]
    assert entries["column"]["value"]["visible"] is False
    entries, _ = report(mode="new", column="id")
    assert entries["column"]["value"]["visible"] is True
    # Its recommender is asked without the topic, which is not valid.
    entries, _ = report(topic="")
    assert entries["column"]["value"]["recommended_values"] == []


def test_definitions_count_within_their_group() -> None:
    entries, _ = report()
    assert entries["limit"]["definition"]["order_in_group"] == 2
    assert entries["mode"]["definition"]["order_in_group"] == -1
    assert entries["mode"]["definition"]["group"] is None


def test_the_connectors_own_check_is_asked_and_its_secrets_are_hidden() -> None:
    entries, errors = report(topic="denied", password="hunter2")
    assert errors == {
        "password": ["Invalid value [hidden] for configuration password: the database refuses [hidden]"],
        "tables": ["Invalid value None for configuration tables: there are none"],
    }
    assert entries["tables"]["definition"] is None
    assert "hunter2" not in json.dumps(entries)
    _, errors = report(topic="broken")
    assert "ZeroDivisionError" in errors["connector.class"][0]


def test_a_connector_that_is_not_there_is_a_bad_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with pytest.raises(
        BadRequest, match=r"Failed to find any class .* matches NoSuch, available connectors are"
    ):
        report(connector_class="NoSuch")
    with pytest.raises(BadRequest, match="Failed to load the connector no"):
        report_config(WorkerConfig.parse({}), {"connector.class": "no.such:Thing"})


def test_policies_of_client_overrides() -> None:
    overrides = {"producer.override.acks": "1", "admin.override.sasl.jaas.config": "x", "producer.acks": "1"}

    def refused(policy: str, *allowlist: str) -> set[str]:
        return {error.key for error in refused_overrides(policy, allowlist, overrides)}

    both = {"producer.override.acks", "admin.override.sasl.jaas.config"}
    assert refused("All") == set()
    assert refused("None") == both
    assert refused("Principal") == {"producer.override.acks"}
    assert refused("Allowlist") == both
    assert refused("Allowlist", "acks") == {"admin.override.sasl.jaas.config"}
    assert (
        refused("org.apache.kafka.connect.connector.policy.NoneConnectorClientConfigOverridePolicy") == both
    )
    with pytest.raises(ConfigError, match="must be one of All, None, Principal, Allowlist"):
        WorkerConfig.parse({"connector.client.config.override.policy": "Some"})


def test_a_policy_holds_for_reports_and_starts() -> None:
    worker = {"connector.client.config.override.policy": "None"}
    _, errors = report(worker, producer_override_acks="1")
    text = "The 'None' policy does not allow 'acks' to be overridden in the connector configuration."
    assert errors["producer.override.acks"][0].endswith(text)
    raw = {"name": "c", "connector.class": "Tables", "topic": "t", "producer.override.acks": "1"}
    with pytest.raises(InvalidConfig, match="policy does not allow"):
        check_config(WorkerConfig.parse(worker), raw)


def test_a_start_tells_all_invalid_settings() -> None:
    raw = {"name": "c", "connector.class": "Tables", "topic": "t", "limit": "x", "topic.creation.groups": ""}
    with pytest.raises(ConfigError, match="limit=x"):
        check_config(WorkerConfig.parse({}), raw)
    with pytest.raises(InvalidConfig) as caught:
        check_config(WorkerConfig.parse({}), {**raw, "topic": ""})
    assert str(caught.value) == "topic=: is required; limit=x: must be a whole number"


def test_variables_are_checked_by_their_values_and_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKS", "3")
    monkeypatch.setenv("SECRET", "hunter2")
    worker = {"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"}
    entries, errors = report(worker, tasks_max="${env:TASKS}")
    assert (errors, entries["tasks.max"]["value"]["value"]) == ({}, "${env:TASKS}")
    entries, errors = report(worker, tasks_max="${env:SECRET}")
    assert "${env:SECRET}" in errors["tasks.max"][0]
    assert "hunter2" not in json.dumps([entries, errors])
