"""DescribeConfigs, IncrementalAlterConfigs, AlterConfigs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafka_client.errors import ErrorCode
from kafka_client.wire.messages import alter_configs, incremental_alter_configs
from kafka_client.wire.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from logd.broker.topics.configs import Operation, Source
from logd.config import BROKER_SETTINGS, TOPIC_SETTINGS
from logd.config.inert import INERT_SETTINGS
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient

Make = Callable[..., str]
TOPIC, BROKER, LOGGER = 2, 4, 8


def describe(
    client: RawClient, kind: int, name: str, keys: list[str] | None = None, *, version: int = 4
) -> Any:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest(
        resources=[resource], include_synonyms=True, include_documentation=version >= 3
    )
    return client.request(request, version).results[0]


def described(client: RawClient, kind: int, name: str, key: str) -> Any:
    return describe(client, kind, name, [key]).configs[0]


def alter(
    client: RawClient,
    kind: int,
    name: str,
    *changes: tuple[str, Operation, str | None],
    validate_only: bool = False,
) -> Any:
    configs = [
        incremental_alter_configs.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=configs
    )
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        resources=[resource], validate_only=validate_only
    )
    return client.request(request, 1).responses[0]


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_a_topics_settings(client: RawClient, make_topic: Make, version: int) -> None:
    result = describe(client, TOPIC, make_topic({"retention.ms": "5000"}), version=version)
    configs = {config.name: config for config in result.configs}
    assert set(configs) == set(TOPIC_SETTINGS)
    own, default = configs["retention.ms"], configs["segment.bytes"]
    assert (own.value, own.config_source, own.read_only) == ("5000", Source.TOPIC, False)
    assert (default.value, default.config_source) == ("1073741824", Source.DEFAULT)
    assert [(synonym.name, synonym.source) for synonym in default.synonyms] == [
        ("log.segment.bytes", Source.DEFAULT)
    ]
    if version >= 3:
        assert default.config_type == 3
        assert "segment" in default.documentation


def test_an_override_stands_before_the_default_it_hides(client: RawClient, make_topic: Make) -> None:
    config = described(client, TOPIC, make_topic({"max.message.bytes": "5000"}), "max.message.bytes")
    assert [(synonym.name, synonym.value, synonym.source) for synonym in config.synonyms] == [
        ("max.message.bytes", "5000", Source.TOPIC),
        ("message.max.bytes", "1048588", Source.DEFAULT),
    ]


def test_the_brokers_settings(client: RawClient) -> None:
    configs = {config.name: config for config in describe(client, BROKER, "1").configs}
    assert set(configs) == {*BROKER_SETTINGS, *INERT_SETTINGS}
    started_with = configs["offsets.topic.num.partitions"]
    assert (started_with.value, started_with.config_source) == ("5", Source.STARTED_WITH)
    assert [synonym.value for synonym in started_with.synonyms] == ["5", "50"]
    assert started_with.read_only
    assert not configs["log.retention.ms"].read_only


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "no spaces", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "x", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_do_not_exist(client: RawClient, kind: int, name: str, code: ErrorCode) -> None:
    for result in (describe(client, kind, name), alter(client, kind, name)):
        assert result.error_code == code
        assert result.error_message


def test_levels_of_loggers_change_while_the_broker_runs(client: RawClient) -> None:
    levels = {config.name: config for config in describe(client, LOGGER, "1").configs}
    assert levels["root"].value == levels["logd.broker"].value == "INFO"
    assert levels["root"].config_source == 6, "DYNAMIC_BROKER_LOGGER_CONFIG"
    change = ("logd.broker", Operation.SET, "DEBUG")
    assert alter(client, LOGGER, "1", change, validate_only=True).error_code == 0
    assert described(client, LOGGER, "1", "logd.broker").value == "INFO"
    assert alter(client, LOGGER, "1", change).error_code == 0
    assert described(client, LOGGER, "1", "logd.broker").value == "DEBUG"
    assert alter(client, LOGGER, "1", ("logd.broker", Operation.DELETE, None)).error_code == 0
    assert described(client, LOGGER, "1", "logd.broker").value == "INFO"


@pytest.mark.parametrize(
    ("key", "operation", "value", "code", "message"),
    [
        ("logd.broker", Operation.SET, "LOUD", ErrorCode.INVALID_CONFIG, "not a supported log level"),
        ("no.such", Operation.SET, "INFO", ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        ("no.such", Operation.DELETE, None, ErrorCode.INVALID_CONFIG, "Logger no.such does not exist!"),
        ("root", Operation.DELETE, None, ErrorCode.INVALID_REQUEST, "root logger is not allowed"),
        ("logd.broker", Operation.APPEND, "INFO", ErrorCode.INVALID_REQUEST, "APPEND operation is not"),
    ],
)
def test_changes_of_loggers_that_are_refused(
    client: RawClient, key: str, operation: Operation, value: str | None, code: ErrorCode, message: str
) -> None:
    result = alter(client, LOGGER, "1", ("logd.broker", Operation.SET, "WARN"), (key, operation, value))
    assert result.error_code == code
    assert message in result.error_message
    assert described(client, LOGGER, "1", "logd.broker").value == "INFO"


def test_setting_deleting_appending_and_subtracting(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    assert alter(client, TOPIC, name, ("retention.ms", Operation.SET, "1000")).error_code == 0
    assert described(client, TOPIC, name, "retention.ms").value == "1000"
    assert alter(client, TOPIC, name, ("cleanup.policy", Operation.APPEND, "compact")).error_code == 0
    assert described(client, TOPIC, name, "cleanup.policy").value == "delete,compact"
    assert alter(client, TOPIC, name, ("cleanup.policy", Operation.SUBTRACT, "delete")).error_code == 0
    assert described(client, TOPIC, name, "cleanup.policy").value == "compact"
    assert described(client, TOPIC, name, "retention.ms").value == "1000"
    assert alter(client, TOPIC, name, ("retention.ms", Operation.DELETE, None)).error_code == 0
    assert described(client, TOPIC, name, "retention.ms").config_source == Source.DEFAULT


def test_a_changed_setting_holds_at_once(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    alter(client, TOPIC, name, ("max.message.bytes", Operation.SET, "100"))
    produced = client.produce(name, [(1, b"k", b"x" * 200, ())])
    assert produced.error_code == ErrorCode.MESSAGE_TOO_LARGE
    alter(client, TOPIC, name, ("cleanup.policy", Operation.SET, "compact"))
    assert client.produce(name, [(1, None, b"v", ())]).error_code == ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (("retention.ms", Operation.SET, "soon"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", Operation.SET, None), ErrorCode.INVALID_REQUEST),
        (("retention.ms", Operation.APPEND, "1"), ErrorCode.INVALID_CONFIG),
        (("retention.m", Operation.SET, "1"), ErrorCode.INVALID_CONFIG),
        (("cleanup.policy", Operation.APPEND, "shrink"), ErrorCode.INVALID_CONFIG),
        (("retention.ms", 9, "1"), ErrorCode.INVALID_REQUEST),
    ],
)
def test_changes_that_are_refused(client: RawClient, make_topic: Make, change: Any, code: ErrorCode) -> None:
    name = make_topic()
    result = alter(client, TOPIC, name, ("segment.ms", Operation.SET, "1000"), change)
    assert result.error_code == code
    assert change[0] in result.error_message
    assert described(client, TOPIC, name, "segment.ms").config_source == Source.DEFAULT, "all or nothing"


def test_validate_only_and_repeated_keys(client: RawClient, make_topic: Make) -> None:
    name = make_topic()
    change = ("retention.ms", Operation.SET, "1000")
    assert alter(client, TOPIC, name, change, validate_only=True).error_code == 0
    assert alter(client, TOPIC, name, change, change).error_code == ErrorCode.INVALID_REQUEST
    assert described(client, TOPIC, name, "retention.ms").config_source == Source.DEFAULT


def test_alter_configs_replaces_everything(client: RawClient, make_topic: Make) -> None:
    name = make_topic({"retention.ms": "1000", "segment.ms": "2000"})
    resource = alter_configs.AlterConfigsResource(
        resource_type=TOPIC,
        resource_name=name,
        configs=[alter_configs.AlterableConfig(name="segment.ms", value="3000")],
    )
    request = alter_configs.AlterConfigsRequest(resources=[resource])
    assert client.request(request, 2).responses[0].error_code == 0
    assert described(client, TOPIC, name, "segment.ms").value == "3000"
    assert described(client, TOPIC, name, "retention.ms").config_source == Source.DEFAULT


@pytest.fixture
def own_logd(tmp_path: Any) -> Iterator[LogdProcess]:
    with LogdProcess(tmp_path) as process:
        yield process


def test_changed_broker_settings_reach_topics_and_survive_a_restart(own_logd: LogdProcess) -> None:
    with RawClient(own_logd.port) as client:
        client.request(_create("t"), 7)
        everywhere = ("log.retention.ms", Operation.SET, "7000")
        assert alter(client, BROKER, "", everywhere).error_code == 0
        assert described(client, TOPIC, "t", "retention.ms").value == "7000"
        assert alter(client, BROKER, "1", ("log.retention.ms", Operation.SET, "8000")).error_code == 0
        read_only = alter(client, BROKER, "1", ("num.partitions", Operation.SET, "3"))
        assert read_only.error_code == ErrorCode.INVALID_REQUEST
        bad = alter(client, BROKER, "1", ("log.segment.bytes", Operation.SET, "1"))
        assert bad.error_code == ErrorCode.INVALID_REQUEST
    assert own_logd.stop() == 0
    own_logd.start()
    with RawClient(own_logd.port) as client:
        retention = described(client, TOPIC, "t", "retention.ms")
        assert (retention.value, retention.config_source) == ("8000", Source.THIS_BROKER)
        assert [synonym.source for synonym in retention.synonyms] == [Source.THIS_BROKER, Source.ALL_BROKERS]
        assert [config.value for config in describe(client, BROKER, "").configs] == ["7000"]


def _create(name: str) -> Any:
    from kafka_client.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest

    return CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)])
