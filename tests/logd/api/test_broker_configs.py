"""Changes of settings that Apache Kafka takes while it runs, each held to what Kafka makes of it.

APPEND on a broker's list began with what the broker was started with instead of what it goes by: with
``log.cleanup.policy`` at its default APPEND compact stored ``compact``, and nothing was deleted any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kafka_client.errors import ErrorCode
from logd.broker.topics.configs import Operation, Source
from logd.config.inert import INERT_SETTINGS
from tests.logd.api.test_configs import BROKER, TOPIC, alter, describe, described
from tests.support.apache_kafka import ApacheKafka
from tests.support.depth import deep
from tests.support.java import needs_kafka
from tests.support.logd_process import LogdProcess
from tests.support.raw_client import RawClient
from tests.support.topics import create_topic
from tests.support.waiting import wait_for

SET, DELETE, APPEND, SUBTRACT = Operation.SET, Operation.DELETE, Operation.APPEND, Operation.SUBTRACT
ALL, THIS = "", "1"


class Step(NamedTuple):
    """A change, whether it is accepted, and what is described afterwards: value, source and whether it is
    read-only, or None.
    """

    broker: str
    key: str
    operation: Operation
    value: str | None
    accepted: bool
    shown: tuple[str | None, int, bool] | None


POLICY = "log.cleanup.policy"
RULES = "sasl.kerberos.principal.to.local.rules"
STEPS = (
    Step(THIS, POLICY, APPEND, "compact", True, ("delete,compact", Source.THIS_BROKER, False)),
    Step(THIS, POLICY, SUBTRACT, "delete", True, ("compact", Source.THIS_BROKER, False)),
    Step(THIS, POLICY, SUBTRACT, "compact", True, ("", Source.THIS_BROKER, False)),
    Step(THIS, POLICY, DELETE, None, True, ("delete", Source.DEFAULT, False)),
    Step(THIS, POLICY, SET, "", True, ("", Source.THIS_BROKER, False)),
    Step(THIS, POLICY, DELETE, None, True, ("delete", Source.DEFAULT, False)),
    Step(ALL, POLICY, APPEND, "compact", True, ("delete,compact", Source.ALL_BROKERS, False)),
    Step(ALL, POLICY, SUBTRACT, "delete,compact", True, ("", Source.ALL_BROKERS, False)),
    Step(ALL, POLICY, DELETE, None, True, None),
    Step(THIS, "background.threads", SET, "5", True, ("5", Source.THIS_BROKER, False)),
    Step(ALL, "background.threads", SET, "6", True, ("6", Source.ALL_BROKERS, False)),
    Step(THIS, "num.io.threads", SET, "5", True, ("5", Source.THIS_BROKER, False)),
    Step(THIS, "num.network.threads", SET, "4", True, ("4", Source.THIS_BROKER, False)),
    Step(THIS, "num.replica.fetchers", SET, "2", True, ("2", Source.THIS_BROKER, False)),
    Step(ALL, "num.recovery.threads.per.data.dir", SET, "3", True, ("3", Source.ALL_BROKERS, False)),
    Step(THIS, "background.threads", SET, "0", False, ("5", Source.THIS_BROKER, False)),
    Step(THIS, "background.threads", SET, "some", False, ("5", Source.THIS_BROKER, False)),
    Step(THIS, "num.io.threads", SET, "0", False, ("5", Source.THIS_BROKER, False)),
    Step(THIS, "num.io.threads", DELETE, None, True, ("8", Source.DEFAULT, False)),
    Step(THIS, "transaction.partition.verification.enable", SET, "false", True, ("false", 2, False)),
    Step(THIS, "sasl.kerberos.kinit.cmd", SET, "/k", True, ("/k", Source.THIS_BROKER, False)),
    Step(THIS, RULES, APPEND, "RULE:[1:$1]", True, ("DEFAULT,RULE:[1:$1]", Source.THIS_BROKER, False)),
    Step(ALL, RULES, SET, "DEFAULT", False, None),
    Step(THIS, "my.own.key", SET, "x", True, (None, Source.THIS_BROKER, True)),
    Step(THIS, "my.own.key", APPEND, "x", False, (None, Source.THIS_BROKER, True)),
    Step(THIS, "my.own.key", DELETE, None, True, None),
    Step(ALL, "my.own.key", SET, "x", True, (None, Source.ALL_BROKERS, True)),
    Step(ALL, "my.own.key", DELETE, None, True, None),
    Step(THIS, "ssl.keystore.location", SET, "/x", False, None),
    Step(THIS, "node.id", SET, "4", False, ("1", Source.STARTED_WITH, True)),
)


def shown(client: RawClient, broker: str, key: str) -> tuple[str | None, int, bool] | None:
    for config in describe(client, BROKER, broker, [key]).configs:
        if config.config_source != Source.DEFAULT or config.value is not None:
            return config.value, config.config_source, config.read_only
    return None


def check(port: int) -> None:
    with RawClient(port) as client:
        for step in STEPS:
            result = alter(client, BROKER, step.broker, (step.key, step.operation, step.value))
            assert (result.error_code == 0) is step.accepted, (step, result)
            # Kafka's broker learns of it in a moment.
            wait_for(lambda step=step: shown(client, step.broker, step.key) == step.shown)  # type: ignore[misc]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApacheKafka]:
    with ApacheKafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@needs_kafka
def test_what_is_expected_is_what_kafka_does(kafka: ApacheKafka) -> None:
    check(kafka.port)


def test_changes_while_running(tmp_path: Path) -> None:
    with LogdProcess(tmp_path, {"node.id": 1}) as logd:
        check(logd.port)
        assert "unknown setting my.own.key" in logd.log


@needs_kafka
def test_settings_without_effect_have_kafkas_types_and_defaults(kafka: ApacheKafka, tmp_path: Path) -> None:
    def defaults(port: int) -> dict[str, tuple[int, list[str]]]:
        with RawClient(port) as client:
            configs = describe(client, BROKER, "1", list(INERT_SETTINGS)).configs
        return {
            config.name: (
                config.config_type,
                [s.value for s in config.synonyms if s.source == Source.DEFAULT and s.value is not None],
            )
            for config in configs
        }

    with LogdProcess(tmp_path) as logd:
        assert defaults(logd.port) == defaults(kafka.port)


@deep
def test_what_was_set_while_running_is_there_after_a_restart(tmp_path: Path) -> None:
    """Configs that were set at run time survive a restart: undeclared keys, and the pool's size from the
    start.
    """
    with LogdProcess(tmp_path) as logd:
        changes = [
            ("my.own.key", SET, "x"),
            ("background.threads", SET, "3"),
            ("num.io.threads", SET, "4"),
            (POLICY, APPEND, "compact"),
        ]
        with RawClient(logd.port) as client:
            assert alter(client, BROKER, THIS, *changes).error_code == 0
            create_topic(logd, "t")
        assert logd.stop() == 0
        logd.start()
        with RawClient(logd.port) as client:
            values = {config.name: config.value for config in describe(client, BROKER, THIS).configs}
            assert described(client, TOPIC, "t", "cleanup.policy").value == "delete,compact"
    assert [values[key] for key, *_ in changes] == [None, "3", "4", "delete,compact"]


def test_append_begins_with_what_the_broker_was_started_with_where_nothing_was_changed(
    tmp_path: Path,
) -> None:
    with LogdProcess(tmp_path, {POLICY: "compact"}) as logd, RawClient(logd.port) as client:
        assert alter(client, BROKER, THIS, (POLICY, APPEND, "delete")).error_code == 0
        assert described(client, BROKER, THIS, POLICY).value == "compact,delete"


def test_this_brokers_append_begins_with_what_all_brokers_go_by(tmp_path: Path) -> None:
    with LogdProcess(tmp_path) as logd, RawClient(logd.port) as client:
        assert alter(client, BROKER, ALL, (POLICY, SET, "compact")).error_code == 0
        assert alter(client, BROKER, THIS, (POLICY, APPEND, "delete")).error_code == 0
        assert described(client, BROKER, THIS, POLICY).value == "compact,delete"


def test_a_topic_without_a_cleanup_policy_keeps_everything(
    client: RawClient, make_topic: Callable[..., str]
) -> None:
    """Records are neither deleted nor compacted, as in Apache Kafka 4: keys may be null and ages are not
    limited.
    """
    topic = make_topic({"cleanup.policy": "", "retention.ms": "1", "segment.ms": "1"})
    assert described(client, TOPIC, topic, "cleanup.policy").value == ""
    assert client.produce(topic, [(1, None, b"v", ())]).error_code == 0
    deleted = alter(client, TOPIC, topic, ("cleanup.policy", APPEND, "delete"))
    assert deleted.error_code == ErrorCode.NONE
    assert described(client, TOPIC, topic, "cleanup.policy").value == "delete"
