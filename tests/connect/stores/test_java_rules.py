"""Ours and Kafka's classes make the same of the same records of internal topics, and write the same bytes."""

from __future__ import annotations

import base64
import json
import random
import subprocess
from collections.abc import Iterable
from typing import Any

from connect.herder import ConfigState, RestartRequest, SessionKey, TargetState
from connect.herder.herder import Herder
from connect.stores import ConfigTopic, json_documents
from connect.stores.status import STATES, StoredStatus, TopicUse
from connect.stores.status_table import StatusTable, status_key, topic_key
from connect.stores.topic_log import LogRecord
from tests.support import java

SCENARIOS = 400
Record = tuple[str, Any]
"""Key and value; None is a tombstone."""

pytestmark = java.needs_jar("connect-runtime")


def encoded(value: Any) -> str:
    return "-" if value is None else base64.b64encode(json_documents.encode(value)).decode()


def ask_java(mode: str, scenarios: Iterable[list[tuple[Any, ...]]]) -> list[Any]:
    lines = [
        " ".join([*key, encoded(value)]) for records in scenarios for *key, value in [*records, ("", None)]
    ]
    text = "\n".join("" if line == " -" else line for line in lines) + "\n"
    quiet = java.program("ConnectStores", mode, options=["-Dorg.slf4j.simpleLogger.defaultLogLevel=off"])
    printed = subprocess.run(
        quiet, input=text, stdout=subprocess.PIPE, encoding="utf-8", timeout=java.SECONDS, check=True
    ).stdout
    return [json.loads(line) for line in printed.splitlines()]


# --- configs ---


def config_record(r: random.Random) -> Record:
    """Return a record that a worker may have written, or half of one, or nonsense."""
    name = r.choice(["a", "b", "a-1"])
    properties = {r.choice("xyz"): r.choice(["1", "2", "é", None]) for _ in range(r.randrange(3))}
    nonsense: list[Any] = [None, {}, [], "text", 5, {"properties": "text"}, {"tasks": "many"}, {"state": 5}]
    nonsense += [{"properties": None}, {"tasks": 1.5}, {"tasks": True}, {"state.v2": 1, "state": "PAUSED"}]
    choices: list[tuple[str, Any]] = [
        (f"connector-{name}", {"properties": properties}),
        (f"connector-{name}", r.choice([None, {"properties": properties}])),
        *[(f"task-{name}-{r.randrange(3)}", {"properties": properties})] * 4,
        *[(f"commit-{name}", {"tasks": r.randrange(3)})] * 3,
        (f"target-state-{name}", r.choice([None, target(r.choice(list(TargetState)))])),
        (f"target-state-{name}", {"state": r.choice(["PAUSED", "STOPPED", "ASLEEP"])}),
        (f"tasks-fencing-{name}", {"task-count": r.randrange(4)}),
        ("session-key", SessionKey(r.randbytes(3), "HmacSHA256", 1 << 41).value()),
        (f"restart-connector-{name}", RestartRequest(name, r.random() < 0.5, r.random() < 0.5).value()),
        (f"logger-cluster-{name}", {"level": r.choice(["DEBUG", "INFO"])}),
    ]
    key, value = r.choice(choices)
    if r.random() < 0.1:
        value = r.choice(nonsense)
    if r.random() < 0.02:
        key = r.choice(["task-a", "task-a-b", "unknown", "session-key-2"])
    return key, value


def target(state: TargetState) -> dict[str, Any]:
    herder = Herder()
    herder.config.apply("connector-a", {"properties": {}})
    value = herder.set_target("a", state)[-1][1]
    assert value is not None
    return dict(value)


def our_configs(records: list[Record]) -> dict[str, Any]:
    state = ConfigState()
    restarts: list[str] = []
    levels: dict[str, str] = {}

    def read(pairs: list[Record]) -> None:
        for key, value in pairs:
            state.apply(key, value)
            restarts.extend(
                f"{r.connector} {r.only_failed} {r.include_tasks}".replace("T", "t").replace("F", "f")
                for r in state.requests.take_restarts()
            )
            levels.update(state.requests.take_logger_levels())

    topic = ConfigTopic(read, "configs")
    topic._read(
        [
            LogRecord(0, offset, key.encode(), None if value is None else json_documents.encode(value), 0)
            for offset, (key, value) in enumerate(records)
        ]
    )
    session = state.session_key
    return {
        "offset": topic.offset,
        "connectors": {
            name: {
                "config": config,
                "target": state.target(name).value,
                "tasks": state.task_configs(name),
                "count": state.task_count(name),
                "fenced": state.fenced_task_count(name),
                "generation": state.generation(name),
                "pending": state.is_pending_fencing(name),
            }
            for name, config in state.connectors.items()
        },
        "inconsistent": sorted(state.incomplete()),
        "key": session and [base64.b64encode(session.key).decode(), session.algorithm, session.created_ms],
        "restarts": restarts,
        "levels": levels,
    }


def test_config_records_add_up_to_the_same_state():
    r = random.Random(29)
    scenarios = [[config_record(r) for _ in range(r.randrange(1, 40))] for _ in range(SCENARIOS)]
    for records, expected in zip(scenarios, ask_java("config", scenarios), strict=True):
        assert our_configs(records) == expected, records


# --- statuses ---


def a_status(r: random.Random) -> dict[str, Any]:
    return StoredStatus(
        state=r.choice(sorted(STATES)),
        worker_id=r.choice(["w1:8083", "w2:8083"]),
        generation=r.randrange(4),
        trace=r.choice([None, "trace"]),
        version=r.choice([None, "1"]),
    ).value()


def status_record(r: random.Random) -> tuple[Any, ...]:
    name, task = r.choice(["a", "b"]), r.choice([None, 0, 1])
    key, value = status_key(name, task), r.choice([None, a_status(r), a_status(r), a_status(r)])
    if r.random() < 0.3:
        return "?", key, a_status(r)
    if r.random() < 0.2:
        key = topic_key(name, r.choice(["t", "u.v"]))
        value = r.choice([None, TopicUse(topic="t", connector=name, task=1, discovered_ms=7).value()])
    if r.random() < 0.1:
        value = r.choice([{}, [], "text", {"state": "ASLEEP", "worker_id": "w", "generation": 1}])
    if r.random() < 0.05:
        key = r.choice(
            ["status-connector-", "status-task-a", "status-topic-:connector-a", "status-topic-t", "x"]
        )
    return key, value


def our_statuses(records: list[tuple[Any, ...]]) -> dict[str, Any]:
    table, safe = StatusTable(), []
    for *keys, value in records:
        if keys[0] != "?":
            table.apply(keys[0], None if value is None else json_documents.encode(value))
            continue
        kind, name, *rest = keys[1].removeprefix("status-").split("-")
        before = table.get(name, int(rest[0]) if kind == "task" else None)
        safe.append(StoredStatus.of(value).may_replace(before))
    statuses = {name: status.value() for name, status in table.connectors.items()}
    for name, tasks in table.tasks.items():
        statuses |= {f"{name}-{task}": status.value() for task, status in tasks.items()}
    uses = {f"{n}:{u.topic}": [u.task, u.discovered_ms] for n in table.topics for u in table.uses(n)}
    return {"statuses": {**statuses, **uses}, "safe": safe}


def test_status_records_add_up_to_the_same_statuses():
    r = random.Random(29)
    scenarios = [[status_record(r) for _ in range(r.randrange(1, 30))] for _ in range(SCENARIOS)]
    for records, expected in zip(scenarios, ask_java("status", scenarios), strict=True):
        assert our_statuses(records) == expected, records


# --- bytes ---


def test_the_same_bytes_are_written():
    text = 'é \u001b\u0000 \n\t " \\ / \u2028 \U0001f600 \\u001b'
    config = {"name": "a", "text": text}
    herder = Herder()
    herder.config.apply("connector-a", {"properties": config})
    use = TopicUse(topic="t", connector="a", task=0, discovered_ms=1234567890123)
    running = StoredStatus(state="RUNNING", worker_id="w:8083", generation=3, version="1.0").value()
    failed = StoredStatus(
        state="FAILED", worker_id="w:8083", generation=3, trace="trace\n\tat \u001b[1m"
    ).value()
    ours: list[tuple[str, Any]] = [
        *herder.set_target("a", TargetState.PAUSED),
        *herder.put_connector("a", config),
        *herder.put_plan("a", [config, {"task": "1"}]),
        *herder.set_target("a", TargetState.STARTED),
        *herder.set_target("a", TargetState.STOPPED)[-1:],
        ("tasks-fencing-a", {"task-count": 2}),
        ("session-key", SessionKey(b"\1\2\3", "HmacSHA256", 1234567890123).value()),
        ("restart-connector-a", RestartRequest("a", only_failed=True).value()),
        ("logger-cluster-org.apache", {"level": "DEBUG"}),
        *herder.delete_connector("a"),
        (status_key("a"), running),
        (status_key("a"), failed),
        (status_key("a", 0), running),
        (topic_key("a", "t"), use.value()),
        (topic_key("a", "t"), None),
        (status_key("a", 0), None),
        (status_key("a"), None),
    ]
    theirs = java.run_program("ConnectStores", "written").splitlines()
    assert [f"{key} {encoded(value)}" for key, value in ours] == theirs
