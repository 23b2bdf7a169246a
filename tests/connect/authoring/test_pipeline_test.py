"""Tests of pipelines in YAML: what passes, what fails and how, and files that are not valid."""

import pytest
from typer.testing import CliRunner

from connect.authoring.commands import app

SINK = """
connector: {name: c, connector.class: FileStreamSink, topics: orders, transforms: field,
  transforms.field.type: org.apache.kafka.connect.transforms.ExtractField$Value, transforms.field.field: id}
worker: {key.converter: string, value.converter: json, value.converter.schemas.enable: false}
"""
SOURCE = """
connector: {name: c, connector.class: FileStreamSource, topic: orders}
worker: {key.converter: string, value.converter: json, value.converter.schemas.enable: false}
"""


def run(tmp_path, text):
    (tmp_path / "tests.yaml").write_text(text)
    result = CliRunner().invoke(app, ["test", str(tmp_path / "tests.yaml")])
    return result.exit_code, result.output.replace(str(tmp_path), "F").splitlines()


def test_a_sink_gets_what_transforms_make_of_the_log(tmp_path):
    tests = """
tests:
  - name: the id
    records: [{topic: orders, key: a, value: {id: 7}, headers: {h: 1}, timestamp: 5}]
    expect: [{topic: orders, partition: 0, key: a, value: 7, headers: {h: 1}, timestamp: 5}]
  - name: only what is expected is compared
    records: [{topic: orders, value: {id: 7}}, {topic: orders, value: {id: x}}]
    expect: [{value: 7}, {value: x}]
"""
    assert run(tmp_path, SINK + tests) == (
        0,
        ["ok     F/tests.yaml: the id", "ok     F/tests.yaml: only what is expected is compared"],
    )


def test_the_log_gets_what_converters_make_of_a_sources_records(tmp_path):
    tests = """
tests:
  - name: json
    records:
      - topic: orders
        key: k
        value: {n: 1}
        headers: {h: 1}
        timestamp: 5
        value_schema: {type: struct, optional: false, fields: [{field: n, type: int32, optional: false}]}
    expect: [{topic: orders, key: k, value: {n: 1}, headers: {h: "1"}, timestamp: 5}]
  - name: as text
    records: [{topic: orders, value: {n: 1}}]
    expect: [{value: '{"n":1}'}]
  - name: a value that does not fit
    records:
      - {topic: orders, value: {n: x}, value_schema: {type: struct, fields: [{field: n, type: int32}]}}
    errors: [value.n is str]
"""
    code, lines = run(tmp_path, SOURCE + tests)
    assert (code, [line.split()[0] for line in lines]) == (0, ["ok", "ok", "ok"]), lines


@pytest.mark.parametrize(
    ("test", "difference"),
    [
        (
            "records: [{topic: t, value: {id: 1}}]\n    expect: [{value: 2}]",
            "record 1, value: expected 2, not 1",
        ),
        ("records: []\n    expect: [{value: 2}]", "expected 1 records, not 0"),
        ("records: [{topic: t, value: {id: 1}}]", "expected 0 records, not 1"),
        ("records: [{topic: t, value: '{'}]", "unexpected error of record 1: "),
        ("records: []\n    errors: [JSON]", "expected an error with 'JSON', there was none"),
        (
            "records: [{topic: t, value: '{'}]\n    errors: [transform]",
            "expected an error with 'transform', not record 1: ",
        ),
    ],
)
def test_a_difference(tmp_path, test, difference):
    code, lines = run(tmp_path, f"{SINK}\ntests:\n  - name: n\n    {test}")
    assert (code, lines[0]) == (1, "FAILED F/tests.yaml: n")
    assert lines[1].startswith(f"       {difference}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tests: [", "is no file of pipeline tests"),
        (SINK + "tests: [{name: n, records: [{topic: t, valu: 1}]}]", "unknown field `valu`"),
        ("connector: missing.properties\ntests: []", "missing.properties"),
        ("connector: {connector.class: Nothing}\ntests: []", "no connector 'Nothing'"),
        (
            SINK.replace("transforms.field.field: id", "x: y") + "tests: [{name: n, records: []}]",
            "transforms.field.field",
        ),
    ],
)
def test_a_file_that_is_not_valid(tmp_path, text, message):
    code, lines = run(tmp_path, text)
    assert code == 2
    assert message in " ".join(lines)


def test_the_config_may_be_a_file(tmp_path):
    (tmp_path / "c.properties").write_text(
        "connector.class=FileStreamSink\nvalue.converter=string\ntopics=t\n"
    )
    text = (
        "connector: c.properties\ntests: [{name: n, records: [{topic: t, value: x}], expect: [{value: x}]}]"
    )
    assert run(tmp_path, text)[0] == 0
