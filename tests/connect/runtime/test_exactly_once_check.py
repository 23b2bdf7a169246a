"""exactly.once.support and transaction.boundary are refused where they cannot be kept, in Kafka's words."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from connect.api import ConfigError, SourceConnector, SourceTask
from connect.distributed import DistributedConfig
from connect.runtime import WorkerConfig
from connect.runtime.config_report import report_config
from connect.runtime.connector_check import check_config
from connect.runtime.worker_config import WorkerConfig as AnyWorker

STANDALONE = WorkerConfig.parse({})


def worker(support: str) -> DistributedConfig:
    topics = {f"{kind}.storage.topic": kind for kind in ("config", "offset", "status")}
    return DistributedConfig.parse({"group.id": "g", "exactly.once.source.support": support, **topics})


class Silent(SourceConnector):
    task_class = SourceTask


class Able(Silent):
    def exactly_once_support(self, config: Mapping[str, str]) -> bool:
        return config.get("lossy") != "true"

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        if config.get("broken") == "true":
            raise RuntimeError("no answer")
        return config.get("lossy") != "true"


def errors(config: AnyWorker, connector: str, **settings: str) -> list[str]:
    """Return the errors of the report; the check before a start raises the same."""
    named = {key.replace("_", "."): value for key, value in settings.items()}
    raw = {"name": "n", "connector.class": f"{__name__}:{connector}", **named}
    report = report_config(config, raw)
    texts = [text for each in report["configs"] for text in each["value"]["errors"]]
    assert report["error_count"] == len(texts)
    if texts:
        with pytest.raises(ConfigError):
            check_config(config, raw)
    else:
        check_config(config, raw)
    return texts


def test_required_needs_a_worker_and_a_connector_that_can():
    assert errors(worker("enabled"), "Able", exactly_once_support="REQUIRED") == []
    for config in (STANDALONE, worker("disabled"), worker("preparing")):
        (text,) = errors(config, "Able", exactly_once_support="required")
        assert "This worker does not have exactly-once source support enabled." in text
    (text,) = errors(worker("enabled"), "Able", exactly_once_support="required", lossy="true")
    assert "does not support exactly-once semantics with the provided configuration" in text
    (text,) = errors(worker("enabled"), "Silent", exactly_once_support="required")
    assert "does not implement the API required for preflight validation" in text
    assert errors(worker("disabled"), "Silent", exactly_once_support="requested") == []


def test_only_connectors_that_define_boundaries_may_be_asked_to():
    assert errors(worker("enabled"), "Able", transaction_boundary="Connector") == []
    (text,) = errors(worker("enabled"), "Silent", transaction_boundary="connector")
    assert "does not support connector-defined transaction boundaries" in text
    (text,) = errors(worker("enabled"), "Able", transaction_boundary="connector", broken="true")
    assert "no answer" in text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exactly.once.support", "maybe"),
        ("transaction.boundary", "never"),
        ("transaction.boundary.interval.ms", "-1"),
        ("offsets.storage.topic", " "),
    ],
)
def test_other_values_are_refused(key, value):
    (text,) = errors(STANDALONE, "Able", **{key.replace(".", "_"): value})
    assert key in text


def test_the_workers_setting_is_one_of_a_group():
    assert worker("Enabled").exactly_once_source_enabled
    assert not worker("preparing").exactly_once_source_enabled
    ids = [worker(support).leader_transactional_id for support in ("enabled", "preparing", "disabled")]
    assert ids == ["connect-cluster-g", "connect-cluster-g", None]
    with pytest.raises(ConfigError, match=r"exactly\.once\.source\.support"):
        WorkerConfig.parse({"exactly.once.source.support": "enabled"})
    with pytest.raises(ConfigError, match="must be one of disabled, preparing, enabled"):
        worker("on")


def test_a_source_whose_records_go_to_another_cluster_has_no_transactions_here():
    other = {"producer_override_bootstrap_servers": "other:9092"}
    (text,) = errors(worker("enabled"), "Able", **other)
    assert "producer.override.bootstrap.servers" in text
    assert "other:9092" in text
    assert errors(worker("disabled"), "Able", **other) == []
    assert errors(worker("enabled"), "Able", producer_override_bootstrap_servers="localhost:9092") == []
