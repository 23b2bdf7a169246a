"""The cases of Kafka's ConnectorValidationIntegrationTest: the same keys have as many errors as in Kafka.

Each of Kafka's methods is one row of CASES, by the method's name without `test`. Nothing needs a broker.

The cases `...NoConfigDef` have a converter without declared settings. All of Kafka's methods apply.
"""

from __future__ import annotations

import pytest

from connect.distributed import DistributedConfig
from connect.errors import ConfigError
from connect.runtime import WorkerConfig
from connect.runtime.config_report import report_config
from connect.runtime.connector_check import check_config

STRING = "org.apache.kafka.connect.storage.StringConverter"
FILTER = "org.apache.kafka.connect.transforms.Filter"
TOMBSTONE = "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone"
HERE = "tests.connect.runtime.validated:"
SINK = {
    "name": "sink-connector",
    "connector.class": f"{HERE}ValidatedSink",
    "tasks.max": "1",
    "topics": "t1",
    "key.converter": STRING,
    "value.converter": STRING,
}
SOURCE = {
    **SINK,
    "name": "source-connector",
    "connector.class": "tests.connect.rest.counting:CountingSource",
    "topic": "t1",
}
del SOURCE["topics"]
GROUP = "connect-worker-group-id"
WORKER = DistributedConfig.parse(
    {
        "group.id": GROUP,
        "config.storage.topic": "config",
        "offset.storage.topic": "offset",
        "status.storage.topic": "status",
    }
)
NEITHER = "Must configure one of topics or topics.regex"
BOTH = "topics and topics.regex are mutually exclusive options, but both are set."
CONFLICT = f"conflicts with Connect worker group {GROUP}"
TWICE = "Duplicate alias provided."
Changes = dict[str, str | None]

CASES: list[tuple[str, dict[str, str], Changes, dict[str, str]]] = [
    (
        "SinkConnectorHasNeitherTopicsListNorTopicsRegex",
        SINK,
        {"topics": None},
        {"topics": NEITHER, "topics.regex": NEITHER},
    ),
    (
        "SinkConnectorHasBothTopicsListAndTopicsRegex",
        SINK,
        {"topics.regex": "r.*"},
        {"topics": BOTH, "topics.regex": BOTH},
    ),
    (
        "SinkConnectorDeadLetterQueueTopicInTopicsList",
        SINK,
        {"errors.deadletterqueue.topic.name": "t1"},
        {"topics": "The DLQ topic 't1' may not be included in the list of topics ('topics=[t1]')"},
    ),
    (
        "SinkConnectorDeadLetterQueueTopicMatchesTopicsRegex",
        SINK,
        {"topics": None, "topics.regex": "r.*", "errors.deadletterqueue.topic.name": "ruh.roh"},
        {"topics.regex": "The DLQ topic 'ruh.roh' may not be included in the regex matching the topics"},
    ),
    (
        "SinkConnectorDefaultGroupIdConflictsWithWorkerGroupId",
        SINK,
        {"name": "worker-group-id"},
        {"name": f"Consumer group for sink connector named worker-group-id {CONFLICT}"},
    ),
    (
        "SinkConnectorOverriddenGroupIdConflictsWithWorkerGroupId",
        SINK,
        {"consumer.override.group.id": GROUP},
        {"consumer.override.group.id": f"Consumer group {GROUP} {CONFLICT}"},
    ),
    (
        "SourceConnectorHasDuplicateTopicCreationGroups",
        SOURCE,
        {"topic.creation.groups": "g1, g2, g1"},
        {"topic.creation.groups": TWICE},
    ),
    (
        "ConnectorHasDuplicateTransformations",
        SINK,
        {"transforms": "t, t", "transforms.t.type": FILTER},
        {"transforms": TWICE},
    ),
    (
        "ConnectorHasMissingTransformClass",
        SINK,
        {"transforms": "t", "transforms.t.type": "WheresTheFruit"},
        {"transforms.t.type": "WheresTheFruit"},
    ),
    (
        "ConnectorHasInvalidTransformClass",
        SINK,
        {"transforms": "t", "transforms.t.type": f"{HERE}ValidatedSink"},
        {"transforms.t.type": "is no transform"},
    ),
    (
        "ConnectorHasNegationForUndefinedPredicate",
        SINK,
        {"transforms": "t", "transforms.t.type": FILTER, "transforms.t.negate": "true"},
        {"transforms.t.negate": "transforms.t.predicate"},
    ),
    (
        "ConnectorHasDuplicatePredicates",
        SINK,
        {"predicates": "p, p", "predicates.p.type": TOMBSTONE},
        {"predicates": TWICE},
    ),
    (
        "ConnectorHasMissingPredicateClass",
        SINK,
        {"predicates": "p", "predicates.p.type": "WheresTheFruit"},
        {"predicates.p.type": "WheresTheFruit"},
    ),
    (
        "ConnectorHasInvalidPredicateClass",
        SINK,
        {"predicates": "p", "predicates.p.type": f"{HERE}ValidatedSink"},
        {"predicates.p.type": "is no predicate"},
    ),
]
for _which, _noun in (("key.converter", ""), ("header.converter", "Header")):
    for _method, _class, _text in (
        ("Missing{}ConverterClass", "WheresTheFruit", "WheresTheFruit"),
        ("Invalid{}ConverterClassType", f"{HERE}ValidatedSink", "converter"),
        ("Abstract{}Converter", f"{HERE}Abstract", "abstract"),
        ("{}ConverterWithNoSuitableConstructor", f"{HERE}Argued", "argument"),
        ("{}ConverterThatThrowsExceptionOnInstantiation", f"{HERE}Raising", "no luck"),
    ):
        CASES.append(("ConnectorHas" + _method.format(_noun), SINK, {_which: _class}, {_which: _text}))
    CASES += [
        (
            f"ConnectorHasMisconfigured{_noun}Converter",
            SINK,
            {_which: f"{HERE}Declaring", f"{_which}.prop": "notaboolean"},
            {f"{_which}.prop": f"Invalid value notaboolean for configuration {_which}.prop"},
        ),
        (f"ConnectorHas{_noun}ConverterWithNoConfigDef", SINK, {_which: f"{HERE}Plain"}, {}),
    ]


def changed(config: dict[str, str], changes: Changes) -> dict[str, str]:
    return {key: value for key, value in {**config, **changes}.items() if value is not None}


@pytest.mark.parametrize(
    ("config", "changes", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES]
)
def test_a_report_has_kafkas_errors(
    config: dict[str, str], changes: Changes, expected: dict[str, str]
) -> None:
    raw = changed(config, changes)
    report = report_config(WORKER, raw)
    errors = {each["value"]["name"]: each["value"]["errors"] for each in report["configs"]}
    errors = {key: texts for key, texts in errors.items() if texts}
    assert errors.keys() == expected.keys(), errors
    assert report["error_count"] == len(expected)
    for key, text in expected.items():
        (error,) = errors[key]
        assert text in error
    # A start refuses the same configs.
    if expected:
        with pytest.raises(ConfigError):
            check_config(WORKER, raw)
    else:
        check_config(WORKER, raw)


def test_a_worker_alone_has_no_group_to_conflict_with() -> None:
    raw = changed(SINK, {"name": "worker-group-id"})
    assert check_config(WorkerConfig.parse({}), raw).name == "worker-group-id"
