"""The connectors of Kafka's system tests: the lines that kafkatest parses, and their offsets."""

import json

import pytest

from connect.api import ConnectError, ConnectorContext, SinkRecord
from connect.testing import SinkRun, SourceRun
from plugins.verifiable import MockSink, MockSource, SchemaSource, VerifiableSink, VerifiableSource


def lines(capsys):
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def without_time(documents):
    return [{k: v for k, v in each.items() if k != "time_ms"} for each in documents]


def test_the_source_prints_what_it_made_and_what_is_committed(capsys):
    run = SourceRun(VerifiableSource, {"topic": "t"}, name="v", max_tasks=2)
    records = [*run.poll(0), *run.poll(0), *run.poll(1)]
    assert [(r.key, r.value) for r in records] == [(0, 0), (0, 1), (1, 0)]
    made = lines(capsys)
    assert all(isinstance(each["time_ms"], int) for each in made)
    assert without_time(made) == [
        {"name": "v", "task": 0, "topic": "t", "seqno": 0},
        {"name": "v", "task": 0, "topic": "t", "seqno": 1},
        {"name": "v", "task": 1, "topic": "t", "seqno": 0},
    ]
    run.commit()
    assert without_time(lines(capsys)) == [{**each, "committed": True} for each in without_time(made)]
    run.commit()
    assert lines(capsys) == []
    run.stop()


def test_the_source_resumes_behind_the_last_committed_number(capsys):
    run = SourceRun(VerifiableSource, {"topic": "t"}, name="v")
    for _ in range(3):
        run.poll()
    run.commit()
    run.poll()
    run = run.again()
    assert [r.value for r in run.poll()] == [3]
    run.stop()


def test_complete_record_data(capsys):
    run = SourceRun(VerifiableSource, {"topic": "t", "complete.record.data": "true"}, name="v")
    (record,) = run.poll()
    assert lines(capsys) == [record.value]
    record.value_schema.check(record.value)
    run.stop()


def test_the_source_keeps_its_throughput(capsys):
    run = SourceRun(VerifiableSource, {"topic": "t", "throughput": "1"}, name="v")
    assert [len(run.poll()), len(run.poll())] == [1, 0]
    run.stop()


def test_the_sink_prints_what_arrives_and_what_is_flushed(capsys):
    with SinkRun(VerifiableSink, {}, name="s") as sink:
        sink.put([SinkRecord("t", 0, 5, value=7, key=1)])
        expected = {"name": "s", "task": 1, "sinkTask": 0, "topic": "t", "seqno": 7, "offset": 5}
        assert without_time(lines(capsys)) == [expected]
        sink.flush()
        assert without_time(lines(capsys)) == [{**expected, "flushed": True}]
        sink.flush()
        assert lines(capsys) == []


def test_schemas_in_turn(capsys):
    config = {"topic": "t", "num.messages": "3", "multiple.schema": "true", "partition.count": "2"}
    run = SourceRun(SchemaSource, config)
    records = [r for _ in range(4) for r in run.poll()]
    for record in records:
        record.value_schema.check(record.value)
    assert [r.value_schema.version for r in records] == [1, 2, 1]
    assert [r.value["partitioning"] for r in records] == [0, 1, 0]
    assert lines(capsys) == [{"task": 0, "seqno": n} for n in range(3)]
    run.stop()


@pytest.mark.parametrize("mode", ["", "other"])
def test_a_mock_without_a_mode_does_nothing(mode):
    run = SourceRun(MockSource, {"mock_mode": mode})
    assert run.poll() == []
    run.stop()


def test_a_mock_source_fails_in_its_task():
    run = SourceRun(MockSource, {"mock_mode": "task-failure", "delay_ms": "0"})
    with pytest.raises(ConnectError, match="mock"):
        run.poll()
    run.stop()


def test_a_mock_sink_fails_at_a_commit_too():
    with SinkRun(MockSink, {"mock_mode": "task-failure", "delay_ms": "0"}) as sink:
        with pytest.raises(ConnectError, match="mock"):
            sink.put([SinkRecord("t", 0, 0)])
        with pytest.raises(ConnectError, match="mock"):
            sink.flush()


@pytest.mark.parametrize("connector", [MockSource, MockSink])
def test_a_mock_connector_fails_in_its_plan(connector):
    mock = connector()
    mock.context = ConnectorContext(connector="m")
    mock.start({"mock_mode": "connector-failure", "delay_ms": "0"})
    with pytest.raises(ConnectError, match="mock"):
        mock.task_configs(1)
    mock.stop()
